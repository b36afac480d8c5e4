// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/activation_vectors.h"

#include <immintrin.h>

#include <cstring>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLanes = 8;

PFRT_AVX2_FMA_INLINE inline __m256 number(float x) { return _mm256_set1_ps(x); }
PFRT_AVX2_FMA_INLINE inline __m256 magnitude(__m256 x) {
  return _mm256_andnot_ps(number(-0.0f), x);
}
PFRT_AVX2_FMA_INLINE inline __m256 power_of_two(__m256i e) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
}

// e^x = 2^n (1 + r + r^2 p(r)) with n = round(x / ln 2), as the generated loops have it
// (loop/maths.cc). 2^n is multiplied in two halves, so that results below the smallest normal
// number round once. NaN stays: it is the second operand.
PFRT_AVX2_FMA_INLINE inline __m256 exp_of(__m256 x) {
  x = _mm256_min_ps(number(89), _mm256_max_ps(number(-104), x));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, number(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fmadd_ps(n, number(-0x1.62e4p-1f), x);
  r = _mm256_fmadd_ps(n, number(-0x1.7f7d1cp-20f), r);
  __m256 p = number(0x1.6d117cp-10f);
  for (const float term : {0x1.120be2p-7f, 0x1.555518p-5f, 0x1.5554dcp-3f, 0.5f})
    p = _mm256_fmadd_ps(p, r, number(term));
  const __m256 sum = _mm256_add_ps(number(1), r);
  const __m256 lost = _mm256_sub_ps(r, _mm256_sub_ps(sum, number(1)));
  const __m256 mantissa = _mm256_add_ps(sum, _mm256_fmadd_ps(_mm256_mul_ps(r, r), p, lost));
  const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  return _mm256_mul_ps(_mm256_mul_ps(mantissa, power_of_two(half)),
                       power_of_two(_mm256_sub_epi32(whole, half)));
}

// q = e / (1 + e) or 1 / (1 + e) with e = e^-|x|: neither side overflows or cancels. The error of
// rounding 1 + e is subtracted again, to first order.
struct SigmoidOf {
  PFRT_AVX2_FMA_INLINE static __m256 of(__m256 x) {
    const __m256 e = exp_of(_mm256_or_ps(x, number(-0.0f)));
    const __m256 sum = _mm256_add_ps(number(1), e);
    const __m256 extra = _mm256_sub_ps(_mm256_sub_ps(sum, number(1)), e);
    const __m256 q = _mm256_div_ps(_mm256_blendv_ps(number(1), e, x), sum);
    return _mm256_fmadd_ps(q, extra, q);
  }
};

// For |x| < 0.8 the result is x + x^3 q(x^2) with q fitted at Chebyshev nodes to 2e-8; otherwise it
// is 1 - 2 / (e^2|x| + 1) with the sign of x.
struct TanhOf {
  PFRT_AVX2_FMA_INLINE static __m256 of(__m256 x) {
    const __m256 size = magnitude(x);
    const __m256 e = exp_of(_mm256_add_ps(size, size));
    const __m256 large =
        _mm256_sub_ps(number(1), _mm256_div_ps(number(2), _mm256_add_ps(e, number(1))));
    const __m256 square = _mm256_mul_ps(x, x);
    __m256 q = number(0.0017628772540362035f);
    for (const float term : {-0.007734463236752824f, 0.02152135517349759f, -0.05391799249584477f,
                             0.13333062659482736f, -0.3333333093598059f})
      q = _mm256_fmadd_ps(q, square, number(term));
    const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(x, square), q, x);
    const __m256 sign = _mm256_and_ps(number(-0.0f), x);
    return _mm256_blendv_ps(_mm256_or_ps(large, sign), small,
                            _mm256_cmp_ps(size, number(0.8f), _CMP_LT_OQ));
  }
};

template <typename Function>
__attribute__((target("avx2,fma"))) void apply(float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    _mm256_storeu_ps(x + i, Function::of(_mm256_loadu_ps(x + i)));
  if (i == n) return;
  float rest[kLanes] = {};
  const auto bytes = static_cast<size_t>(n - i) * sizeof(float);
  std::memcpy(rest, x + i, bytes);
  _mm256_storeu_ps(rest, Function::of(_mm256_loadu_ps(rest)));
  std::memcpy(x + i, rest, bytes);
}

}  // namespace

const ActivationVectors* ActivationVectors::here() {
  static constexpr ActivationVectors kVectors{apply<SigmoidOf>, apply<TanhOf>};
  return isa() >= Isa::kAvx2 ? &kVectors : nullptr;
}

}  // namespace pfrt::cpu
