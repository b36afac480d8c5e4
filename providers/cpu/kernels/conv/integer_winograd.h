// SPDX-License-Identifier: Apache-2.0
//
// ConvInteger and QLinearConv of 3 x 3 taps with constant weights, by Winograd's algorithm in pairs
// of int16 (winograd/dots.h): exact, as all sums of integers are. The direct form is as fast where
// bytes are multiplied four at a time. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::string refuse_conv_integer_winograd(const KernelRequest& node);
std::optional<PackedInput> pack_conv_integer_winograd(const SnapshotNode& node);
Result<Kernel> make_conv_integer_winograd(const KernelRequest& node);

std::string refuse_qlinear_conv_winograd(const KernelRequest& node);
std::optional<PackedInput> pack_qlinear_conv_winograd(const SnapshotNode& node);
Result<Kernel> make_qlinear_conv_winograd(const KernelRequest& node);

}  // namespace pfrt::cpu
