// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/window/reorder_bytes.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

namespace pfrt::cpu {
namespace {

constexpr int64_t kSide = 16;

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

// The first |n| bytes, 1 to 16; zeros after them.
__m128i load_some(const uint8_t* from, int64_t n) {
  if (n == kSide) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  alignas(16) uint8_t bytes[kSide] = {};
  std::memcpy(bytes, from, static_cast<size_t>(n));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}

void store_some(uint8_t* to, __m128i x, int64_t n) {
  if (n == kSide) return _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x);
  if (n == kSide / 2) return _mm_storel_epi64(reinterpret_cast<__m128i*>(to), x);
  alignas(16) uint8_t bytes[kSide];
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes), x);
  std::memcpy(to, bytes, static_cast<size_t>(n));
}

}  // namespace

void bytes_to_lines(uint8_t* out, int64_t line, int64_t pitch, const uint8_t* planes, int64_t plane,
                    int64_t count, int64_t n) {
  if (count == 1 && line == 1 && pitch == 1) {
    std::copy_n(planes, n, out);
    return;
  }
  for (int64_t i = 0; i < n; i += kSide) {
    const int64_t pixels = std::min(kSide, n - i);
    __m128i rows[kSide];
    for (int64_t c = 0; c < kSide; ++c)
      rows[c] = c < count ? load_some(planes + c * plane + i, pixels) : _mm_setzero_si128();
    transpose(rows);
    for (int64_t p = 0; p < pixels; ++p) store_some(out + (i + p) * pitch, rows[p], line);
  }
}

void bytes_to_planes(uint8_t* out, int64_t plane, const uint8_t* lines, int64_t count, int64_t n) {
  for (int64_t i = 0; i < n; i += kSide) {
    const int64_t pixels = std::min(kSide, n - i);
    __m128i rows[kSide];
    for (int64_t p = 0; p < kSide; ++p)
      rows[p] = p < pixels ? load_some(lines + (i + p) * kSide, kSide) : _mm_setzero_si128();
    transpose(rows);
    for (int64_t c = 0; c < count; ++c) store_some(out + c * plane + i, rows[c], pixels);
  }
}

}  // namespace pfrt::cpu
