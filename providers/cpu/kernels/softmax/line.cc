// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/softmax/line.h"

#include <immintrin.h>

#include <cmath>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"

#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12, of its own header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace pfrt::cpu {
namespace {

PFRT_AVX512 inline __mmask16 lanes(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1);
}

PFRT_AVX512 float greatest_512(const float* x, int64_t n, float floor) {
  __m512 best = _mm512_set1_ps(floor);
  __mmask16 odd = floor != floor;
  for (int64_t i = 0; i < n; i += 16) {
    const __m512 v = _mm512_mask_loadu_ps(best, lanes(n - i), x + i);
    odd |= _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    best = _mm512_maskz_max_ps(0xffff, best, v);
  }
  return odd != 0 ? __builtin_nanf("") : _mm512_reduce_max_ps(best);
}

// exp of x: 2^n, where n log 2 is the multiple of log 2 nearest to x, times seven terms of the
// series for the rest, which is at most log(2) / 2.
PFRT_AVX512 inline __m512 exp_512(__m512 x) {
  const __m512 n = _mm512_maskz_roundscale_ps(0xffff, x * _mm512_set1_ps(1.44269504f), 0);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  constexpr float kTerms[] = {1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 0.5f, 1.f, 1.f};
  __m512 p = _mm512_set1_ps(1.f / 5040);
  for (const float term : kTerms) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(term));
  return _mm512_maskz_scalef_ps(0xffff, p, n);
}

// Arguments are cut at -200: below, scalef would see infinities minus infinities. NaN stays,
// because x is the second operand.
PFRT_AVX512 inline __m512 exp_of_less_512(__m512 x) {
  return exp_512(_mm512_maskz_max_ps(0xffff, _mm512_set1_ps(-200.f), x));
}

struct Sums512 {
  __m512d low, high;
};

PFRT_AVX512 inline void add_512(Sums512& sums, __m512 v) {
  sums.low += _mm512_maskz_cvtps_pd(0xff, _mm512_castps512_ps256(v));
  sums.high += _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, v, 1));
}

PFRT_AVX512 double exp_line_512(const float* x, float* y, int64_t n, float shift) {
  constexpr int64_t kLanes = 16;
  const __m512 by = _mm512_set1_ps(shift);
  Sums512 sums{_mm512_setzero_pd(), _mm512_setzero_pd()};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const __m512 first = exp_of_less_512(_mm512_loadu_ps(x + i) - by);
    const __m512 second = exp_of_less_512(_mm512_loadu_ps(x + i + kLanes) - by);
    _mm512_storeu_ps(y + i, first);
    _mm512_storeu_ps(y + i + kLanes, second);
    add_512(sums, first);
    add_512(sums, second);
  }
  for (; i < n; i += kLanes) {
    const __mmask16 here = lanes(n - i);
    __m512 v = exp_of_less_512(_mm512_maskz_loadu_ps(here, x + i) - by);
    v = _mm512_maskz_mov_ps(here, v);
    _mm512_mask_storeu_ps(y + i, here, v);
    add_512(sums, v);
  }
  return _mm512_reduce_add_pd(sums.low + sums.high);
}

PFRT_AVX512 void scale_line_512(const float* x, float* y, int64_t n, double factor) {
  const __m512d by = _mm512_set1_pd(factor);
  for (int64_t i = 0; i < n; i += 8) {
    const __mmask8 here = static_cast<__mmask8>(n - i >= 8 ? 0xff : (1u << (n - i)) - 1);
    const __m512d v = _mm512_maskz_cvtps_pd(here, _mm256_maskz_loadu_ps(here, x + i));
    _mm256_mask_storeu_ps(y + i, here, _mm512_maskz_cvtpd_ps(here, v * by));
  }
}

PFRT_AVX512 void subtract_line_512(const float* x, float* y, int64_t n, float first, float second) {
  const __m512 a = _mm512_set1_ps(first), b = _mm512_set1_ps(second);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 here = lanes(n - i);
    _mm512_mask_storeu_ps(y + i, here, _mm512_maskz_loadu_ps(here, x + i) - a - b);
  }
}

}  // namespace
}  // namespace pfrt::cpu

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

namespace pfrt::cpu {
namespace {

// The first n of 8 lanes.
PFRT_AVX2_FMA inline __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n < 8 ? n : 8)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

PFRT_AVX2_FMA inline float greatest_lane_256(__m256 x) {
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  return _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
}

PFRT_AVX2_FMA float greatest_256(const float* x, int64_t n, float floor) {
  __m256 best = _mm256_set1_ps(floor), odd = _mm256_cmp_ps(best, best, _CMP_UNORD_Q);
  __m256 other = best;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
    odd = _mm256_or_ps(odd, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
    best = _mm256_max_ps(best, a);
    other = _mm256_max_ps(other, b);
  }
  best = _mm256_max_ps(best, other);
  for (; i < n; i += 8) {
    const __m256i here = first_lanes(n - i);
    const __m256 v =
        _mm256_blendv_ps(best, _mm256_maskload_ps(x + i, here), _mm256_castsi256_ps(here));
    odd = _mm256_or_ps(odd, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    best = _mm256_max_ps(best, v);
  }
  if (_mm256_movemask_ps(odd) != 0) return __builtin_nanf("");
  return greatest_lane_256(best);
}

PFRT_AVX2_FMA inline __m256 power_of_two(__m256i e) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
}

constexpr float kLog2E = 1.44269504f, kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
// Coefficients of the series, after 1 / 5040.
constexpr float kTerms[] = {1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 0.5f, 1.f, 1.f};

// Computes what exp_512 does. Outside [-105, 89] results are 0 and infinity anyway. NaN stays NaN,
// because x is the second operand of min and max.
PFRT_AVX2_FMA inline __m256 exp_256(__m256 x) {
  x = _mm256_max_ps(_mm256_set1_ps(-105.f), x);
  x = _mm256_min_ps(_mm256_set1_ps(89.f), x);
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(kLog2E)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLog2High), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLog2Low), r);
  __m256 p = _mm256_set1_ps(1.f / 5040);
  for (const float term : kTerms) p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(term));
  // The product is multiplied by 2^n in two steps: neither leaves the range, and the second alone
  // rounds.
  const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  return _mm256_mul_ps(_mm256_mul_ps(p, power_of_two(half)),
                       power_of_two(_mm256_sub_epi32(whole, half)));
}

// Computes exp_256 for x in [kNormal, 0], several vectors by turns, so that none waits for its last
// result. Adding a large constant rounds n into the lowest bits of the sum, from where it is added
// to the exponent; the result is in the normal range.
constexpr int kTogether = 4;
constexpr float kNormal = -87;
PFRT_AVX2_FMA inline void exp_normal_256(__m256* x) {
  const __m256 units = _mm256_set1_ps(0x1.8p23f);
  __m256 n[kTogether], p[kTogether];
#pragma GCC unroll 4
  for (int v = 0; v < kTogether; ++v) {
    n[v] = _mm256_fmadd_ps(x[v], _mm256_set1_ps(kLog2E), units);
    const __m256 whole = _mm256_sub_ps(n[v], units);
    x[v] = _mm256_fnmadd_ps(whole, _mm256_set1_ps(kLog2High), x[v]);
    x[v] = _mm256_fnmadd_ps(whole, _mm256_set1_ps(kLog2Low), x[v]);
    p[v] = _mm256_set1_ps(1.f / 5040);
  }
#pragma GCC unroll 8
  for (const float term : kTerms)
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) p[v] = _mm256_fmadd_ps(p[v], x[v], _mm256_set1_ps(term));
#pragma GCC unroll 4
  for (int v = 0; v < kTogether; ++v)
    x[v] = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p[v]),
                                                _mm256_slli_epi32(_mm256_castps_si256(n[v]), 23)));
}

struct Sums256 {
  __m256d low, high;
};

PFRT_AVX2_FMA inline void add_256(Sums256& sums, __m256 v) {
  sums.low = _mm256_add_pd(sums.low, _mm256_cvtps_pd(_mm256_castps256_ps128(v)));
  sums.high = _mm256_add_pd(sums.high, _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
}

PFRT_AVX2_FMA __attribute__((noinline)) void exp_each_256(__m256* e) {
  for (int v = 0; v < kTogether; ++v) e[v] = exp_256(e[v]);
}

PFRT_AVX2_FMA inline void exp_together_256(__m256* e) {
  __m256 normal = _mm256_cmp_ps(e[0], _mm256_set1_ps(kNormal), _CMP_GE_OQ);
#pragma GCC unroll 4
  for (int v = 1; v < kTogether; ++v)
    normal = _mm256_and_ps(normal, _mm256_cmp_ps(e[v], _mm256_set1_ps(kNormal), _CMP_GE_OQ));
  if (_mm256_movemask_ps(normal) == 0xff) return exp_normal_256(e);
  exp_each_256(e);
}

// Adds exponentials in float32, a few, and the sum in double.
PFRT_AVX2_FMA inline void add_together_256(Sums256& sums, const __m256* e) {
  add_256(sums, _mm256_add_ps(_mm256_add_ps(e[0], e[1]), _mm256_add_ps(e[2], e[3])));
}

// Computes as many elements as are computed together.
PFRT_AVX2_FMA inline void exp_next_256(const float* x, float* y, __m256 by, Sums256& sums) {
  __m256 e[kTogether];
#pragma GCC unroll 4
  for (int v = 0; v < kTogether; ++v) e[v] = _mm256_sub_ps(_mm256_loadu_ps(x + 8 * v), by);
  exp_together_256(e);
#pragma GCC unroll 4
  for (int v = 0; v < kTogether; ++v) _mm256_storeu_ps(y + 8 * v, e[v]);
  add_together_256(sums, e);
}

PFRT_AVX2_FMA inline double total_256(const Sums256& sums) {
  const __m256d both = _mm256_add_pd(sums.low, sums.high);
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(both), _mm256_extractf128_pd(both, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

// The last |n| elements, fewer than are computed together. |last| holds the last vector of the
// line, at |last_y|, some of which may belong to those before; where the line is shorter than a
// vector, |last| holds its first elements.
PFRT_AVX2_FMA void exp_rest_256(const float* x, float* y, int64_t n, float shift, __m256 last,
                                float* last_y, int64_t line, Sums256& sums) {
  const __m256 by = _mm256_set1_ps(shift);
  __m256 e[kTogether];
  const int64_t whole = n / 8, rest = n % 8;
#pragma GCC unroll 4
  for (int v = 0; v < kTogether; ++v) {
    e[v] = _mm256_setzero_ps();
    if (v < whole) {
      e[v] = _mm256_sub_ps(_mm256_loadu_ps(x + 8 * v), by);
    } else if (v == whole && rest > 0) {
      e[v] = _mm256_sub_ps(last, by);
    }
  }
  exp_together_256(e);
#pragma GCC unroll 4
  for (int v = 0; v < kTogether; ++v) {
    if (v < whole) {
      _mm256_storeu_ps(y + 8 * v, e[v]);
    } else if (v == whole && rest > 0) {
      if (line >= 8) {
        _mm256_storeu_ps(last_y, e[v]);
        // What belongs to those before has been counted.
        e[v] = _mm256_andnot_ps(_mm256_castsi256_ps(first_lanes(8 - rest)), e[v]);
      } else {
        _mm256_maskstore_ps(last_y, first_lanes(rest), e[v]);
        e[v] = _mm256_and_ps(e[v], _mm256_castsi256_ps(first_lanes(rest)));
      }
    } else {
      e[v] = _mm256_setzero_ps();
    }
  }
  add_together_256(sums, e);
}

PFRT_AVX2_FMA double exp_line_256(const float* x, float* y, int64_t n, float shift) {
  const __m256 by = _mm256_set1_ps(shift);
  Sums256 sums{_mm256_setzero_pd(), _mm256_setzero_pd()};
  // It is read before |y| is written, which may be |x|.
  const int64_t at = n < 8 ? 0 : n - 8;
  const __m256 last = n < 8 ? _mm256_maskload_ps(x, first_lanes(n)) : _mm256_loadu_ps(x + at);
  int64_t i = 0;
  for (; i + 8 * kTogether <= n; i += 8 * kTogether) exp_next_256(x + i, y + i, by, sums);
  if (i < n) exp_rest_256(x + i, y + i, n - i, shift, last, y + at, n, sums);
  return total_256(sums);
}

PFRT_AVX2_FMA inline __m256 masked_256(__m256 x, __m256 mask, __m256 vanishes) {
  return _mm256_blendv_ps(_mm256_add_ps(x, mask), mask, _mm256_cmp_ps(mask, vanishes, _CMP_LE_OQ));
}

// Adds the mask and finds the greatest score. NaN is passed over, because |best| is the second
// operand.
PFRT_AVX2_FMA inline void add_mask_and_find_most_256(LineMath::Scores& row, __m256 vanishes) {
  const float* const mask = row.mask;
  float* const x = row.x;
  __m256 best = _mm256_set1_ps(row.most);
  int64_t i = 0;
  for (; i + 8 <= row.n; i += 8) {
    __m256 v = _mm256_loadu_ps(x + i);
    if (mask != nullptr) {
      v = masked_256(v, _mm256_loadu_ps(mask + i), vanishes);
      _mm256_storeu_ps(x + i, v);
    }
    best = _mm256_max_ps(v, best);
  }
  if (i < row.n) {
    const __m256i here = first_lanes(row.n - i);
    __m256 v = _mm256_loadu_ps(x + i);
    if (mask != nullptr) v = masked_256(v, _mm256_maskload_ps(mask + i, here), vanishes);
    _mm256_storeu_ps(x + i, v);
    best = _mm256_max_ps(_mm256_blendv_ps(best, v, _mm256_castsi256_ps(here)), best);
  }
  row.most = greatest_lane_256(best);
}

// All rows are gone through twice, because finding the greatest score takes long to come.
PFRT_AVX2_FMA void weigh_256(LineMath::Scores* rows, int64_t count, float vanishes) {
  for (int64_t r = 0; r < count; ++r) add_mask_and_find_most_256(rows[r], _mm256_set1_ps(vanishes));
  for (int64_t r = 0; r < count; ++r)
    if (rows[r].most != -__builtin_inff())
      rows[r].sum = exp_line_256(rows[r].x, rows[r].x, rows[r].n, rows[r].most);
}

PFRT_AVX2_FMA void scale_line_256(const float* x, float* y, int64_t n, double factor) {
  const __m256 by = _mm256_set1_ps(static_cast<float>(factor));
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), by));
#pragma GCC unroll 1
  for (; i < n; ++i) y[i] = x[i] * _mm256_cvtss_f32(by);
}

PFRT_AVX2_FMA void subtract_line_256(const float* x, float* y, int64_t n, float first,
                                     float second) {
  const __m256 a = _mm256_set1_ps(first), b = _mm256_set1_ps(second);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_sub_ps(_mm256_sub_ps(_mm256_loadu_ps(x + i), a), b));
  for (; i < n; ++i) y[i] = (x[i] - first) - second;
}

PFRT_AVX2_FMA bool add_mask_256(const float* mask, float* x, int64_t n, float vanishes) {
  const __m256 nothing = _mm256_set1_ps(-__builtin_inff()), most = _mm256_set1_ps(vanishes);
  __m256 sees = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 m = _mm256_loadu_ps(mask + i);
    sees = _mm256_or_ps(sees, _mm256_cmp_ps(m, nothing, _CMP_NEQ_UQ));
    const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(x + i), m);
    _mm256_storeu_ps(x + i, _mm256_blendv_ps(sum, m, _mm256_cmp_ps(m, most, _CMP_LE_OQ)));
  }
  bool some = _mm256_movemask_ps(sees) != 0;
  for (; i < n; ++i) {
    some |= mask[i] != -__builtin_inff();
    x[i] = mask[i] <= vanishes ? mask[i] : x[i] + mask[i];
  }
  return some;
}

bool add_mask_reference(const float* mask, float* x, int64_t n, float vanishes) {
  bool some = false;
  for (int64_t i = 0; i < n; ++i) {
    some |= mask[i] != -__builtin_inff();
    x[i] = mask[i] <= vanishes ? mask[i] : x[i] + mask[i];
  }
  return some;
}

float greatest_reference(const float* x, int64_t n, float floor) {
  float best = floor;
  for (int64_t i = 0; i < n; ++i) best = best > x[i] || best != best ? best : x[i];
  return best;
}

double exp_line_reference(const float* x, float* y, int64_t n, float shift) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = std::exp(x[i] - shift);
    sum += static_cast<double>(y[i]);
  }
  return sum;
}

void scale_line_reference(const float* x, float* y, int64_t n, double factor) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(x[i]) * factor);
}

void subtract_line_reference(const float* x, float* y, int64_t n, float first, float second) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - first) - second;
}

}  // namespace

LineMath LineMath::here() {
  if (isa() >= Isa::kAvx512)
    return {greatest_512, exp_line_512, scale_line_512, subtract_line_512, add_mask_256, nullptr};
  if (isa() >= Isa::kAvx2)
    return {greatest_256, exp_line_256, scale_line_256, subtract_line_256, add_mask_256, weigh_256};
  return {greatest_reference,      exp_line_reference, scale_line_reference,
          subtract_line_reference, add_mask_reference, nullptr};
}

}  // namespace pfrt::cpu
