// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/int16_dot.h"

#include <emmintrin.h>

#include <algorithm>

namespace pfrt::cpu {
namespace {

__m128i load(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
__m128i load_half(const void* from) { return _mm_loadl_epi64(static_cast<const __m128i*>(from)); }
void store(int16_t* to, __m128i x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x); }

int16_t wide(bool is_signed, uint8_t byte) {
  return is_signed ? int16_t{static_cast<int8_t>(byte)} : int16_t{byte};
}

// Eight bytes of either half as int16.
struct Halves {
  __m128i low, high;
  Halves(bool is_signed, __m128i bytes) {
    const __m128i zero = _mm_setzero_si128();
    low = _mm_unpacklo_epi8(bytes, zero);
    high = _mm_unpackhi_epi8(bytes, zero);
    if (!is_signed) return;
    low = _mm_srai_epi16(_mm_slli_epi16(low, 8), 8);
    high = _mm_srai_epi16(_mm_slli_epi16(high, 8), 8);
  }
};

}  // namespace

void widen_bytes(bool is_signed, const uint8_t* bytes, int64_t n, int16_t* out) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Halves halves(is_signed, load(bytes + i));
    store(out + i, halves.low);
    store(out + i + 8, halves.high);
  }
  for (; i < n; ++i) out[i] = wide(is_signed, bytes[i]);
}

void widen_lines(bool is_signed, const uint8_t* lines, int64_t pitch, int64_t n, int16_t* out,
                 int64_t out_pitch) {
  for (; n > 0; --n, lines += pitch, out += out_pitch) {
    const Halves halves(is_signed, load(lines));
    store(out, halves.low);
    store(out + 8, halves.high);
  }
}

void zip_int16_pairs(bool is_signed, const uint8_t* first, const uint8_t* second, int64_t n,
                     int16_t* out) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Halves a(is_signed, load(first + i)), b(is_signed, load(second + i));
    store(out + 2 * i, _mm_unpacklo_epi16(a.low, b.low));
    store(out + 2 * i + 8, _mm_unpackhi_epi16(a.low, b.low));
    store(out + 2 * i + 16, _mm_unpacklo_epi16(a.high, b.high));
    store(out + 2 * i + 24, _mm_unpackhi_epi16(a.high, b.high));
  }
  for (; i < n; ++i) {
    out[2 * i] = wide(is_signed, first[i]);
    out[2 * i + 1] = wide(is_signed, second[i]);
  }
}

namespace {

// Four parts of a row's own products.
__m128i parts_of_row(const void* row, std::span<const int64_t> offsets, int64_t n) {
  __m128i sums = _mm_setzero_si128();
  const auto add = [&](__m128i even, __m128i odd) {
    sums = _mm_add_epi32(sums, _mm_madd_epi16(even, odd));
  };
  for (const int64_t offset : offsets) {
    const char* from = static_cast<const char*>(row) + offset;
    int64_t left = n;
    for (; left >= 8; left -= 8, from += 32) {
      const __m128 a = _mm_castsi128_ps(load(from)), b = _mm_castsi128_ps(load(from + 16));
      add(_mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0))),
          _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1))));
    }
    // Pairs that are left are taken two at a time: the second is multiplied with the first, and
    // zeros with the second.
    for (; left > 0; left -= 2, from += 8) add(load_half(from), _mm_srli_si128(load_half(from), 4));
  }
  return sums;
}

// Half the sum of each in two lanes.
__m128i add_halves(__m128i a, __m128i b) {
  return _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
}

}  // namespace

uint32_t own_products(const void* row, std::span<const int64_t> offsets, int64_t n) {
  uint32_t out;
  own_products(row, 0, 1, offsets, n, &out);
  return out;
}

void own_products(const void* rows, int64_t stride, int64_t count, std::span<const int64_t> offsets,
                  int64_t n, uint32_t* out) {
  const auto* row = static_cast<const char*>(rows);
  for (; count > 0; count -= 4, row += 4 * stride, out += 4) {
    __m128i parts[4];
    for (int64_t i = 0; i < 4; ++i)
      parts[i] = i < count ? parts_of_row(row + i * stride, offsets, n) : _mm_setzero_si128();
    const __m128i first = add_halves(parts[0], parts[1]), second = add_halves(parts[2], parts[3]);
    const __m128i sums =
        _mm_add_epi32(_mm_unpacklo_epi64(first, second), _mm_unpackhi_epi64(first, second));
    if (count < 4) {
      alignas(16) uint32_t some[4];
      _mm_store_si128(reinterpret_cast<__m128i*>(some), sums);
      std::copy_n(some, count, out);
      return;
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), sums);
  }
}

}  // namespace pfrt::cpu
