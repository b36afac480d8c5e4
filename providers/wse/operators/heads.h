// SPDX-License-Identifier: Apache-2.0
//
// The layout of heads in tensors of rank 4, [batch, head, position, column], and of rank 3, [batch,
// position, head x column].
#pragma once

#include "providers/wse/operators/operators.h"

namespace pfrt::wse {

// Strides count elements; columns are contiguous.
struct Heads {
  int64_t count = 0, positions = 0, columns = 0;
  int64_t batch = 0, head = 0, row = 0;

  int64_t at(int64_t b, int64_t h, int64_t r) const { return b * batch + h * head + r * row; }
};

// False where |dims| is neither, or has no whole number of columns for each of |heads|, which says
// how many there are in rank 3.
inline bool read_heads(const Dims& dims, int64_t heads, Heads* out) {
  if (dims.size() == 4) {
    *out = {dims[1], dims[2], dims[3], dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3]};
    return true;
  }
  if (dims.size() != 3 || heads < 1 || dims[2] % heads != 0) return false;
  const int64_t columns = dims[2] / heads;
  *out = {heads, dims[1], columns, dims[1] * dims[2], columns, dims[2]};
  return true;
}

}  // namespace pfrt::wse
