// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/elements/requantize.h"

#include <immintrin.h>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"

#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12, of its own header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace pfrt::cpu {
namespace {

constexpr int64_t kLine = RequantizeFns::kLine;
// Larger values saturate in any case. They are cut here because the conversion to int32 would not
// saturate them; below zero it does.
constexpr float kHighest = 65536;

constexpr int64_t kTogether = 32;  // sums that vectors take at once, at least

// The last columns, fewer than that, by |whole| for 32 of them.
void last_columns(decltype(RequantizeFns::columns) whole, const int32_t* sums, const float* scales,
                  int32_t zero, int64_t n, uint8_t* out) {
  int32_t last[kTogether] = {};
  float last_scales[kTogether] = {};
  uint8_t bytes[kTogether];
  std::copy_n(sums, n, last);
  std::copy_n(scales, n, last_scales);
  whole(last, last_scales, zero, kTogether, bytes);
  std::copy_n(bytes, n, out);
}

template <bool is_signed>
void columns_generic(const int32_t* sums, const float* scales, int32_t zero, int64_t n,
                     uint8_t* out) {
  constexpr float kLow = is_signed ? -128 : 0, kHigh = is_signed ? 127 : 255;
  for (int64_t i = 0; i < n; ++i) {
    const float value =
        round_even(static_cast<float>(sums[i]) * scales[i]) + static_cast<float>(zero);
    const float cut = value < kLow ? kLow : value > kHigh ? kHigh : value;
    out[i] = static_cast<uint8_t>(static_cast<int32_t>(cut));
  }
}

template <bool is_signed>
void lines_generic(const int32_t* lines, int64_t stride, const float* scales, int32_t zero,
                   int64_t n, uint8_t* out, int64_t out_stride) {
  for (int64_t i = 0; i < n; ++i)
    columns_generic<is_signed>(lines + i * stride, scales, zero, kLine, out + i * out_stride);
}

PFRT_AVX2_INLINE inline __m256i whole_256(const int32_t* sums, __m256 scale) {
  const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
  const __m256 real = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale);
  return _mm256_cvtps_epi32(_mm256_min_ps(real, _mm256_set1_ps(kHighest)));
}

// 32 sums, of two lines with two vectors of scales each.
template <bool is_signed>
PFRT_AVX2_INLINE inline __m256i bytes_256(const int32_t* first, const int32_t* second,
                                          const __m256* scales, __m256i zero) {
  const __m256i low =
      _mm256_packs_epi32(whole_256(first, scales[0]), whole_256(first + 8, scales[1]));
  const __m256i high =
      _mm256_packs_epi32(whole_256(second, scales[2]), whole_256(second + 8, scales[3]));
  const __m256i a = _mm256_adds_epi16(low, zero), b = _mm256_adds_epi16(high, zero);
  const __m256i bytes = is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

template <bool is_signed>
PFRT_AVX2 void columns_avx2(const int32_t* sums, const float* scales, int32_t zero, int64_t n,
                            uint8_t* out) {
  const __m256i zeros = _mm256_set1_epi16(static_cast<int16_t>(zero));
  __m256 scale[4];
  for (; n >= 32; n -= 32, sums += 32, scales += 32, out += 32) {
    for (int64_t v = 0; v < 4; ++v) scale[v] = _mm256_loadu_ps(scales + 8 * v);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        bytes_256<is_signed>(sums, sums + kLine, scale, zeros));
  }
  if (n > 0) last_columns(columns_avx2<is_signed>, sums, scales, zero, n, out);
}

template <bool is_signed>
PFRT_AVX2 void lines_avx2(const int32_t* lines, int64_t stride, const float* scales, int32_t zero,
                          int64_t n, uint8_t* out, int64_t out_stride) {
  const __m256i zeros = _mm256_set1_epi16(static_cast<int16_t>(zero));
  const __m256 low = _mm256_loadu_ps(scales), high = _mm256_loadu_ps(scales + 8);
  const __m256 scale[4] = {low, high, low, high};
  for (; n > 0; n -= 2, lines += 2 * stride, out += 2 * out_stride) {
    const __m256i bytes = bytes_256<is_signed>(lines, n > 1 ? lines + stride : lines, scale, zeros);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(bytes));
    if (n > 1)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + out_stride),
                       _mm256_extracti128_si256(bytes, 1));
  }
}

PFRT_AVX512 inline __m512i whole_512(const int32_t* sums, __m512 scale) {
  const __m512 real =
      _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, _mm512_loadu_si512(sums)), scale);
  return _mm512_maskz_cvtps_epi32(0xffff,
                                  _mm512_maskz_min_ps(0xffff, real, _mm512_set1_ps(kHighest)));
}

template <bool is_signed>
PFRT_AVX512 inline __m512i bytes_512(__m512i low, __m512i high, __m512i zero) {
  const __m512i a = _mm512_adds_epi16(low, zero), b = _mm512_adds_epi16(high, zero);
  return is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
}

// 64 sums, of four vectors with a scale each; the lines of 16 bytes are in order.
template <bool is_signed>
PFRT_AVX512 inline __m512i bytes_64(const int32_t* const* lines, const __m512* scales,
                                    __m512i zero) {
  const __m512i low =
      _mm512_packs_epi32(whole_512(lines[0], scales[0]), whole_512(lines[1], scales[1]));
  const __m512i high =
      _mm512_packs_epi32(whole_512(lines[2], scales[2]), whole_512(lines[3], scales[3]));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_maskz_permutexvar_epi32(0xffff, order, bytes_512<is_signed>(low, high, zero));
}

template <bool is_signed>
PFRT_AVX512 inline void store_32(const int32_t* sums, const __m512* scales, __m512i zero,
                                 uint8_t* out) {
  const __m512i both =
      _mm512_packs_epi32(whole_512(sums, scales[0]), whole_512(sums + 16, scales[1]));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512i bytes =
      _mm512_maskz_permutexvar_epi32(0xffff, order, bytes_512<is_signed>(both, both, zero));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_castsi512_si256(bytes));
}

template <bool is_signed>
PFRT_AVX512 void columns_avx512(const int32_t* sums, const float* scales, int32_t zero, int64_t n,
                                uint8_t* out) {
  const __m512i zeros = _mm512_set1_epi16(static_cast<int16_t>(zero));
  __m512 scale[4];
  for (; n >= 64; n -= 64, sums += 64, scales += 64, out += 64) {
    for (int64_t v = 0; v < 4; ++v) scale[v] = _mm512_loadu_ps(scales + 16 * v);
    const int32_t* const lines[] = {sums, sums + 16, sums + 32, sums + 48};
    _mm512_storeu_si512(out, bytes_64<is_signed>(lines, scale, zeros));
  }
  for (; n >= 32; n -= 32, sums += 32, scales += 32, out += 32) {
    for (int64_t v = 0; v < 2; ++v) scale[v] = _mm512_loadu_ps(scales + 16 * v);
    store_32<is_signed>(sums, scale, zeros, out);
  }
  if (n > 0) last_columns(columns_avx512<is_signed>, sums, scales, zero, n, out);
}

template <bool is_signed>
PFRT_AVX512 void lines_avx512(const int32_t* lines, int64_t stride, const float* scales,
                              int32_t zero, int64_t n, uint8_t* out, int64_t out_stride) {
  const __m512i zeros = _mm512_set1_epi16(static_cast<int16_t>(zero));
  const __m512 all = _mm512_loadu_ps(scales);
  const __m512 scale[4] = {all, all, all, all};
  for (; n >= 4; n -= 4, lines += 4 * stride, out += 4 * out_stride) {
    const int32_t* const four[] = {lines, lines + stride, lines + 2 * stride, lines + 3 * stride};
    const __m512i bytes = bytes_64<is_signed>(four, scale, zeros);
    if (out_stride == kLine) {
      _mm512_storeu_si512(out, bytes);
      continue;
    }
    const __m256i low = _mm512_castsi512_si256(bytes),
                  high = _mm512_maskz_extracti64x4_epi64(0xf, bytes, 1);
    const __m128i at[] = {_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1),
                          _mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)};
    for (int64_t i = 0; i < 4; ++i)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * out_stride), at[i]);
  }
  lines_avx2<is_signed>(lines, stride, scales, zero, n, out, out_stride);
}

template <bool is_signed>
RequantizeFns fns() {
  const Isa have = isa();
  if (have >= Isa::kAvx512) return {columns_avx512<is_signed>, lines_avx512<is_signed>};
  if (have >= Isa::kAvx2) return {columns_avx2<is_signed>, lines_avx2<is_signed>};
  return {columns_generic<is_signed>, lines_generic<is_signed>};
}

}  // namespace

RequantizeFns requantize_fns(pfrt_dtype dtype) {
  return dtype == PFRT_DTYPE_INT8 ? fns<true>() : fns<false>();
}

void requantize(float* line, const uint32_t* sums, const float* scale, int64_t scale_stride,
                float zero, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    const float value = static_cast<float>(static_cast<int32_t>(sums[j])) * scale[j * scale_stride];
    line[j] = round_even(value) + zero;
  }
}

}  // namespace pfrt::cpu
