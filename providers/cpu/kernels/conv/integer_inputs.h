// SPDX-License-Identifier: Apache-2.0
//
// Where ConvInteger and QLinearConv have their inputs, zero points of weights, and the epilogues of
// what was written in lines of channels. Pure functions; thread-safe.
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

// Where a kernel writes output 0: in nChw16c, or planes of so many positions.
struct OutputLayout {
  bool nchw16c;
  int64_t positions;
};
// The epilogue of positions [from, from + n) of |count| channels from |channel| on, counted over
// all images: of a block of 16 in nChw16c.
void apply_epilogue(const Run& run, const OutputLayout& layout, int64_t channel, int64_t count,
                    int64_t from, int64_t n);

}  // namespace pfrt::cpu
