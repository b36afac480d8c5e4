// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/split_terms.h"

#include <immintrin.h>

#include <bit>

namespace pfrt::cpu {
namespace {
constexpr uint16_t kLeastWord = std::bit_cast<uint32_t>(kLeastSplit) >> 16;
constexpr uint32_t kLeastSumBits = std::bit_cast<uint32_t>(kLeastSum), kInfinityBits = 0x7f800000;
}  // namespace

bool large_enough(uint16_t largest) { return largest == 0 || largest >= kLeastWord; }

}  // namespace pfrt::cpu

#include "providers/cpu/isa/avx512_bf16_begin.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTile = 1024, kRow = 64;

using Words = uint32_t __attribute__((vector_size(64)));
using Shorts = uint16_t __attribute__((vector_size(64)));

// Rounded to bfloat16, in the upper half of each word. Only for numbers whose last term is kept
// too: the largest NaNs wrap around.
inline Words top(__m512 x) { return (Words(x) + 0x8000) & ~0xffffu; }

// Rounded to bfloat16, NaN kept, in the lower half of each word.
inline Words rounded(__m512 x) {
  return Words(_mm512_cvtepu16_epi32(__m256i(_mm512_cvtneps_pbh(x))));
}

// A pair of vectors in each term.
template <int kTerms>
struct Pairs {
  Words term[kTerms];
};

template <int kTerms>
inline Pairs<kTerms> pairs_of(__m512 first, __m512 second) {
  Pairs<kTerms> out;
  for (int p = 0; p + 1 < kTerms; ++p) {
    const Words top1 = top(first), top2 = top(second);
    out.term[p] = top1 >> 16 | top2;
    first -= __m512(top1);
    second -= __m512(top2);
  }
  // The remainder after two terms has no more bits than the third term.
  if constexpr (kTerms == 3)
    out.term[2] = Words(first) >> 16 | (Words(second) & ~0xffffu);
  else
    out.term[kTerms - 1] = rounded(first) | rounded(second) << 16;
  return out;
}

template <int kTerms>
inline Words write_pairs(uint8_t* out, int64_t term_bytes, __m512 first, __m512 second) {
  const Pairs<kTerms> pairs = pairs_of<kTerms>(first, second);
  for (int p = 0; p < kTerms; ++p) _mm512_store_si512(out + p * term_bytes, __m512i(pairs.term[p]));
  return pairs.term[0];
}

inline void follow(Shorts& most, Words pairs) {
  const Shorts large = Shorts(pairs & 0x7fff7fff);
  most = large > most ? large : most;
}

inline uint16_t largest_of(Shorts most) {
  uint16_t largest = 0;
  for (int i = 0; i < 32; ++i) largest = most[i] > largest ? most[i] : largest;
  return largest;
}

// The first |n| of 16.
inline __mmask16 lanes(int64_t n) {
  const uint32_t most = n >= 16 ? 16 : n <= 0 ? 0 : static_cast<uint32_t>(n);
  return static_cast<__mmask16>((1u << most) - 1);
}

template <typename Fn>
inline auto with_terms(int terms, Fn&& fn) {
  if (terms == 1) return fn.template operator()<1>();
  if (terms == 2) return fn.template operator()<2>();
  return fn.template operator()<3>();
}

constexpr int64_t kTogether = 8;  // rows: as many streams as the processor reads ahead of

template <int kTerms>
bool split_rows_to(const TermLayout& layout, uint8_t* out, const float* in, int64_t stride,
                   int64_t count, int64_t k) {
  const __m512i least = _mm512_set1_epi16(static_cast<int16_t>(kLeastWord));
  bool fit = true;
  for (int64_t r0 = 0; r0 < count; r0 += kTogether) {
    const int64_t rows = count - r0 < kTogether ? count - r0 : kTogether;
    Shorts most[kTogether] = {};
    uint8_t* to = out + r0 * kRow;
    for (int64_t k0 = 0; k0 < k; k0 += 32, to += layout.chunk_bytes) {
      const float* row = in + r0 * stride + k0;
      const __mmask16 near = lanes(k - k0), far = lanes(k - k0 - 16);
      for (int64_t r = 0; r < rows; ++r, row += stride)
        follow(most[r], write_pairs<kTerms>(to + r * kRow, layout.term_bytes,
                                            _mm512_maskz_loadu_ps(near, row),
                                            _mm512_maskz_loadu_ps(far, row + 16)));
    }
    for (int64_t r = 0; r < rows; ++r) {
      const __m512i row = __m512i(most[r]);
      fit &= _mm512_test_epi16_mask(row, row) == 0 || _mm512_cmpge_epu16_mask(row, least) != 0;
    }
  }
  return fit;
}

template <int kTerms>
bool split_columns_to(uint8_t* out, int64_t side, const float* in, int64_t stride, int64_t count,
                      int64_t k) {
  const int64_t term_bytes = side * kRow;
  const __mmask16 columns[2] = {lanes(count), lanes(count - 16)};
  Shorts most[2] = {};
  for (int64_t k0 = 0; k0 < k; k0 += 32, out += kTerms * term_bytes) {
    for (int64_t j = 0; j < 16; ++j) {
      const float *near = in + (k0 + j) * stride, *far = near + 16 * stride;
      for (int64_t t = 0; t < side / 16; ++t)
        follow(most[t], write_pairs<kTerms>(
                            out + t * kTile + j * kRow, term_bytes,
                            _mm512_maskz_loadu_ps(k0 + j < k ? columns[t] : 0, near + 16 * t),
                            _mm512_maskz_loadu_ps(k0 + j + 16 < k ? columns[t] : 0, far + 16 * t)));
    }
  }
  bool fit = true;
  for (const Shorts& lanes_of : most) {
    const Words both = Words(lanes_of);
    const Shorts other = Shorts(both >> 16 | both << 16);
    const __m512i largest = __m512i(lanes_of > other ? lanes_of : other);
    const __mmask32 zero = _mm512_testn_epi16_mask(largest, largest);
    const __mmask32 large =
        _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(static_cast<int16_t>(kLeastWord)));
    fit &= (zero | large) == 0xffffffffu;
  }
  return fit;
}

// Vector i becomes element i of each.
inline void transpose(__m512 (&x)[16]) {
  __m512 y[16];
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int h = 0; h < 2; ++h) {
      const __m512d low = __m512d(y[i + h]), high = __m512d(y[i + h + 2]);
      x[i + 2 * h] = __m512(_mm512_unpacklo_pd(low, high));
      x[i + 2 * h + 1] = __m512(_mm512_unpackhi_pd(low, high));
    }
  for (int i = 0; i < 4; ++i)
    for (int h = 0; h < 2; ++h) {
      y[8 * h + i] = _mm512_shuffle_f32x4(x[8 * h + i], x[8 * h + i + 4], 0x88);
      y[8 * h + i + 4] = _mm512_shuffle_f32x4(x[8 * h + i], x[8 * h + i + 4], 0xdd);
    }
  for (int i = 0; i < 8; ++i) {
    x[i] = _mm512_shuffle_f32x4(y[i], y[i + 8], 0x88);
    x[i + 8] = _mm512_shuffle_f32x4(y[i], y[i + 8], 0xdd);
  }
}

// Elements |step| apart.
inline __m512 load_apart(const float* in, int64_t step, __mmask16 here) {
  if (step == 1) return _mm512_maskz_loadu_ps(here, in);
  const __m512i index =
      _mm512_mullo_epi32(_mm512_set1_epi32(static_cast<int>(step)),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), here, index, in, 4);
}

// Loads 16 rows of up to 16 k's.
inline void load_across(__m512 (&x)[16], const float* in, int64_t k_stride, int64_t k, int64_t step,
                        __mmask16 rows) {
  for (int64_t i = 0; i < 16; ++i)
    x[i] = i < k ? load_apart(in + i * k_stride, step, rows) : _mm512_setzero_ps();
  transpose(x);
}

}  // namespace

bool split_rows(const TermLayout& layout, uint8_t* out, const float* in, int64_t stride,
                int64_t count, int64_t k) {
  return with_terms(layout.terms, [&]<int kTerms>() {
    return split_rows_to<kTerms>(layout, out, in, stride, count, k);
  });
}

bool split_columns(int terms, uint8_t* out, int64_t side, const float* in, int64_t stride,
                   int64_t count, int64_t k) {
  return with_terms(terms, [&]<int kTerms>() {
    return split_columns_to<kTerms>(out, side, in, stride, count, k);
  });
}

uint16_t split_lines(const TermLayout& layout, uint8_t* out, const float* first,
                     const float* second, int64_t step, int64_t count) {
  return with_terms(layout.terms, [&]<int kTerms>() {
    Shorts most = {};
    for (int64_t r = 0; r < count; ++r)
      follow(most,
             write_pairs<kTerms>(
                 out + r * kRow, layout.term_bytes, _mm512_loadu_ps(first + r * step),
                 second != nullptr ? _mm512_loadu_ps(second + r * step) : _mm512_setzero_ps()));
    return largest_of(most);
  });
}

uint16_t split_across(const TermLayout& layout, uint8_t* out, const float* in, int64_t k_stride,
                      int64_t k, int64_t step, int64_t count) {
  return with_terms(layout.terms, [&]<int kTerms>() {
    Shorts most = {};
    for (int64_t r0 = 0; r0 < count; r0 += 16) {
      __m512 first[16], second[16];
      const __mmask16 rows = lanes(count - r0);
      load_across(first, in + r0 * step, k_stride, k, step, rows);
      load_across(second, in + r0 * step + 16 * k_stride, k_stride, k - 16, step, rows);
      for (int64_t r = 0; r < 16 && r0 + r < count; ++r)
        follow(most,
               write_pairs<kTerms>(out + (r0 + r) * kRow, layout.term_bytes, first[r], second[r]));
    }
    return largest_of(most);
  });
}

uint16_t split_array(int terms, uint16_t* out, int64_t term_stride, const float* in, int64_t n) {
  return with_terms(terms, [&]<int kTerms>() {
    Shorts most = {};
    for (int64_t i = 0; i < n; i += 16) {
      const __mmask16 here = lanes(n - i);
      const Pairs<kTerms> pairs =
          pairs_of<kTerms>(_mm512_maskz_loadu_ps(here, in + i), _mm512_setzero_ps());
      for (int p = 0; p < kTerms; ++p)
        _mm512_mask_cvtepi32_storeu_epi16(out + p * term_stride + i, here, __m512i(pairs.term[p]));
      follow(most, pairs.term[0]);
    }
    return largest_of(most);
  });
}

void gather_runs(const TermLayout& layout, uint8_t* out, const uint16_t* from, int64_t term_stride,
                 int64_t runs, int64_t run_stride, int64_t run, int64_t step, int64_t count,
                 int64_t depth) {
  // A few rows at a time: what was written in short stores has reached the cache before it is read
  // in long loads.
  constexpr int64_t kRows = 4;
  alignas(64) uint16_t lines[kRows][kMostGathered + 64];
  for (int p = 0; p < layout.terms; ++p)
    for (int64_t r0 = 0; r0 < count; r0 += kRows) {
      const int64_t rows = count - r0 < kRows ? count - r0 : kRows;
      for (int64_t r = 0; r < rows; ++r) {
        const uint16_t* at = from + p * term_stride + (r0 + r) * step;
        uint16_t* to = lines[r];
        // Each copy writes beyond its end, which the next copy overwrites.
        for (int64_t i = 0; i < runs; ++i, at += run_stride, to += run)
          for (int64_t k = 0; k < run; k += 32)
            _mm512_storeu_si512(to + k, _mm512_loadu_si512(at + k));
        for (int64_t k = to - lines[r]; k < depth; k += 32)
          _mm512_storeu_si512(lines[r] + k, _mm512_setzero_si512());
      }
      for (int64_t c = 0; c < depth / 32; ++c)
        for (int64_t r = 0; r < rows; ++r)
          _mm512_store_si512(out + c * layout.chunk_bytes + p * layout.term_bytes + (r0 + r) * kRow,
                             _mm512_load_si512(lines[r] + 32 * c));
    }
}

void zero_lines(const TermLayout& layout, uint8_t* out, int64_t count) {
  for (int p = 0; p < layout.terms; ++p)
    for (int64_t r = 0; r < count; ++r)
      _mm512_store_si512(out + p * layout.term_bytes + r * kRow, _mm512_setzero_si512());
}

namespace {

// Lanes whose sums are not to be trusted.
inline __mmask16 odd(__m512 sums) {
  const Words bits = Words(sums) & 0x7fffffff;
  return _mm512_cmpge_epu32_mask(__m512i(bits - kLeastSumBits),
                                 _mm512_set1_epi32(kInfinityBits - kLeastSumBits)) &
         _mm512_test_epi32_mask(__m512i(bits), __m512i(bits));
}

}  // namespace

bool sums_are_right(const float* sums, int64_t n) {
  unsigned wrong = 0;
  for (int64_t i = 0; i < n; i += 16) wrong |= odd(_mm512_maskz_loadu_ps(lanes(n - i), sums + i));
  return wrong == 0;
}

bool store_lines(float* out, const float* sums, const float* bias, int64_t n) {
  const __m512 add = _mm512_loadu_ps(bias);
  unsigned wrong = 0;
  for (int64_t i = 0; i < n; ++i) {
    const __m512 x = _mm512_loadu_ps(sums + 16 * i);
    wrong |= odd(x);
    _mm512_storeu_ps(out + 16 * i, x + add);
  }
  return wrong == 0;
}

bool store_across(float* out, int64_t stride, const float* sums, const float* bias, int64_t width,
                  int64_t n) {
  const __m512 add = _mm512_loadu_ps(bias);
  const __mmask16 inside = lanes(width);
  unsigned wrong = 0;
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 here = lanes(n - i);
    __m512 x[16];
    for (int64_t r = 0; r < 16; ++r) {
      const __m512 line = i + r < n ? _mm512_loadu_ps(sums + 16 * (i + r)) : _mm512_setzero_ps();
      wrong |= odd(line) & inside;
      x[r] = line + add;
    }
    transpose(x);
    for (int64_t j = 0; j < width; ++j) _mm512_mask_storeu_ps(out + j * stride + i, here, x[j]);
  }
  return wrong == 0;
}

void add_lines(float* out, const float* in, int64_t n) {
  for (int64_t i = 0; i < n; i += 16)
    _mm512_storeu_ps(out + i, _mm512_loadu_ps(out + i) + _mm512_loadu_ps(in + i));
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

void add_reference_products(float* sums, const float* in, int64_t step, int64_t k_stride, int64_t k,
                            const float* b, int64_t side, int64_t n) {
  for (int64_t i = 0; i < n; ++i, in += step, sums += 16) {
    __m512 sum = _mm512_loadu_ps(sums);
    for (int64_t j = 0; j < k; ++j)
      sum = _mm512_fmadd_ps(_mm512_set1_ps(in[j * k_stride]), _mm512_loadu_ps(b + j * side), sum);
    _mm512_storeu_ps(sums, sum);
  }
}

}  // namespace pfrt::cpu

#include "providers/cpu/isa/avx512_bf16_end.h"
