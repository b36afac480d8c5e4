// SPDX-License-Identifier: Apache-2.0
//
// With 16-bit types a float sum that was rounded once to 24 bits is rounded again. That differs
// from one rounding only where the first result lies just between two values of the narrow type, or
// where the narrow type has fewer bits (subnormal): there the exact, slow way is taken.
#include "providers/wse/number/tile.h"

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>

namespace pfrt::wse {
namespace {

constexpr int64_t kRowBlock = 4;

template <typename Fn>
void each_block(const TileProduct& t, Fn fn) {
  for (int64_t i = 0; i < t.blocks; ++i) {
    const int64_t begin = t.order[i] * t.block;
    fn(begin, std::min(t.depth, begin + t.block));
  }
}

#define PFRT_AVX2 __attribute__((target("avx2,fma,f16c")))

PFRT_AVX2 inline __m256 to_fp16(__m256 x) {
  return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

PFRT_AVX2 inline __m256 to_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256 rounded =
      _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  return _mm256_blendv_ps(rounded, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

// Lanes in which a second rounding could go wrong.
template <Arithmetic type>
PFRT_AVX2 inline __m256 doubtful(__m256 x) {
  const bool half = type == Arithmetic::kFp16;
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i rest = _mm256_and_si256(bits, _mm256_set1_epi32(half ? 0x1fff : 0xffff));
  const __m256 between =
      _mm256_castsi256_ps(_mm256_cmpeq_epi32(rest, _mm256_set1_epi32(half ? 0x1000 : 0x8000)));
  if (!half) return between;
  const __m256 size = _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
  const __m256 small = _mm256_and_ps(_mm256_cmp_ps(size, _mm256_set1_ps(0x1p-14F), _CMP_LT_OQ),
                                     _mm256_cmp_ps(size, _mm256_setzero_ps(), _CMP_NEQ_OQ));
  return _mm256_or_ps(between, small);
}

template <Arithmetic type>
PFRT_AVX2 __attribute__((noinline)) __m256 exact_lanes(float a, __m256 b, __m256 c) {
  alignas(32) float bs[kTileLanes], cs[kTileLanes];
  _mm256_store_ps(bs, b);
  _mm256_store_ps(cs, c);
  for (int64_t i = 0; i < kTileLanes; ++i) cs[i] = fused(type, a, bs[i], cs[i]);
  return _mm256_load_ps(cs);
}

template <Arithmetic type>
PFRT_AVX2 inline __m256 multiply_add(float a, __m256 b, __m256 c) {
  const __m256 sum = _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
  if constexpr (!is_16_bit(type)) {
    return sum;
  } else {
    if (__builtin_expect(_mm256_movemask_ps(doubtful<type>(sum)) != 0, 0))
      return exact_lanes<type>(a, b, c);
    return type == Arithmetic::kFp16 ? to_fp16(sum) : to_bf16(sum);
  }
}

template <Arithmetic type, int64_t rows>
PFRT_AVX2 void rows_avx2(const TileProduct& t, int64_t row, int64_t column) {
  __m256 sums[rows];
  for (int64_t r = 0; r < rows; ++r) sums[r] = _mm256_loadu_ps(t.c + (row + r) * t.width + column);
  const float* const a = t.a + row * t.a_stride;
  for (int64_t i = 0; i < t.blocks; ++i) {
    const int64_t begin = t.order[i] * t.block, end = std::min(t.depth, begin + t.block);
    for (int64_t k = begin; k < end; ++k) {
      const __m256 b = _mm256_loadu_ps(t.b + k * t.width + column);
      for (int64_t r = 0; r < rows; ++r)
        sums[r] = multiply_add<type>(a[r * t.a_stride + k], b, sums[r]);
    }
  }
  for (int64_t r = 0; r < rows; ++r) _mm256_storeu_ps(t.c + (row + r) * t.width + column, sums[r]);
}

template <Arithmetic type>
void multiply_avx2(const TileProduct& t) {
  for (int64_t column = 0; column < t.width; column += kTileLanes) {
    int64_t row = 0;
    for (; row + kRowBlock <= t.rows; row += kRowBlock) rows_avx2<type, kRowBlock>(t, row, column);
    for (; row < t.rows; ++row) rows_avx2<type, 1>(t, row, column);
  }
}

bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool has_avx2() {
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  return has;
}

}  // namespace

void multiply_portable(Arithmetic type, const TileProduct& t) {
  for (int64_t row = 0; row < t.rows; ++row)
    each_block(t, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k)
        for (int64_t j = 0; j < t.width; ++j) {
          float& sum = t.c[row * t.width + j];
          sum = fused(type, t.a[row * t.a_stride + k], t.b[k * t.width + j], sum);
        }
    });
}

void multiply(Arithmetic type, const TileProduct& tile) {
  if (!has_avx2()) return multiply_portable(type, tile);
  if (type == Arithmetic::kFp16) return multiply_avx2<Arithmetic::kFp16>(tile);
  if (type == Arithmetic::kBf16) return multiply_avx2<Arithmetic::kBf16>(tile);
  multiply_avx2<Arithmetic::kFp32>(tile);
}

}  // namespace pfrt::wse
