// SPDX-License-Identifier: Apache-2.0
//
// Rows of float32 as jit/nbits_microkernel.h reads them: some rows together, block by block; as
// they are, or rounded to int8 with a scale for each block, which is the block's largest magnitude
// over 127. A block whose elements are not all finite gets a scale that is no number. Pure
// functions; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernels/matmul/nbits_weights.h"

namespace pfrt::cpu {

// Packs |row| as row |r| of |rows| to |out|, their memory. |spare| holds weights.places() floats
// where the weights have an order.
void pack_nbits_row(const NBitsWeights& weights, const float* row, int64_t r, int64_t rows,
                    uint8_t* out, float* spare);

}  // namespace pfrt::cpu
