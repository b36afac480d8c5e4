// SPDX-License-Identifier: Apache-2.0
//
// Finds the order in which the operands of an Einsum are multiplied: two at a time, each label
// summed over as soon as nothing else has it. The order that takes the fewest multiplications is
// found among all for up to eight operands; with more, the smallest operand takes the partner that
// costs least. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "providers/cpu/kernels/matmul/einsum/equation.h"

namespace pfrt::cpu {

// Multiplies two operands, or takes one, and sums over the labels that the result does not have.
// Operands are the inputs, then the results of earlier steps.
struct EinsumStep {
  static constexpr size_t kNone = SIZE_MAX;
  size_t a = 0, b = kNone;
  std::vector<int64_t> a_strides, b_strides, out_strides;  // by label; 0 where it is absent
  int64_t elements = 1;                                    // of the result
};

// The last step makes the output. No size of |shape| is 0.
Result<std::vector<EinsumStep>> einsum_path(const EinsumShape& shape);

}  // namespace pfrt::cpu
