// SPDX-License-Identifier: Apache-2.0
//
// Rows of float32 as jit/nbits_microkernel.h reads them: some rows together, block by block; as
// they are, or rounded to int8 with a scale for each block, which is the block's largest magnitude
// over 127. A block whose elements are not all finite gets a scale that is no number. Pure
// functions; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernels/matmul/nbits/weights.h"

namespace pfrt::cpu {

// Packs |row| as row |r| of |rows| to |out|, their memory. |spare| holds weights.places() floats
// where the weights have an order.
void pack_nbits_row(const NBitsWeights& weights, const float* row, int64_t r, int64_t rows,
                    uint8_t* out, float* spare);

// Results |y| of one row for |count| columns of the panel at |panel|, with |bias| added: those that
// are not finite because a scale or zero point is not, or because the row is not and was rounded to
// bytes, are computed again from the weights one by one, as every instruction set has them. |row|
// is that of A.
void mend_nbits_results(const NBitsWeights& weights, const uint8_t* panel, const float* row,
                        const float* bias, int64_t count, float* y);

}  // namespace pfrt::cpu
