// SPDX-License-Identifier: Apache-2.0
//
// Einsum's equation against the shapes at hand: every label a dimension, every operand a stride a
// label (the sum over a repeated label, 0 where the label is absent or broadcast). Values; pure
// functions; thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace pfrt::cpu {

struct EinsumTerm {
  std::vector<int> labels;  // letters, and kEllipsis at most once
};

struct EinsumEquation {
  static constexpr int kEllipsis = 256;
  std::vector<EinsumTerm> inputs;
  EinsumTerm output;
};

// Terms of "bij, bjk -> bik"; an absent right side is made of the letters that appear once.
Result<EinsumEquation> parse_einsum(std::string_view text);

struct EinsumShape {
  std::vector<int64_t> sizes;  // by label: those of the output in order, then those summed over
  size_t output_labels = 0;
  std::vector<std::vector<int64_t>> strides;  // by operand, by label
};

Result<EinsumShape> bind_einsum(const EinsumEquation& equation,
                                const std::vector<std::vector<int64_t>>& dims);

}  // namespace pfrt::cpu
