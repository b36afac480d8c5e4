// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/window/reorder_bytes.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kSide = 16;

__m128i load_line(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
void store_line(uint8_t* to, __m128i x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x); }

// Each stage interleaves row i with row i + 8; four of them transpose.
void interleave(const __m128i* in, __m128i* out) {
  for (int64_t i = 0; i < kSide / 2; ++i) {
    out[2 * i] = _mm_unpacklo_epi8(in[i], in[i + kSide / 2]);
    out[2 * i + 1] = _mm_unpackhi_epi8(in[i], in[i + kSide / 2]);
  }
}

void transpose(__m128i* rows) {
  __m128i other[kSide];
  interleave(rows, other);
  interleave(other, rows);
  interleave(rows, other);
  interleave(other, rows);
}

// Interleaves 16 planes of 32 pixels; the lines of pixel p and of 16 + p are in one vector.
PFRT_AVX2_INLINE inline void interleave(const __m256i* in, __m256i* out) {
  for (int64_t i = 0; i < kSide / 2; ++i) {
    out[2 * i] = _mm256_unpacklo_epi8(in[i], in[i + kSide / 2]);
    out[2 * i + 1] = _mm256_unpackhi_epi8(in[i], in[i + kSide / 2]);
  }
}

PFRT_AVX2_INLINE inline void transpose(__m256i* rows) {
  __m256i other[kSide];
  interleave(rows, other);
  interleave(other, rows);
  interleave(rows, other);
  interleave(other, rows);
}

// Does bytes_to_lines with lines of 16 bytes for the first of |n| pixels; returns their number.
PFRT_AVX2 int64_t lines_of_32(uint8_t* out, int64_t pitch, const uint8_t* planes, int64_t plane,
                              int64_t count, int64_t n) {
  int64_t i = 0;
  for (; i + 2 * kSide <= n; i += 2 * kSide) {
    __m256i rows[kSide];
    for (int64_t c = 0; c < kSide; ++c)
      rows[c] = c < count
                    ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(planes + c * plane + i))
                    : _mm256_setzero_si256();
    transpose(rows);
    uint8_t* to = out + i * pitch;
    for (int64_t p = 0; p < kSide; ++p, to += pitch) {
      store_line(to, _mm256_castsi256_si128(rows[p]));
      store_line(to + kSide * pitch, _mm256_extracti128_si256(rows[p], 1));
    }
  }
  return i;
}

// Does bytes_to_lines with lines of 8 bytes for the first of |n| pixels; returns their number.
int64_t short_lines_of_16(uint8_t* out, int64_t pitch, const uint8_t* planes, int64_t plane,
                          int64_t count, int64_t n) {
  constexpr int64_t kLine = kSide / 2;
  int64_t i = 0;
  for (; i + kSide <= n; i += kSide) {
    __m128i rows[kLine], other[kLine];
    for (int64_t c = 0; c < kLine; ++c)
      rows[c] = c < count ? load_line(planes + c * plane + i) : _mm_setzero_si128();
    __m128i *from = rows, *to = other;
    for (int64_t stage = 0; stage < 3; ++stage, std::swap(from, to))
      for (int64_t c = 0; c < kLine / 2; ++c) {
        to[2 * c] = _mm_unpacklo_epi8(from[c], from[c + kLine / 2]);
        to[2 * c + 1] = _mm_unpackhi_epi8(from[c], from[c + kLine / 2]);
      }
    uint8_t* line = out + i * pitch;
    for (int64_t c = 0; c < kLine; ++c, line += 2 * pitch) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(line), from[c]);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(line + pitch),
                       _mm_unpackhi_epi64(from[c], from[c]));
    }
  }
  return i;
}

// Does bytes_to_planes for the first of |n| lines; returns their number.
PFRT_AVX2 int64_t planes_of_32(uint8_t* out, int64_t plane, const uint8_t* lines, int64_t count,
                               int64_t n) {
  int64_t i = 0;
  for (; i + 2 * kSide <= n; i += 2 * kSide) {
    __m256i rows[kSide];
    for (int64_t p = 0; p < kSide; ++p)
      rows[p] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_line(lines + (i + p) * kSide)),
                                        load_line(lines + (i + kSide + p) * kSide), 1);
    transpose(rows);
    for (int64_t c = 0; c < count; ++c)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + c * plane + i), rows[c]);
  }
  return i;
}

// Does bytes_to_lines for 16 pixels and lines of |count| bytes that follow each other, 2 to 4.
PFRT_AVX2_INLINE inline void few_lines_of_16(uint8_t* out, const uint8_t* planes, int64_t plane,
                                             int64_t count) {
  const __m128i zero = _mm_setzero_si128(), first = load_line(planes),
                second = load_line(planes + plane),
                third = count > 2 ? load_line(planes + 2 * plane) : zero,
                fourth = count > 3 ? load_line(planes + 3 * plane) : zero;
  const __m128i low = _mm_unpacklo_epi8(first, second), high = _mm_unpackhi_epi8(first, second);
  if (count == 2) {
    store_line(out, low);
    store_line(out + kSide, high);
    return;
  }
  const __m128i low_next = _mm_unpacklo_epi8(third, fourth),
                high_next = _mm_unpackhi_epi8(third, fourth);
  __m128i fours[] = {_mm_unpacklo_epi16(low, low_next), _mm_unpackhi_epi16(low, low_next),
                     _mm_unpacklo_epi16(high, high_next), _mm_unpackhi_epi16(high, high_next)};
  if (count == 4) {
    for (int64_t i = 0; i < 4; ++i) store_line(out + i * kSide, fours[i]);
    return;
  }
  const __m128i three_of_four =
      _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  for (__m128i& x : fours) x = _mm_shuffle_epi8(x, three_of_four);
  store_line(out, _mm_or_si128(fours[0], _mm_slli_si128(fours[1], 12)));
  store_line(out + kSide, _mm_or_si128(_mm_srli_si128(fours[1], 4), _mm_slli_si128(fours[2], 8)));
  store_line(out + 2 * kSide,
             _mm_or_si128(_mm_srli_si128(fours[2], 8), _mm_slli_si128(fours[3], 4)));
}

// Does bytes_to_lines for |n| pixels, 16 or more, and such short lines.
PFRT_AVX2 void few_lines(uint8_t* out, const uint8_t* planes, int64_t plane, int64_t count,
                         int64_t n) {
  for (int64_t i = 0; i < n; i += kSide) {
    const int64_t at = std::min(i, n - kSide);
    few_lines_of_16(out + at * count, planes + at, plane, count);
  }
}

// The first |n| bytes, 1 to 16; zeros after them.
__m128i load_some(const uint8_t* from, int64_t n) {
  if (n == kSide) return load_line(from);
  alignas(16) uint8_t bytes[kSide] = {};
  std::memcpy(bytes, from, static_cast<size_t>(n));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}

void store_some(uint8_t* to, __m128i x, int64_t n) {
  if (n == kSide) return store_line(to, x);
  if (n == kSide / 2) return _mm_storel_epi64(reinterpret_cast<__m128i*>(to), x);
  alignas(16) uint8_t bytes[kSide];
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes), x);
  std::memcpy(to, bytes, static_cast<size_t>(n));
}

bool have_vectors() {
  static const bool have = isa() >= Isa::kAvx2;  // without them the bits are the same
  return have;
}

// Calls block(first, count) for blocks of 16 of |n| pixels from |i| on; where there are 16 or more,
// the last block has 16 as well, of which some were in the one before.
template <typename F>
void blocks_of_16(int64_t i, int64_t n, F block) {
  for (; i < n; i += kSide) block(n < kSide ? 0 : std::min(i, n - kSide), std::min(kSide, n));
}

}  // namespace

void bytes_to_lines(uint8_t* out, int64_t line, int64_t pitch, const uint8_t* planes, int64_t plane,
                    int64_t count, int64_t n) {
  if (count == 1 && line == 1 && pitch == 1) {
    std::copy_n(planes, n, out);
    return;
  }
  if (count == line && count == pitch && count > 1 && count <= 4 && n >= kSide && have_vectors())
    return few_lines(out, planes, plane, count, n);
  int64_t done = 0;
  if (n >= 2 * kSide && line == kSide && have_vectors())
    done = lines_of_32(out, pitch, planes, plane, count, n);
  if (line == kSide / 2) done = short_lines_of_16(out, pitch, planes, plane, count, n);
  blocks_of_16(done, n, [&](int64_t i, int64_t pixels) {
    __m128i rows[kSide];
    for (int64_t c = 0; c < kSide; ++c)
      rows[c] = c < count ? load_some(planes + c * plane + i, pixels) : _mm_setzero_si128();
    transpose(rows);
    for (int64_t p = 0; p < pixels; ++p) store_some(out + (i + p) * pitch, rows[p], line);
  });
}

void bytes_to_planes(uint8_t* out, int64_t plane, const uint8_t* lines, int64_t count, int64_t n) {
  const bool wide = n >= 2 * kSide && have_vectors();
  const int64_t done = wide ? planes_of_32(out, plane, lines, count, n) : 0;
  blocks_of_16(done, n, [&](int64_t i, int64_t pixels) {
    __m128i rows[kSide];
    for (int64_t p = 0; p < kSide; ++p)
      rows[p] = p < pixels ? load_some(lines + (i + p) * kSide, kSide) : _mm_setzero_si128();
    transpose(rows);
    for (int64_t c = 0; c < count; ++c) store_some(out + c * plane + i, rows[c], pixels);
  });
}

}  // namespace pfrt::cpu
