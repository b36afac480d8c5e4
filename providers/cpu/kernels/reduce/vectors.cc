// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/reduce/vectors.h"

#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "providers/cpu/elements/arithmetic.h"
#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

#define PFRT_STEP PFRT_AVX2_FMA_INLINE static inline

constexpr int64_t kLanes = 8;
constexpr int64_t kTogether = 8;                // vectors that are joined before they are widened
constexpr int64_t kShort = kLanes * kTogether;  // elements of a row that stays in float32

// An operation on vectors: first(x) begins a chain, take(t, x) continues it, and join joins two.
// Lanes from |count| on get what changes nothing, by only().
struct Sum {
  static constexpr bool kInFloat = true;
  static constexpr double kIdentity = 0;
  PFRT_STEP __m256 only(__m256 x, __m256i, __m256) { return x; }
  PFRT_STEP __m256 first(__m256 x, __m256 mask) { return _mm256_and_ps(x, mask); }
  PFRT_STEP __m256 take(__m256 t, __m256 x, __m256 mask) { return join(t, first(x, mask)); }
  PFRT_STEP __m256 join(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
  PFRT_STEP __m256d join(__m256d a, __m256d b) { return _mm256_add_pd(a, b); }
  static double join(double a, double b) { return a + b; }
};

struct Squares : Sum {
  PFRT_STEP __m256 first(__m256 x, __m256) { return _mm256_mul_ps(x, x); }
  PFRT_STEP __m256 take(__m256 t, __m256 x, __m256) { return _mm256_fmadd_ps(x, x, t); }
};

// The instruction gives its second operand where one is NaN.
struct Greatest {
  static constexpr bool kInFloat = true;
  static constexpr double kIdentity = -std::numeric_limits<double>::infinity();
  PFRT_STEP __m256 only(__m256 x, __m256i here, __m256 mask) {
    const __m256 least = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    return _mm256_blendv_ps(_mm256_xor_ps(least, mask), x, _mm256_castsi256_ps(here));
  }
  PFRT_STEP __m256 first(__m256 x, __m256 mask) { return _mm256_xor_ps(x, mask); }
  PFRT_STEP __m256 take(__m256 t, __m256 x, __m256 mask) { return join(t, first(x, mask)); }
  PFRT_STEP __m256 join(__m256 a, __m256 b) {
    return _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  }
  PFRT_STEP __m256d join(__m256d a, __m256d b) {
    return _mm256_blendv_pd(_mm256_max_pd(a, b), a, _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
  }
  static double join(double a, double b) { return maximum_of(a, b); }
};

// Products of a few float32 may leave their range, though the whole product does not.
struct Product {
  static constexpr bool kInFloat = false;
  static constexpr double kIdentity = 1;
  PFRT_STEP __m256 only(__m256 x, __m256i here, __m256) {
    return _mm256_blendv_ps(_mm256_set1_ps(1), x, _mm256_castsi256_ps(here));
  }
  PFRT_STEP __m256 first(__m256 x, __m256) { return x; }
  PFRT_STEP __m256d join(__m256d a, __m256d b) { return _mm256_mul_pd(a, b); }
  static double join(double a, double b) { return a * b; }
};

struct Wide {
  __m256d low, high;
};

template <typename Op>
PFRT_STEP Wide none() {
  return {_mm256_set1_pd(Op::kIdentity), _mm256_set1_pd(Op::kIdentity)};
}

template <typename Op>
PFRT_STEP void absorb(Wide& acc, __m256 x) {
  acc.low = Op::join(acc.low, _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
  acc.high = Op::join(acc.high, _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
}

template <typename Op>
PFRT_STEP void absorb_at(double* acc, __m256 x) {
  Wide wide{_mm256_loadu_pd(acc), _mm256_loadu_pd(acc + kLanes / 2)};
  absorb<Op>(wide, x);
  _mm256_storeu_pd(acc, wide.low);
  _mm256_storeu_pd(acc + kLanes / 2, wide.high);
}

// The first n of 8 lanes.
PFRT_STEP __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(std::min(n, kLanes))),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

template <typename Op, bool kPart>
PFRT_STEP __m256 load(const float* x, __m256i here, __m256 mask) {
  if constexpr (kPart) return Op::only(_mm256_maskload_ps(x, here), here, mask);
  return _mm256_loadu_ps(x);
}

// Joins |n| vectors that begin |stride| elements apart, at most kTogether, to one.
template <typename Op, bool kPart>
PFRT_STEP __m256 chain(const float* x, int64_t stride, int64_t n, __m256i here, __m256 mask) {
  __m256 t = Op::first(load<Op, kPart>(x, here, mask), mask);
  for (int64_t i = 1; i < n; ++i)
    t = Op::take(t, load<Op, kPart>(x + i * stride, here, mask), mask);
  return t;
}

// Joins kTogether vectors pairwise.
template <typename Op, bool kPart>
PFRT_STEP __m256 tree(const float* x, int64_t stride, __m256i here, __m256 mask) {
  __m256 t[kTogether / 2];
#pragma GCC unroll 4
  for (int64_t i = 0; i < kTogether / 2; ++i) {
    t[i] = Op::first(load<Op, kPart>(x + 2 * i * stride, here, mask), mask);
    t[i] = Op::take(t[i], load<Op, kPart>(x + (2 * i + 1) * stride, here, mask), mask);
  }
  return Op::join(Op::join(t[0], t[1]), Op::join(t[2], t[3]));
}

template <typename Op>
PFRT_AVX2_FMA double row(const float* x, int64_t n, __m256 mask) {
  const __m256i all = _mm256_set1_epi32(-1);
  Wide acc = none<Op>();
  int64_t i = 0;
  if constexpr (Op::kInFloat) {
    for (; i + kShort <= n; i += kShort) absorb<Op>(acc, tree<Op, false>(x + i, kLanes, all, mask));
    if (const int64_t whole = (n - i) / kLanes; whole > 0) {
      absorb<Op>(acc, chain<Op, false>(x + i, kLanes, whole, all, mask));
      i += whole * kLanes;
    }
  } else {
    for (; i + kLanes <= n; i += kLanes) absorb<Op>(acc, _mm256_loadu_ps(x + i));
  }
  if (i < n) {
    const __m256i here = first_lanes(n - i);
    absorb<Op>(acc, Op::first(load<Op, true>(x + i, here, mask), mask));
  }
  alignas(32) double lanes[kLanes / 2];
  _mm256_store_pd(lanes, Op::join(acc.low, acc.high));
  return Op::join(Op::join(lanes[0], lanes[2]), Op::join(lanes[1], lanes[3]));
}

// Joins the lanes of each of 8 vectors: lane r of the result is that of t[r].
template <typename Op>
PFRT_STEP __m256 across(const __m256* t) {
  __m256 four[2];
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m256* const u = t + 4 * h;
    const __m256d a =
        _mm256_castps_pd(Op::join(_mm256_unpacklo_ps(u[0], u[1]), _mm256_unpackhi_ps(u[0], u[1])));
    const __m256d b =
        _mm256_castps_pd(Op::join(_mm256_unpacklo_ps(u[2], u[3]), _mm256_unpackhi_ps(u[2], u[3])));
    four[h] = Op::join(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
                       _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
  }
  return Op::join(_mm256_permute2f128_ps(four[0], four[1], 0x20),
                  _mm256_permute2f128_ps(four[0], four[1], 0x31));
}

// Eight rows at a time, in vectors of their own until the last elements.
template <typename Op>
PFRT_AVX2_FMA void short_rows(const float* x, int64_t stride, int64_t n, int64_t count, __m256 mask,
                              double* acc) {
  const int64_t whole = n / kLanes * kLanes;
  const __m256i here = first_lanes(n - whole);
  const __m256 identity = _mm256_set1_ps(static_cast<float>(Op::kIdentity));
  for (int64_t j = 0; j < count; j += kTogether) {
    const float* at[kTogether];
    for (int64_t r = 0; r < kTogether; ++r) at[r] = x + std::min(j + r, count - 1) * stride;
    __m256 t[kTogether];
    for (__m256& v : t) v = identity;
    if (whole < n) {
#pragma GCC unroll 8
      for (int64_t r = 0; r < kTogether; ++r)
        t[r] = Op::first(load<Op, true>(at[r] + whole, here, mask), mask);
    }
    for (int64_t i = 0; i < whole; i += kLanes) {
#pragma GCC unroll 8
      for (int64_t r = 0; r < kTogether; ++r)
        t[r] = Op::take(t[r], _mm256_loadu_ps(at[r] + i), mask);
    }
    const __m256 all = across<Op>(t);
    absorb_at<Op>(acc + j,
                  _mm256_blendv_ps(identity, all, _mm256_castsi256_ps(first_lanes(count - j))));
  }
}

PFRT_STEP __m256 bits_of(uint32_t mask) {
  return _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(mask)));
}

template <typename Op>
PFRT_AVX2_FMA void rows(const float* x, int64_t stride, int64_t n, int64_t count, uint32_t mask,
                        double* acc) {
  if constexpr (Op::kInFloat)
    if (n <= kShort) {
      short_rows<Op>(x, stride, n, count, bits_of(mask), acc);
      return;
    }
  for (int64_t j = 0; j < count; ++j)
    acc[j] = Op::join(acc[j], row<Op>(x + j * stride, n, bits_of(mask)));
}

template <typename Op, bool kPart>
PFRT_STEP void column(const float* x, int64_t stride, int64_t n, __m256i here, __m256 mask,
                      double* acc) {
  if constexpr (!Op::kInFloat) {
    for (int64_t i = 0; i < n; ++i) absorb_at<Op>(acc, load<Op, kPart>(x + i * stride, here, mask));
  } else if (n == kTogether) {
    absorb_at<Op>(acc, tree<Op, kPart>(x, stride, here, mask));
  } else {
    absorb_at<Op>(acc, chain<Op, kPart>(x, stride, n, here, mask));
  }
}

template <typename Op>
PFRT_AVX2_FMA void columns(const float* x, int64_t stride, int64_t n, int64_t count, uint32_t mask,
                           double* acc) {
  const __m256 bits = bits_of(mask);
  const int64_t whole = count / kLanes * kLanes;
  const __m256i here = first_lanes(count - whole);
  for (int64_t i = 0; i < n; i += kTogether) {
    const float* const from = x + i * stride;
    const int64_t lines = std::min(n - i, kTogether);
    for (int64_t j = 0; j < whole; j += kLanes)
      column<Op, false>(from + j, stride, lines, here, bits, acc + j);
    if (whole < count) column<Op, true>(from + whole, stride, lines, here, bits, acc + whole);
  }
}

template <typename Op>
void join_all(double* acc, const double* other, int64_t n) {
  for (int64_t j = 0; j < n; ++j) acc[j] = Op::join(acc[j], other[j]);
}

template <typename Op>
constexpr VectorReduction reduction() {
  return {Op::kIdentity, rows<Op>, columns<Op>, join_all<Op>};
}

#undef PFRT_STEP

}  // namespace

PFRT_AVX2_FMA bool all_between(const double* x, int64_t n, double least, double greatest) {
  const __m256d low = _mm256_set1_pd(least), high = _mm256_set1_pd(greatest);
  int64_t i = 0;
  for (; i + kLanes / 2 <= n; i += kLanes / 2) {
    const __m256d v = _mm256_loadu_pd(x + i);
    const __m256d in =
        _mm256_and_pd(_mm256_cmp_pd(v, low, _CMP_GE_OQ), _mm256_cmp_pd(v, high, _CMP_LE_OQ));
    if (_mm256_movemask_pd(in) != 0xf) return false;
  }
  for (; i < n; ++i)
    if (!(x[i] >= least && x[i] <= greatest)) return false;
  return true;
}

constinit const VectorReduction kVectorSum = reduction<Sum>();
constinit const VectorReduction kVectorSquares = reduction<Squares>();
constinit const VectorReduction kVectorGreatest = reduction<Greatest>();
constinit const VectorReduction kVectorProduct = reduction<Product>();

}  // namespace pfrt::cpu
