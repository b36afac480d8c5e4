// SPDX-License-Identifier: Apache-2.0
//
// The product of two tiles as one PE computes it: each element of C is a chain of fused
// multiply-adds over k in the order that the blocks are visited in. Elements do not depend on each
// other, so that a vector of them is worked on at a time; all variants give the same bits.
// Thread-safe.
#pragma once

#include <cstdint>

#include "providers/wse/number/arithmetic.h"

namespace pfrt::wse {

constexpr int64_t kTileLanes = 8;

// c[rows][width] += a[rows][depth] * b[depth][width]; width is a multiple of kTileLanes.
struct TileProduct {
  const float* a;
  int64_t a_stride;  // elements from row to row
  const float* b;    // rows of |width| elements
  float* c;          // rows of |width| elements
  int64_t rows, width, depth;
  // k in blocks of |block|, the last of which may be shorter: visited in this order.
  const int32_t* order;
  int64_t blocks, block;
};

void multiply(Arithmetic type, const TileProduct& tile);
// Multiplies without vector instructions, for tests.
void multiply_portable(Arithmetic type, const TileProduct& tile);

}  // namespace pfrt::wse
