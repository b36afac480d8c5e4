// SPDX-License-Identifier: Apache-2.0
//
// ConvInteger and QLinearConv with constant weights, in int16 dot products of vectors: exact, as
// all sums of integers are. Pure functions; thread-safe.
#pragma once

#include <optional>

#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

std::optional<PackedInput> pack_conv_integer(const SnapshotNode& node);
Result<Kernel> make_conv_integer_vectors(const KernelRequest& node, const PackedInput& packed);
std::optional<PackedInput> pack_qlinear_conv(const SnapshotNode& node);
Result<Kernel> make_qlinear_conv_vectors(const KernelRequest& node, const PackedInput& packed);

}  // namespace pfrt::cpu
