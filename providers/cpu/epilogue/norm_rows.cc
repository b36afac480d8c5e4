// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/epilogue/norm_rows.h"

#include <immintrin.h>

#include <cmath>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernel/stop_poll.h"

namespace pfrt::cpu {
namespace {

// So many sums at once do not wait for each other; they are added pairwise at the end.
constexpr int64_t kSums = 32;

// Adds elements from |i| on, a multiple of kSums, to the sums |s|.
template <typename T, typename Fn>
void add_up_part(const T* x, int64_t i, int64_t n, double* s, Fn&& fn) {
  for (; i + kSums <= n; i += kSums)
    for (int64_t j = 0; j < kSums; ++j) s[j] += fn(static_cast<double>(x[i + j]));
  for (int64_t j = 0; i < n; ++i, ++j) s[j] += fn(static_cast<double>(x[i]));
}

template <typename T, typename Fn>
double add_up_plainly(const T* x, int64_t n, Fn&& fn) {
  double s[kSums] = {};
  add_up_part(x, 0, n, s, fn);
  for (int64_t half = kSums / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) s[j] += s[j + half];
  return s[0];
}

// Computes add_up_plainly of x, or of (x - center)^2, in vectors. It uses no FMA, which would give
// other bits.
template <bool kSquares, typename Fn>
PFRT_AVX2 double add_up_avx2(const float* x, int64_t n, double center, Fn&& fn) {
  constexpr int64_t kLanes = 4, kVectors = kSums / kLanes;
  __m256d sums[kVectors];
  for (__m256d& sum : sums) sum = _mm256_setzero_pd();
  const __m256d by = _mm256_set1_pd(center);
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
#pragma GCC unroll 8
    for (int64_t v = 0; v < kVectors; ++v) {
      __m256d wide = _mm256_cvtps_pd(_mm_loadu_ps(x + i + kLanes * v));
      if constexpr (kSquares) {
        wide = _mm256_sub_pd(wide, by);
        wide = _mm256_mul_pd(wide, wide);
      }
      sums[v] = _mm256_add_pd(sums[v], wide);
    }
  if (i < n) {
    double s[kSums];
    for (int64_t v = 0; v < kVectors; ++v) _mm256_storeu_pd(s + kLanes * v, sums[v]);
    add_up_part(x, i, n, s, fn);
    for (int64_t v = 0; v < kVectors; ++v) sums[v] = _mm256_loadu_pd(s + kLanes * v);
  }
  for (int64_t half = kVectors / 2; half > 0; half /= 2)
    for (int64_t v = 0; v < half; ++v) sums[v] = _mm256_add_pd(sums[v], sums[v + half]);
  const __m128d two =
      _mm_add_pd(_mm256_castpd256_pd128(sums[0]), _mm256_extractf128_pd(sums[0], 1));
  return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}

PFRT_AVX2 int64_t scale_and_shift_avx2(const float* x, float center, float factor,
                                       const float* scale, const float* bias, float* y, int64_t n) {
  constexpr int64_t kLanes = 8;
  const __m256 middle = _mm256_set1_ps(center), by = _mm256_set1_ps(factor);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    __m256 v = _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(x + i), middle), by);
    v = _mm256_mul_ps(v, _mm256_loadu_ps(scale + i));
    if (bias != nullptr) v = _mm256_add_ps(v, _mm256_loadu_ps(bias + i));
    _mm256_storeu_ps(y + i, v);
  }
  return i;
}

template <bool kSquares, typename T, typename Fn>
double add_up(Pace& pace, const T* x, int64_t n, double center, bool avx2, Fn&& fn) {
  double sum = 0;
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float>)
      if (avx2) {
        sum += add_up_avx2<kSquares>(x + begin, end - begin, center, fn);
        return;
      }
    sum += add_up_plainly(x + begin, end - begin, fn);
  });
  return sum;
}

}  // namespace

template <typename T>
double row_sum(Pace& pace, const T* x, int64_t n, bool avx2) {
  return add_up<false>(pace, x, n, 0, avx2, [](double v) { return v; });
}

template <typename T>
double row_squares(Pace& pace, const T* x, int64_t n, double center, bool avx2) {
  return add_up<true>(pace, x, n, center, avx2,
                      [center](double v) { return (v - center) * (v - center); });
}

template <typename T>
double row_magnitudes(Pace& pace, const T* x, int64_t n) {
  return add_up<false>(pace, x, n, 0, false, [](double v) { return std::fabs(v); });
}

template <typename T>
void scale_and_shift(const T* x, T center, T factor, const T* scale, const T* bias, T* y, int64_t n,
                     bool avx2) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>)
    if (avx2) i = scale_and_shift_avx2(x, center, factor, scale, bias, y, n);
  for (; i < n; ++i) {
    const T v = (x[i] - center) * factor * scale[i];
    y[i] = bias == nullptr ? v : v + bias[i];
  }
}

template double row_sum(Pace&, const float*, int64_t, bool);
template double row_sum(Pace&, const double*, int64_t, bool);
template double row_squares(Pace&, const float*, int64_t, double, bool);
template double row_squares(Pace&, const double*, int64_t, double, bool);
template double row_magnitudes(Pace&, const float*, int64_t);
template double row_magnitudes(Pace&, const double*, int64_t);
template void scale_and_shift(const float*, float, float, const float*, const float*, float*,
                              int64_t, bool);
template void scale_and_shift(const double*, double, double, const double*, const double*, double*,
                              int64_t, bool);

}  // namespace pfrt::cpu
