// SPDX-License-Identifier: Apache-2.0
//
// The constant factor of a matmul, and what is done with rows of its result.
#pragma once

#include <cstdint>
#include <functional>

namespace pfrt::cpu {

// Constant columns of k elements. Columns are outer_stride apart, elements of one column k_stride.
struct Columns {
  int64_t n, k, outer_stride, k_stride;
};

// finish(row, i, j, n) gets elements [j, j + n) of row i of C, which it may change, before they are
// final.
using Finish = std::function<void(float* row, int64_t i, int64_t j, int64_t n)>;

}  // namespace pfrt::cpu
