// SPDX-License-Identifier: Apache-2.0
//
// float32 as the pairs of bfloat16 that PanelMicrokernel::get_bf16_dot multiplies: two neighbours
// of k in 32 bits, the first in the low half, each rounded to nearest even; the second number of an
// incomplete last pair is 0. Numbers below the normal range become 0, and infinity and NaN stay.
// For AVX512-BF16. Pure functions over the caller's memory; |out| may be |in|, and else does not
// overlap what is read; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

constexpr int64_t bf16_pairs(int64_t k) { return k / 2 + k % 2; }

// Says which sums of a dot product of pairs may be trusted: all, finite ones, or none.
enum class DotSums : uint8_t { kRight, kIfFinite, kNone };
// |largest| is the largest number of one factor, as split_lines gives it. |reach| is that of the
// other factor: the largest sum of magnitudes that any of its columns has, NaN where a column that
// is not 0 has numbers so small that they are lost.
DotSums trusted_sums(uint16_t largest, float reach);
// The reach of a panel of 16 columns, of |lanes| pairs in all.
float reach_of(const uint32_t* panel, int64_t lanes);
bool all_finite(const float* sums, int64_t n);

// Rounds |n| contiguous numbers to bf16_pairs(n) pairs. Returns the upper half of the largest one's
// bits, without its sign: split_terms.h, large_enough.
uint16_t to_bf16_pairs(const float* in, int64_t n, uint32_t* out);
// Rounds to |n| pairs, each of a number of |first| and one of |second|, or of 0 where |second| is
// null.
uint16_t zip_bf16_pairs(const float* first, const float* second, int64_t n, uint32_t* out);

// Lines of 16 numbers, for neighbouring k, to half as many lines of pairs. |out| may lie before
// |in|, too.
void pair_lines(const float* in, int64_t lines, uint32_t* out);

}  // namespace pfrt::cpu
