// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/winograd/f32_tile.h"

#include <cmath>
#include <limits>

#include "providers/cpu/kernels/conv/winograd/bf16_tile.h"

namespace pfrt::cpu {
namespace {

using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(32)));

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
// A result |range| times smaller than elements above |large| is what roundings left of them.
struct Limits {
  float range, large;
};
constexpr Limits kOfFloats{4096, 65536};
// In F(2 x 2, 3 x 3) the elements of a position's sum are made only of pixels that it sees.
constexpr Limits kOfPairs{1, std::numeric_limits<float>::infinity()};

PFRT_AVX2_INLINE inline Floats magnitude(Floats x) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}
PFRT_AVX2_INLINE inline Floats greater(Floats x, Floats y) { return _mm256_max_ps(x, y); }

PFRT_AVX2 inline float greatest(Floats x) {
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  most = _mm_max_ss(most, _mm_movehdup_ps(most));
  return _mm_cvtss_f32(most);
}

// Columns of elements to columns of positions, then those to rows.
PFRT_AVX2_INLINE inline void all_positions(const Floats* m, Floats* out, ThreeTaps) {
  for (int64_t i = 0; i < ThreeTaps::kOut; ++i) out[i] = ThreeTaps::position(i, m);
}
template <typename Method>
PFRT_AVX2_INLINE inline void all_positions(const Floats* m, Floats* out, Method) {
  Method::positions(m, out, 1);
}

// Whether every position, less its bias, is at least |least| in one of the channels.
bool none_below(float least, int64_t outputs, const float* bias, const float* positions,
                int64_t row, int64_t out) {
  for (int64_t y = 0; y < out; ++y)
    for (int64_t x = 0; x < out; ++x) {
      const float* const at = positions + y * row + x * kPanel;
      bool found = false;
      for (int64_t c = 0; c < outputs && !found; ++c) found = std::fabs(at[c] - bias[c]) >= least;
      if (!found) return false;
    }
  return true;
}

template <typename Method, const Limits& kLimits>
PFRT_AVX2 bool transform_sums(const float* in, int64_t stride, int64_t outputs, const float* bias,
                              float* out, int64_t row) {
  constexpr int64_t kSide = Method::kSide, kOut = Method::kOut;
  Floats nothing = {}, elements = {};
  for (int64_t half = 0; half < outputs; half += 8) {
    Floats lines[kOut][kSide];
#pragma GCC unroll 6
    for (int64_t x = 0; x < kSide; ++x) {
      Floats column[kSide], sums[kOut];
#pragma GCC unroll 6
      for (int64_t y = 0; y < kSide; ++y) {
        column[y] = load_lanes<Floats>(in + (kSide * y + x) * stride + half);
        elements = greater(elements, magnitude(column[y]));
      }
      all_positions(column, sums, Method());
#pragma GCC unroll 4
      for (int64_t y = 0; y < kOut; ++y) lines[y][x] = sums[y];
    }
    const Floats add = load_lanes<Floats>(bias + half);
#pragma GCC unroll 4
    for (int64_t y = 0; y < kOut; ++y) {
      Floats sums[kOut];
      all_positions(lines[y], sums, Method());
#pragma GCC unroll 4
      for (int64_t x = 0; x < kOut; ++x) {
        nothing += sums[x] - sums[x];
        store_lanes(out + y * row + x * kPanel + half, add + sums[x]);
      }
    }
  }
  if (_mm256_movemask_ps(_mm256_cmp_ps(nothing, nothing, _CMP_UNORD_Q)) != 0) return false;
  const float most = greatest(elements);
  return most <= kLimits.large || none_below(most / kLimits.range, outputs, bias, out, row, kOut);
}

template <typename Method>
PFRT_AVX2 void transform_line(const float* taps, float* out, int64_t stride) {
  constexpr int64_t kTaps = Method::kTaps, kElements = Method::kSide * Method::kSide;
  for (int64_t o = 0; o < kPanel; o += 4) {
    Doubles wide[kTaps][kTaps], elements[kElements];
#pragma GCC unroll 9
    for (int64_t t = 0; t < kTaps * kTaps; ++t)
      wide[t / kTaps][t % kTaps] = _mm256_cvtps_pd(_mm_loadu_ps(taps + t * kPanel + o));
    transform_taps<Method>(wide, elements);
    for (int64_t p = 0; p < kElements; ++p)
      _mm_storeu_ps(out + p * stride + o, _mm256_cvtpd_ps(elements[p] * Method::kTapsScale));
  }
}

template <typename Method, const Limits& kLimits = kOfFloats>
constexpr F32Method method(bool exact, bool pairs, decltype(F32Method::transform_pixels) pixels) {
  return {Method::kOut, Method::kSide, Method::kTaps,          exact,
          pairs,        pixels,        transform_line<Method>, transform_sums<Method, kLimits>};
}

}  // namespace

constinit const F32Method kF32TilesOf2 =
    method<ThreeTaps>(true, false, transform_pixels<ThreeTaps, Floats>);
constinit const F32Method kF32TilesOf4 =
    method<ThreeTapsOf4>(false, false, transform_pixels_of_six);
constinit const F32Method kF32TilesOf2By5 = method<FiveTaps>(false, false, transform_pixels_of_six);
constinit const F32Method kBf16TilesOf2 =
    method<ThreeTaps, kOfPairs>(false, true, transform_pixels_to_pairs);

}  // namespace pfrt::cpu
