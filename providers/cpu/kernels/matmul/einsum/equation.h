// SPDX-License-Identifier: Apache-2.0
//
// Einsum's equation with the shapes of its operands: each label has a size, and each operand a
// stride for each label (the sum of strides where a label repeats, 0 where it is absent or
// broadcast). Values; pure functions; thread-safe.
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

// Terms of "bij, bjk -> bik"; without a right side, it is the letters that appear once.
Result<EinsumEquation> parse_einsum(std::string_view text);

struct EinsumShape {
  std::vector<int64_t> sizes;  // by label: those of the output in order, then those summed over
  size_t output_labels = 0;
  std::vector<std::vector<int64_t>> strides;  // by operand, by label
};

Result<EinsumShape> bind_einsum(const EinsumEquation& equation,
                                const std::vector<std::vector<int64_t>>& dims);

}  // namespace pfrt::cpu
