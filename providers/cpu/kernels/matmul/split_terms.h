// SPDX-License-Identifier: Apache-2.0
//
// float32 numbers split into sums of one, two or three bfloat16 terms, laid out for
// TileMicrokernel. Each term is what the terms before it leave of the number, rounded to bfloat16;
// three terms are exact. A 32-bit pair holds k and k + 16 of its chunk, so that both factors are
// packed without shuffling. Only for machines with tiles. Pure functions; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// Factors whose largest number is smaller lose bits, because tiles take subnormal numbers for 0.
inline constexpr float kLeastSplit = 0x1p-100f;
// Whether numbers whose largest has these bits, of split_lines, keep theirs.
bool large_enough(uint16_t largest);

constexpr int64_t chunks_of(int64_t k) { return (k + 31) / 32; }
// Bytes of a block of |side| (16 or 32) rows or columns.
constexpr int64_t term_bytes(int terms, int64_t side, int64_t k) {
  return chunks_of(k) * side * terms * 64;
}

// The layout of split rows of A: row r of term p of chunk c begins at c * chunk_bytes + p *
// term_bytes + 64 r.
struct TermLayout {
  int terms;
  int64_t term_bytes, chunk_bytes;

  // A block of |side| rows.
  static constexpr TermLayout of_block(int terms, int64_t side) {
    return {terms, side * 64, side * terms * 64};
  }
};

// Splits rows [0, count) of A, row r at |in| + r * stride, |k| elements. Returns false when a row
// is smaller than kLeastSplit and not all zeros.
bool split_rows(const TermLayout& layout, uint8_t* out, const float* in, int64_t stride,
                int64_t count, int64_t k);
// Splits rows of one chunk, the first 16 k's of row r at |first| + r * step, the others at
// |second|; null: zeros. Returns the upper half of the largest number, without its sign, as bits.
uint16_t split_lines(const TermLayout& layout, uint8_t* out, const float* first,
                     const float* second, int64_t step, int64_t count);
// Splits rows of one chunk as split_lines does, but k of row r is at |in| + k * k_stride + r *
// step, for |k| up to 32.
uint16_t split_across(const TermLayout& layout, uint8_t* out, const float* in, int64_t k_stride,
                      int64_t k, int64_t step, int64_t count);
// Splits |n| contiguous elements: each term is an array of as many bfloat16, and arrays begin
// |term_stride| elements apart. Returns the largest as split_lines does.
uint16_t split_array(int terms, uint16_t* out, int64_t term_stride, const float* in, int64_t n);
// Makes rows of A from runs of such arrays: row r takes |runs| runs of |run| elements, run i at
// |from| + i * run_stride + r * step, and zeros up to |depth|, a multiple of 32 up to
// kMostGathered. A pair holds neighbours in k: see neighbours_row. Up to 32 elements beyond a run
// are read.
inline constexpr int64_t kMostGathered = 1024;
void gather_runs(const TermLayout& layout, uint8_t* out, const uint16_t* from, int64_t term_stride,
                 int64_t runs, int64_t run_stride, int64_t run, int64_t step, int64_t count,
                 int64_t depth);
// The position of k of such rows in the order of split_columns.
constexpr int64_t neighbours_row(int64_t k) { return k / 32 * 32 + k % 2 * 16 + k % 32 / 2; }
void zero_lines(const TermLayout& layout, uint8_t* out, int64_t count);

// Splits a block of B: column c of k is at |in| + k * stride + c, and columns from |count| on are
// zeros. Returns false as split_rows does, of columns.
bool split_columns(int terms, uint8_t* out, int64_t side, const float* in, int64_t stride,
                   int64_t count, int64_t k);

// Smaller sums may have lost products that tiles took for 0.
inline constexpr float kLeastSum = 0x1p-90f;
// False where a sum may not be trusted: not finite, or very small and not 0.
bool sums_are_right(const float* sums, int64_t n);
// out[16 i + j] = sums[16 i + j] + bias[j] for i < n. False as of sums_are_right.
bool store_lines(float* out, const float* sums, const float* bias, int64_t n);
// out[j * stride + i] = sums[16 i + j] + bias[j] for i < n, j < width.
bool store_across(float* out, int64_t stride, const float* sums, const float* bias, int64_t width,
                  int64_t n);
// out[i] += in[i]; n a multiple of 16.
void add_lines(float* out, const float* in, int64_t n);
// Adds |rows| lines of |cols| elements, |in_stride| apart, to those at |out|; |set| overwrites.
void add_block(float* out, int64_t out_stride, const float* in, int64_t in_stride, int64_t rows,
               int64_t cols, bool set);
// sums[16 i + j] = sum over k of x(i, k) * b[k * side + j], |x| at in + i * step + k * k_stride, in
// plain float32, added to what is there.
void add_reference_products(float* sums, const float* in, int64_t step, int64_t k_stride, int64_t k,
                            const float* b, int64_t side, int64_t n);

}  // namespace pfrt::cpu
