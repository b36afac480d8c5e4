// SPDX-License-Identifier: Apache-2.0
//
// Where ConvInteger and QLinearConv have their inputs, and zero points of weights. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

// Positions of the inputs.
struct IntegerInputs {
  uint32_t x, w, x_zero, w_zero;
};

// The zero points of constant weights, one or one a channel; nullopt when only a run knows them.
std::optional<std::vector<int32_t>> weight_zeros(const SnapshotNode& node, const IntegerInputs& in);

}  // namespace pfrt::cpu
