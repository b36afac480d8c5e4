// SPDX-License-Identifier: Apache-2.0
//
// float32 numbers as sums of three bfloat16 numbers, laid out for TileProduct. Each plane is what
// remains of the number, rounded to bfloat16; the third is exact. A pair of k holds k and k + 16 of
// its chunk, so that both sides are packed without shuffling. For AVX-512. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// Factors whose largest number is smaller lose bits, because tiles take subnormal numbers for 0.
inline constexpr float kLeastSplit = 0x1p-100f;

constexpr int64_t chunks_of(int64_t k) { return (k + 31) / 32; }
// Of a block of |side| (16 or 32) rows or columns.
constexpr int64_t plane_bytes(int64_t side, int64_t k) { return chunks_of(k) * side * 3 * 64; }

// A block of A: rows [0, count) of |side|, row r at |in| + r * stride, |k| numbers; the others are
// zeros. False when a row is smaller than kLeastSplit and not all zeros.
bool split_rows(uint8_t* out, int64_t side, const float* in, int64_t stride, int64_t count,
                int64_t k);
// A block of B: column c of k at |in| + k * stride + c. The same of columns.
bool split_columns(uint8_t* out, int64_t side, const float* in, int64_t stride, int64_t count,
                   int64_t k);

// Pairs of |n| numbers side by side: word i holds first[i] and second[i].
void split_line(uint8_t* out, int64_t plane, const float* first, const float* second, int64_t n);

// Smaller sums may have lost products that tiles took for 0.
inline constexpr float kLeastSum = 0x1p-90f;
// out[i] = sums[i] + bias. False where a sum may not be trusted: not finite, or very small and not
// 0.
bool store_sums(float* out, const float* sums, float bias, int64_t n);
// The same question alone.
bool sums_are_right(const float* sums, int64_t n);
// Adds |rows| lines of |cols| numbers, |in_stride| apart, to those at |out|; |set| overwrites.
void add_block(float* out, int64_t out_stride, const float* in, int64_t in_stride, int64_t rows,
               int64_t cols, bool set);

}  // namespace pfrt::cpu
