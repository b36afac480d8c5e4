// SPDX-License-Identifier: Apache-2.0
//
// Positions of the inputs of ConvInteger and QLinearConv, zero points of weights, and the epilogues
// of results in lines of channels. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// Positions of the inputs.
struct IntegerInputs {
  uint32_t x, w, x_zero, w_zero;
};

// The zero points of constant weights, one or one a channel; nullopt when only a run knows them.
std::optional<std::vector<int32_t>> weight_zeros(const SnapshotNode& node, const IntegerInputs& in);

// The layout of output 0: nChw16c, or planes of so many positions.
struct OutputLayout {
  bool nchw16c;
  int64_t positions;
};
// Applies the epilogue to positions [from, from + n) of |count| channels from |channel| on, counted
// over all images; in nChw16c these are a block of 16.
void apply_epilogue(const Run& run, const OutputLayout& layout, int64_t channel, int64_t count,
                    int64_t from, int64_t n);

}  // namespace pfrt::cpu
