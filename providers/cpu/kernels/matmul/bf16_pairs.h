// SPDX-License-Identifier: Apache-2.0
//
// float32 as the pairs of bfloat16 that PanelMicrokernel::get_bf16_dot multiplies: two neighbours
// of k in 32 bits, the first in the low half, each rounded to nearest even; the second number of an
// incomplete last pair is 0. Numbers below the normal range become 0, and infinity and NaN stay.
// For AVX512-BF16. Pure functions over the caller's memory, which does not overlap; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

constexpr int64_t bf16_pairs(int64_t k) { return k / 2 + k % 2; }

// |n| contiguous numbers to bf16_pairs(n) pairs. Gives the upper half of the largest one's bits,
// without its sign: split_terms.h, large_enough.
uint16_t to_bf16_pairs(const float* in, int64_t n, uint32_t* out);
// |n| pairs, each of a number of |first| and one of |second|; where that is null, of 0.
uint16_t zip_bf16_pairs(const float* first, const float* second, int64_t n, uint32_t* out);

}  // namespace pfrt::cpu
