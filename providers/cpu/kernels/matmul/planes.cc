// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/planes.h"

#include <immintrin.h>

#include <bit>

namespace pfrt::cpu {
namespace {
constexpr uint16_t kLeastWord = std::bit_cast<uint32_t>(kLeastSplit) >> 16;
constexpr uint32_t kLeastSumBits = std::bit_cast<uint32_t>(kLeastSum), kInfinityBits = 0x7f800000;
}  // namespace
}  // namespace pfrt::cpu

// Nothing of the standard library in here: its templates would be compiled for AVX-512 everywhere.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")

namespace pfrt::cpu {
namespace {

constexpr int64_t kTile = 1024, kRow = 64;

using Words = uint32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(64)));

// Rounded to bfloat16, in the upper half of each word.
inline Words top(__m512 x) { return (Words(x) + 0x8000) & ~0xffffu; }

// A pair of vectors in each plane.
struct Pairs {
  Words plane[3];
};

inline Pairs pairs_of(__m512 first, __m512 second) {
  const Words high1 = top(first), high2 = top(second);
  first -= __m512(high1);
  second -= __m512(high2);
  const Words mid1 = top(first), mid2 = top(second);
  first -= __m512(mid1);
  second -= __m512(mid2);
  return {{high1 >> 16 | high2, mid1 >> 16 | mid2, Words(first) >> 16 | Words(second)}};
}

// Writes a row of a tile of each plane. |most| follows the largest numbers.
inline void split_pairs(uint8_t* out, int64_t plane, __m512 first, __m512 second, Halves& most) {
  const Pairs pairs = pairs_of(first, second);
  const Halves large = Halves(pairs.plane[0] & 0x7fff7fff);
  most = large > most ? large : most;
  for (int p = 0; p < 3; ++p) _mm512_store_si512(out + p * plane, __m512i(pairs.plane[p]));
}

// The first |n| of 16.
__mmask16 lanes(int64_t n) {
  const uint32_t most = n >= 16 ? 16 : n <= 0 ? 0 : static_cast<uint32_t>(n);
  return static_cast<__mmask16>((1u << most) - 1);
}

}  // namespace

bool split_rows(uint8_t* out, int64_t side, const float* in, int64_t stride, int64_t count,
                int64_t k) {
  const int64_t plane = side * kRow;
  Halves most[32] = {};
  for (int64_t k0 = 0; k0 < k; k0 += 32, out += 3 * plane) {
    const float* row = in + k0;
    const __mmask16 near = lanes(k - k0), far = lanes(k - k0 - 16);
    for (int64_t r = 0; r < count; ++r, row += stride)
      split_pairs(out + r / 16 * kTile + r % 16 * kRow, plane, _mm512_maskz_loadu_ps(near, row),
                  _mm512_maskz_loadu_ps(far, row + 16), most[r]);
    for (int64_t r = count; r < side; ++r)
      split_pairs(out + r / 16 * kTile + r % 16 * kRow, plane, _mm512_setzero_ps(),
                  _mm512_setzero_ps(), most[r]);
  }
  const __m512i least = _mm512_set1_epi16(static_cast<int16_t>(kLeastWord));
  bool fit = true;
  for (int64_t r = 0; r < count; ++r) {
    const __m512i row = __m512i(most[r]);
    fit &= _mm512_test_epi16_mask(row, row) == 0 || _mm512_cmpge_epu16_mask(row, least) != 0;
  }
  return fit;
}

bool split_columns(uint8_t* out, int64_t side, const float* in, int64_t stride, int64_t count,
                   int64_t k) {
  const int64_t plane = side * kRow;
  const __mmask16 columns[2] = {lanes(count), lanes(count - 16)};
  Halves most[2] = {};
  for (int64_t k0 = 0; k0 < k; k0 += 32, out += 3 * plane) {
    for (int64_t j = 0; j < 16; ++j) {
      const float *near = in + (k0 + j) * stride, *far = near + 16 * stride;
      for (int64_t t = 0; t < side / 16; ++t)
        split_pairs(out + t * kTile + j * kRow, plane,
                    _mm512_maskz_loadu_ps(k0 + j < k ? columns[t] : 0, near + 16 * t),
                    _mm512_maskz_loadu_ps(k0 + j + 16 < k ? columns[t] : 0, far + 16 * t), most[t]);
    }
  }
  bool fit = true;
  for (const Halves& lanes_of : most) {
    const Words both = Words(lanes_of);
    const Halves other = Halves(both >> 16 | both << 16);
    const __m512i largest = __m512i(lanes_of > other ? lanes_of : other);
    const __mmask32 zero = _mm512_testn_epi16_mask(largest, largest);
    const __mmask32 large =
        _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(static_cast<int16_t>(kLeastWord)));
    fit &= (zero | large) == 0xffffffffu;
  }
  return fit;
}

void split_line(uint8_t* out, int64_t plane, const float* first, const float* second, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Pairs pairs = pairs_of(_mm512_loadu_ps(first + i), _mm512_loadu_ps(second + i));
    for (int p = 0; p < 3; ++p)
      _mm512_storeu_si512(out + p * plane + 4 * i, __m512i(pairs.plane[p]));
  }
  if (i == n) return;
  const __mmask16 rest = lanes(n - i);
  const Pairs pairs =
      pairs_of(_mm512_maskz_loadu_ps(rest, first + i), _mm512_maskz_loadu_ps(rest, second + i));
  for (int p = 0; p < 3; ++p)
    _mm512_mask_storeu_epi32(out + p * plane + 4 * i, rest, __m512i(pairs.plane[p]));
}

namespace {

// Lanes that are not to be trusted.
inline __mmask16 odd(__m512 sums) {
  const Words bits = Words(sums) & 0x7fffffff;
  return _mm512_cmpge_epu32_mask(__m512i(bits - kLeastSumBits),
                                 _mm512_set1_epi32(kInfinityBits - kLeastSumBits)) &
         _mm512_test_epi32_mask(__m512i(bits), __m512i(bits));
}

}  // namespace

bool store_sums(float* out, const float* sums, float bias, int64_t n) {
  const __m512 add = _mm512_set1_ps(bias);
  unsigned wrong = 0;
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 here = lanes(n - i);
    const __m512 x = _mm512_maskz_loadu_ps(here, sums + i);
    wrong |= odd(x);
    _mm512_mask_storeu_ps(out + i, here, x + add);
  }
  return wrong == 0;
}

bool sums_are_right(const float* sums, int64_t n) {
  unsigned wrong = 0;
  for (int64_t i = 0; i < n; i += 16) wrong |= odd(_mm512_maskz_loadu_ps(lanes(n - i), sums + i));
  return wrong == 0;
}

void add_block(float* out, int64_t out_stride, const float* in, int64_t in_stride, int64_t rows,
               int64_t cols, bool set) {
  for (int64_t r = 0; r < rows; ++r, out += out_stride, in += in_stride)
    for (int64_t i = 0; i < cols; i += 16) {
      const __mmask16 here = lanes(cols - i);
      __m512 x = _mm512_maskz_loadu_ps(here, in + i);
      if (!set) x += _mm512_maskz_loadu_ps(here, out + i);
      _mm512_mask_storeu_ps(out + i, here, x);
    }
}

}  // namespace pfrt::cpu

#pragma GCC pop_options
