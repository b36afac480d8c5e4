// SPDX-License-Identifier: Apache-2.0
//
// The constant factor of a product, and what is done with rows of its result.
#pragma once

#include <cstdint>
#include <functional>

namespace pfrt::cpu {

// Constant columns of k numbers, outer_stride apart, their numbers k_stride.
struct Columns {
  int64_t n, k, outer_stride, k_stride;
};

// finish(row, i, j, n) has the elements of C's row i from column j on before they are final.
using Finish = std::function<void(float* row, int64_t i, int64_t j, int64_t n)>;

}  // namespace pfrt::cpu
