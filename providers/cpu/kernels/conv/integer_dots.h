// SPDX-License-Identifier: Apache-2.0
//
// ConvInteger and QLinearConv with constant weights, in dot products of vectors (dot_plan.h):
// exact, as all sums of integers are. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// These kernels take images in planes or in nChw16c, on either side.
std::string refuse_conv_integer_dots(const KernelRequest& node);
std::optional<PackedInput> pack_conv_integer_dots(const SnapshotNode& node);
Result<Kernel> make_conv_integer_dots(const KernelRequest& node);

std::string refuse_qlinear_conv_dots(const KernelRequest& node);
std::optional<PackedInput> pack_qlinear_conv_dots(const SnapshotNode& node);
Result<Kernel> make_qlinear_conv_dots(const KernelRequest& node);

}  // namespace pfrt::cpu
