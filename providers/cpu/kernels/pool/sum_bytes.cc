// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/pool/sum_bytes.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/window/nchw16c_row.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLine = kBlockChannels;
constexpr int64_t kMostIn16 = 257;  // bytes whose sum has 16 bits

__m128i load_line(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

PFRT_AVX2_INLINE inline __m256i load_sums(const int32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
PFRT_AVX2_INLINE inline void store_sums(int32_t* to, __m256i sums) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums);
}

// A mask of the first |n| lanes.
PFRT_AVX2_INLINE inline __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Sums of bytes [i, i + 16) of all rows, or [i, i + 8).
template <int64_t kBytes>
PFRT_AVX2_INLINE inline void add_some_of_rows(const uint8_t* const* rows, int64_t count, int64_t i,
                                              __m128i inverted, int32_t* sums) {
  __m256i low = _mm256_setzero_si256(), high = low;
  for (int64_t r = 0; r < count;) {
    __m256i few = _mm256_setzero_si256();
    for (const int64_t end = std::min(count, r + kMostIn16); r < end; ++r) {
      const __m128i bytes = kBytes == kLine
                                ? load_line(rows[r] + i)
                                : _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows[r] + i));
      few = _mm256_add_epi16(few, _mm256_cvtepu8_epi16(_mm_xor_si128(bytes, inverted)));
    }
    low = _mm256_add_epi32(low, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(few)));
    high = _mm256_add_epi32(high, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(few, 1)));
  }
  store_sums(sums + i, low);
  if (kBytes == kLine) store_sums(sums + i + 8, high);
}

PFRT_AVX2 void add_rows_avx2(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t flip,
                             int32_t* sums) {
  const __m128i inverted = _mm_set1_epi8(static_cast<char>(flip));
  if (n < kLine) {  // 8 or more
    add_some_of_rows<8>(rows, count, 0, inverted, sums);
    return add_some_of_rows<8>(rows, count, n - 8, inverted, sums);
  }
  for (int64_t i = 0; i + kLine <= n; i += kLine)
    add_some_of_rows<kLine>(rows, count, i, inverted, sums);
  // The last 16 again.
  if (n % kLine != 0) add_some_of_rows<kLine>(rows, count, n - kLine, inverted, sums);
}

// Returns the number of sums that it has done.
PFRT_AVX2 int64_t add_every_avx2(const int32_t* from, int64_t step, int64_t n, int32_t* sums) {
  int64_t i = 0;
  if (step == 1)
    for (; i + 8 <= n; i += 8)
      store_sums(sums + i, _mm256_add_epi32(load_sums(sums + i), load_sums(from + i)));
  if (step == 1 && i < n) {
    const __m256i mask = first_lanes(n - i);
    const __m256i sum = _mm256_add_epi32(_mm256_maskload_epi32(sums + i, mask),
                                         _mm256_maskload_epi32(from + i, mask));
    _mm256_maskstore_epi32(sums + i, mask, sum);
    return n;
  }
  if (step == 2)
    for (; i < n; i += 8) {
      const __m256 low = _mm256_castsi256_ps(load_sums(from + 2 * i)),
                   high = _mm256_castsi256_ps(load_sums(from + 2 * i + 8));
      const __m256i even = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
      const __m256i inorder = _mm256_permute4x64_epi64(even, 0xd8);
      if (i + 8 <= n) {
        store_sums(sums + i, _mm256_add_epi32(load_sums(sums + i), inorder));
        continue;
      }
      const __m256i mask = first_lanes(n - i);
      const __m256i sum = _mm256_add_epi32(_mm256_maskload_epi32(sums + i, mask), inorder);
      _mm256_maskstore_epi32(sums + i, mask, sum);
      return n;
    }
  return i;
}

// The 16 sums of one position. |whole|: all taps of a row are on the image.
template <bool whole>
PFRT_AVX2_INLINE inline void sum_position(const WindowRows& rows, const TapRows& starts, int64_t p,
                                          const uint8_t* image, __m128i flip, int32_t start,
                                          int32_t* out) {
  __m256i low = _mm256_setzero_si256(), high = low, few = low;
  int64_t left = kMostIn16, taps = 0;
  const auto widen = [&]() PFRT_AVX2_INLINE {
    low = _mm256_add_epi32(low, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(few)));
    high = _mm256_add_epi32(high, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(few, 1)));
    few = _mm256_setzero_si256();
  };
  const int64_t step = rows.stride() * p;
  for (int64_t t = 0; t < rows.tap_rows(); ++t) {
    const int64_t row_start = starts[t];
    if (row_start < 0) continue;
    for (int64_t x = 0; x < rows.row_taps(); ++x) {
      const WindowRows::Span& span = rows.span(x);
      if (!whole && (p < span.begin || p >= span.end)) continue;
      const __m128i line =
          _mm_xor_si128(load_line(image + (row_start + span.first + step) * kLine), flip);
      few = _mm256_add_epi16(few, _mm256_cvtepu8_epi16(line));
      ++taps;
      if (--left == 0) {
        widen();
        left = kMostIn16;
      }
    }
  }
  widen();
  const __m256i addend = _mm256_set1_epi32(start * static_cast<int32_t>(taps));
  store_sums(out, _mm256_add_epi32(low, addend));
  store_sums(out + 8, _mm256_add_epi32(high, addend));
}

}  // namespace

int64_t sum_bytes(const uint8_t* bytes, int64_t n, uint8_t flip) {
  const __m128i inverted = _mm_set1_epi8(static_cast<char>(flip)), zero = _mm_setzero_si128();
  __m128i a = zero, b = zero;
  const auto add = [&](__m128i sum, const uint8_t* at) {
    return _mm_add_epi64(sum, _mm_sad_epu8(_mm_xor_si128(load_line(at), inverted), zero));
  };
  int64_t i = 0;
  for (; i + 2 * kLine <= n; i += 2 * kLine) {
    a = add(a, bytes + i);
    b = add(b, bytes + i + kLine);
  }
  if (i + kLine <= n) {
    a = add(a, bytes + i);
    i += kLine;
  }
  if (i < n && n >= kLine) {
    // Selects those of the last 16 bytes that are new.
    alignas(kLine) static constexpr uint8_t kNew[2 * kLine] = {
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
        0,    0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const __m128i last = _mm_xor_si128(load_line(bytes + n - kLine), inverted);
    const __m128i kept = _mm_and_si128(last, load_line(kNew + (n - i)));
    b = _mm_add_epi64(b, _mm_sad_epu8(kept, zero));
  } else if (i < n) {
    uint8_t last[kLine];
    std::memset(last, flip, sizeof(last));
    std::memcpy(last, bytes + i, static_cast<size_t>(n - i));
    b = add(b, last);
  }
  a = _mm_add_epi64(a, b);
  return _mm_cvtsi128_si64(_mm_add_epi64(a, _mm_unpackhi_epi64(a, a)));
}

void sum_lines(const uint8_t* lines, int64_t n, uint8_t flip, int64_t* sums) {
  const __m128i inverted = _mm_set1_epi8(static_cast<char>(flip)), zero = _mm_setzero_si128();
  while (n > 0) {
    const int64_t some = std::min(n, kMostIn16);
    __m128i low = zero, high = zero;
    for (int64_t i = 0; i < some; ++i) {
      const __m128i line = _mm_xor_si128(load_line(lines + i * kLine), inverted);
      low = _mm_add_epi16(low, _mm_unpacklo_epi8(line, zero));
      high = _mm_add_epi16(high, _mm_unpackhi_epi8(line, zero));
    }
    uint16_t few[kLine];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(few), low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(few + kLine / 2), high);
    for (int64_t c = 0; c < kLine; ++c) sums[c] += few[c];
    n -= some;
    lines += some * kLine;
  }
}

namespace {
void add_rows_plainly(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t flip,
                      int32_t* sums) {
  std::fill_n(sums, n, 0);
  for (int64_t r = 0; r < count; ++r)
    for (int64_t i = 0; i < n; ++i) sums[i] += rows[r][i] ^ flip;
}
}  // namespace

RowSums RowSums::get(int64_t width) {
  return {width >= 8 && isa() >= Isa::kAvx2 ? add_rows_avx2 : add_rows_plainly,
          isa() >= Isa::kAvx2};
}

void RowSums::add_every(const int32_t* from, int64_t step, int64_t n, int32_t* sums) const {
  int64_t i = vectors ? add_every_avx2(from, step, n, sums) : 0;
  for (; i < n; ++i) sums[i] += from[i * step];
}

PFRT_AVX2 void sum_window_nchw16c(const WindowRows& rows, int64_t row, const uint8_t* image,
                                  uint8_t flip, int32_t start, int32_t* sums) {
  const int64_t length = rows.row_length();
  int64_t begin = 0, end = length;  // positions that have all taps of a row
  for (int64_t x = 0; x < rows.row_taps(); ++x) {
    begin = std::max(begin, rows.span(x).begin);
    end = std::min(end, rows.span(x).end);
  }
  begin = std::min(begin, length);
  end = std::max(begin, end);
  const TapRows starts(rows, row);
  const __m128i inverted = _mm_set1_epi8(static_cast<char>(flip));
  int64_t p = 0;
  for (; p < begin; ++p)
    sum_position<false>(rows, starts, p, image, inverted, start, sums + p * kLine);
  for (; p < end; ++p)
    sum_position<true>(rows, starts, p, image, inverted, start, sums + p * kLine);
  for (; p < length; ++p)
    sum_position<false>(rows, starts, p, image, inverted, start, sums + p * kLine);
}

}  // namespace pfrt::cpu
