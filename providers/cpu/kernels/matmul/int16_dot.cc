// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/int16_dot.h"

#include <emmintrin.h>

#include <cstring>

namespace pfrt::cpu {
namespace {

uint32_t pair(int32_t low, int32_t high) {
  return (static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16;
}

// Eight bytes of either half as int16.
template <typename Byte>
struct Halves {
  __m128i low, high;
  explicit Halves(__m128i bytes) {
    if constexpr (static_cast<Byte>(-1) < 0) {
      const __m128i zero = _mm_setzero_si128();
      low = _mm_srai_epi16(_mm_unpacklo_epi8(zero, bytes), 8);
      high = _mm_srai_epi16(_mm_unpackhi_epi8(zero, bytes), 8);
    } else {
      const __m128i zero = _mm_setzero_si128();
      low = _mm_unpacklo_epi8(bytes, zero);
      high = _mm_unpackhi_epi8(bytes, zero);
    }
  }
};

__m128i load(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
void store(uint32_t* to, __m128i x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x); }

uint32_t total(__m128i sums) {
  sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, _MM_SHUFFLE(1, 0, 3, 2)));
  sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, _MM_SHUFFLE(2, 3, 0, 1)));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(sums));
}

template <typename Byte>
int32_t line(const Byte* x, int64_t n, int32_t zero, uint32_t* out) {
  const __m128i zeros = _mm_set1_epi16(static_cast<int16_t>(zero)), ones = _mm_set1_epi16(1);
  __m128i sums = _mm_setzero_si128();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Halves<Byte> halves(load(x + i));
    const __m128i low = _mm_sub_epi16(halves.low, zeros), high = _mm_sub_epi16(halves.high, zeros);
    store(out + i / 2, low);
    store(out + i / 2 + 4, high);
    sums = _mm_add_epi32(sums, _mm_madd_epi16(_mm_add_epi16(low, high), ones));
  }
  uint32_t sum = total(sums);
  for (; i < n; i += 2) {
    const int32_t low = x[i] - zero, high = i + 1 < n ? x[i + 1] - zero : 0;
    out[i / 2] = pair(low, high);
    sum += static_cast<uint32_t>(low + high);
  }
  return static_cast<int32_t>(sum);
}

template <typename Byte>
void two(const Byte* a, const Byte* b, int64_t n, int32_t zero, uint32_t* out) {
  const __m128i zeros = _mm_set1_epi16(static_cast<int16_t>(zero));
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Halves<Byte> first(load(a + i));
    const __m128i low = _mm_sub_epi16(first.low, zeros), high = _mm_sub_epi16(first.high, zeros);
    __m128i low_b = _mm_setzero_si128(), high_b = low_b;
    if (b != nullptr) {
      const Halves<Byte> second(load(b + i));
      low_b = _mm_sub_epi16(second.low, zeros);
      high_b = _mm_sub_epi16(second.high, zeros);
    }
    store(out + i, _mm_unpacklo_epi16(low, low_b));
    store(out + i + 4, _mm_unpackhi_epi16(low, low_b));
    store(out + i + 8, _mm_unpacklo_epi16(high, high_b));
    store(out + i + 12, _mm_unpackhi_epi16(high, high_b));
  }
  for (; i < n; ++i) out[i] = pair(a[i] - zero, b != nullptr ? b[i] - zero : 0);
}

}  // namespace

int32_t to_int16_pairs(pfrt_dtype dtype, const void* bytes, int64_t n, int32_t zero,
                       uint32_t* out) {
  return dtype == PFRT_DTYPE_INT8 ? line(static_cast<const int8_t*>(bytes), n, zero, out)
                                  : line(static_cast<const uint8_t*>(bytes), n, zero, out);
}

void zip_int16_pairs(pfrt_dtype dtype, const void* first, const void* second, int64_t n,
                     int32_t zero, uint32_t* out) {
  if (dtype == PFRT_DTYPE_INT8)
    two(static_cast<const int8_t*>(first), static_cast<const int8_t*>(second), n, zero, out);
  else
    two(static_cast<const uint8_t*>(first), static_cast<const uint8_t*>(second), n, zero, out);
}

uint32_t own_products(const void* row, std::span<const int64_t> offsets, int64_t n) {
  __m128i sums = _mm_setzero_si128();
  uint32_t sum = 0;
  for (const int64_t offset : offsets) {
    const char* from = static_cast<const char*>(row) + offset;
    int64_t left = n;
    for (; left >= 8; left -= 8, from += 32) {
      const __m128 a = _mm_castsi128_ps(load(from)), b = _mm_castsi128_ps(load(from + 16));
      const __m128i even = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
      const __m128i odd = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
      sums = _mm_add_epi32(sums, _mm_madd_epi16(even, odd));
    }
    for (; left > 0; left -= 2, from += 8) {
      int16_t x[4];
      std::memcpy(x, from, sizeof x);
      sum += static_cast<uint32_t>(x[0] * x[2] + x[1] * x[3]);
    }
  }
  return sum + total(sums);
}

}  // namespace pfrt::cpu
