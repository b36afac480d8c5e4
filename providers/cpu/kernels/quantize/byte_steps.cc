// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/quantize/byte_steps.h"

#include <immintrin.h>

#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

constexpr float kLevels = 255;
constexpr int64_t kVectors = 4;  // at once, so that none waits for the last

// If one operand of a minimum or maximum is NaN, the instruction gives the second.

FloatRange range_of_rest(const float* x, int64_t n, FloatRange range) {
  for (int64_t i = 0; i < n; ++i) range.include({std::min(0.0f, x[i]), std::max(0.0f, x[i])});
  return range;
}

FloatRange range_sse2(const float* x, int64_t n) {
  constexpr int64_t kLanes = 4;
  __m128 low[kVectors], high[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) low[v] = high[v] = _mm_setzero_ps();
  int64_t i = 0;
  for (; i + kLanes * kVectors <= n; i += kLanes * kVectors)
    for (int64_t v = 0; v < kVectors; ++v) {
      const __m128 more = _mm_loadu_ps(x + i + kLanes * v);
      low[v] = _mm_min_ps(more, low[v]);
      high[v] = _mm_max_ps(more, high[v]);
    }
  FloatRange range;
  for (int64_t v = 0; v < kVectors; ++v) {
    float lows[kLanes], highs[kLanes];
    _mm_storeu_ps(lows, low[v]);
    _mm_storeu_ps(highs, high[v]);
    for (int64_t j = 0; j < kLanes; ++j) range.include({lows[j], highs[j]});
  }
  return range_of_rest(x + i, n - i, range);
}

PFRT_AVX2 FloatRange range_of_lanes(__m256 low, __m256 high) {
  __m128 a = _mm_min_ps(_mm256_castps256_ps128(low), _mm256_extractf128_ps(low, 1));
  __m128 b = _mm_max_ps(_mm256_castps256_ps128(high), _mm256_extractf128_ps(high, 1));
  a = _mm_min_ps(a, _mm_movehl_ps(a, a));
  b = _mm_max_ps(b, _mm_movehl_ps(b, b));
  a = _mm_min_ss(a, _mm_movehdup_ps(a));
  b = _mm_max_ss(b, _mm_movehdup_ps(b));
  return {_mm_cvtss_f32(a), _mm_cvtss_f32(b)};
}

PFRT_AVX2 FloatRange range_avx2(const float* x, int64_t n) {
  constexpr int64_t kLanes = 8;
  __m256 low[kVectors], high[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) low[v] = high[v] = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + kLanes * kVectors <= n; i += kLanes * kVectors)
    for (int64_t v = 0; v < kVectors; ++v) {
      const __m256 more = _mm256_loadu_ps(x + i + kLanes * v);
      low[v] = _mm256_min_ps(more, low[v]);
      high[v] = _mm256_max_ps(more, high[v]);
    }
  for (; i + kLanes <= n; i += kLanes) {
    const __m256 more = _mm256_loadu_ps(x + i);
    low[0] = _mm256_min_ps(more, low[0]);
    high[0] = _mm256_max_ps(more, high[0]);
  }
  for (int64_t v = 1; v < kVectors; ++v) {
    low[0] = _mm256_min_ps(low[v], low[0]);
    high[0] = _mm256_max_ps(high[v], high[0]);
  }
  return range_of_rest(x + i, n - i, range_of_lanes(low[0], high[0]));
}

PFRT_AVX512 FloatRange range_avx512(const float* x, int64_t n) {
  constexpr int64_t kLanes = 16;
  __m512 low[kVectors], high[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) low[v] = high[v] = _mm512_setzero_ps();
  int64_t i = 0;
  for (; i + kLanes * kVectors <= n; i += kLanes * kVectors)
    for (int64_t v = 0; v < kVectors; ++v) {
      const __m512 more = _mm512_loadu_ps(x + i + kLanes * v);
      low[v] = _mm512_maskz_min_ps(0xffff, more, low[v]);
      high[v] = _mm512_maskz_max_ps(0xffff, more, high[v]);
    }
  for (; i < n; i += kLanes) {
    const auto here = static_cast<__mmask16>(n - i >= kLanes ? 0xffff : (1u << (n - i)) - 1);
    const __m512 more = _mm512_maskz_loadu_ps(here, x + i);
    low[0] = _mm512_maskz_min_ps(0xffff, more, low[0]);
    high[0] = _mm512_maskz_max_ps(0xffff, more, high[0]);
  }
  for (int64_t v = 1; v < kVectors; ++v) {
    low[0] = _mm512_maskz_min_ps(0xffff, low[v], low[0]);
    high[0] = _mm512_maskz_max_ps(0xffff, high[v], high[0]);
  }
  alignas(64) float lows[kLanes], highs[kLanes];
  _mm512_store_ps(lows, low[0]);
  _mm512_store_ps(highs, high[0]);
  return range_of_lanes(_mm256_min_ps(_mm256_load_ps(lows), _mm256_load_ps(lows + kLanes / 2)),
                        _mm256_max_ps(_mm256_load_ps(highs), _mm256_load_ps(highs + kLanes / 2)));
}

// Computes the steps of the other two functions, by quotients.
void steps_sse2(const ByteSteps& steps, const float* x, int64_t n, uint8_t* y) {
  const __m128 scale = _mm_set1_ps(steps.scale), least = _mm_set1_ps(-steps.zero),
               most = _mm_set1_ps(kLevels - steps.zero);
  const __m128i zero = _mm_cvtps_epi32(_mm_set1_ps(steps.zero));
  const auto four = [&](const float* at) {
    const __m128 quotient = _mm_div_ps(_mm_loadu_ps(at), scale);
    const __m128 bounded = _mm_min_ps(_mm_max_ps(quotient, least), most);
    return _mm_add_epi32(_mm_cvtps_epi32(bounded), zero);
  };
  const auto sixteen = [&](const float* from, uint8_t* to) {
    const __m128i a = _mm_packs_epi32(four(from), four(from + 4)),
                  b = _mm_packs_epi32(four(from + 8), four(from + 12));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(a, b));
  };
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) sixteen(x + i, y + i);
  if (i == n) return;
  float last[16] = {};
  uint8_t out[16];
  std::copy_n(x + i, n - i, last);
  sixteen(last, out);
  std::copy_n(out, n - i, y + i);
}

// Numbers are bounded before a product, since those with infinities are NaN, and quotients after.
struct Bounds {
  float least, most;

  explicit Bounds(const ByteSteps& s) : least(-s.zero), most(kLevels - s.zero) {
    if (s.by) least *= s.scale, most *= s.scale;
  }
};

struct Avx2Steps {
  __m256 by, low, least, most;
  __m256i zero;
  bool multiplies;

  PFRT_AVX2_FMA_INLINE __m256i eight(const float* at) const {
    __m256 v = _mm256_loadu_ps(at);
    if (!multiplies) v = _mm256_div_ps(v, by);
    v = _mm256_min_ps(_mm256_max_ps(v, least), most);
    if (multiplies) v = _mm256_fmadd_ps(v, by, _mm256_mul_ps(v, low));
    return _mm256_add_epi32(_mm256_cvtps_epi32(v), zero);
  }
  PFRT_AVX2_FMA_INLINE void thirty_two(const float* from, uint8_t* to) const {
    const __m256i a = _mm256_packs_epi32(eight(from), eight(from + 8)),
                  b = _mm256_packs_epi32(eight(from + 16), eight(from + 24));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order));
  }
};

PFRT_AVX2_FMA void steps_avx2(const ByteSteps& steps, const float* x, int64_t n, uint8_t* y) {
  const Bounds bounds(steps);
  const Avx2Steps all{.by = _mm256_set1_ps(steps.by ? steps.by->high : steps.scale),
                      .low = _mm256_set1_ps(steps.by ? steps.by->low : 0),
                      .least = _mm256_set1_ps(bounds.least),
                      .most = _mm256_set1_ps(bounds.most),
                      .zero = _mm256_set1_epi32(static_cast<int>(steps.zero)),
                      .multiplies = steps.by.has_value()};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) all.thirty_two(x + i, y + i);
  if (i == n) return;
  float last[32] = {};
  uint8_t out[32];
  std::copy_n(x + i, n - i, last);
  all.thirty_two(last, out);
  std::copy_n(out, n - i, y + i);
}

struct Avx512Steps {
  __m512 by, low, least, most;
  __m512i zero;
  bool multiplies;

  PFRT_AVX512_INLINE __m512i sixteen(__m512 v) const {
    if (!multiplies) v = _mm512_div_ps(v, by);
    v = _mm512_maskz_min_ps(0xffff, _mm512_maskz_max_ps(0xffff, v, least), most);
    if (multiplies) v = _mm512_fmadd_ps(v, by, _mm512_mul_ps(v, low));
    return _mm512_add_epi32(_mm512_maskz_cvtps_epi32(0xffff, v), zero);
  }
  PFRT_AVX512_INLINE __m512i sixteen(const float* at) const { return sixteen(_mm512_loadu_ps(at)); }
  PFRT_AVX512_INLINE void sixty_four(const float* from, uint8_t* to) const {
    const __m512i a = _mm512_packs_epi32(sixteen(from), sixteen(from + 16)),
                  b = _mm512_packs_epi32(sixteen(from + 32), sixteen(from + 48));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(to,
                        _mm512_maskz_permutexvar_epi32(0xffff, order, _mm512_packus_epi16(a, b)));
  }
  PFRT_AVX512_INLINE void fewer(const float* from, int64_t n, uint8_t* to) const {
    const auto here = static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1);
    const __m512i whole = sixteen(_mm512_maskz_loadu_ps(here, from));
    _mm_mask_storeu_epi8(to, here, _mm512_maskz_cvtepi32_epi8(0xffff, whole));
  }
};

PFRT_AVX512 void steps_avx512(const ByteSteps& steps, const float* x, int64_t n, uint8_t* y) {
  const Bounds bounds(steps);
  const Avx512Steps all{.by = _mm512_set1_ps(steps.by ? steps.by->high : steps.scale),
                        .low = _mm512_set1_ps(steps.by ? steps.by->low : 0),
                        .least = _mm512_set1_ps(bounds.least),
                        .most = _mm512_set1_ps(bounds.most),
                        .zero = _mm512_set1_epi32(static_cast<int>(steps.zero)),
                        .multiplies = steps.by.has_value()};
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) all.sixty_four(x + i, y + i);
  for (; i < n; i += 16) all.fewer(x + i, n - i, y + i);
}

}  // namespace

RangeFn range_fn(Isa isa) {
  if (isa >= Isa::kAvx512) return range_avx512;
  return isa >= Isa::kAvx2 ? range_avx2 : range_sse2;
}

ByteStepsFn byte_steps_fn(Isa isa) {
  if (isa >= Isa::kAvx512) return steps_avx512;
  return isa >= Isa::kAvx2 ? steps_avx2 : steps_sse2;
}

}  // namespace pfrt::cpu
