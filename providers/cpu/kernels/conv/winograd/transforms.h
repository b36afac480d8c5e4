// SPDX-License-Identifier: Apache-2.0
//
// Winograd's transforms. A method, ThreeTaps, ThreeTapsOf4, FiveTaps or TwoTaps, gives them along
// one dimension: element i of pixels, element i of taps, and position i of what the products of
// both sum to. In two dimensions all rows are transformed, then all columns. V is a number or a
// vector of them: pixels and sums come as vectors of 32 bytes, 8 channels or pairs of channels.
// Pure functions; thread-safe.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/jit/panel_microkernel.h"

namespace pfrt::cpu {

// F(2, 3). Transformed taps are doubled, which makes all factors whole.
struct ThreeTaps {
  static constexpr int64_t kTaps = 3, kSide = 4, kOut = 2;
  static constexpr double kTapsScale = 0.25;  // both dimensions are doubled
  template <typename V>
  PFRT_AVX2_INLINE static V pixels(int64_t i, const V* d) {
    const V all[] = {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
    return all[i];
  }
  template <typename V>
  PFRT_AVX2_INLINE static V taps(int64_t i, const V* g) {
    const V all[] = {g[0] + g[0], (g[0] + g[1]) + g[2], (g[0] - g[1]) + g[2], g[2] + g[2]};
    return all[i];
  }
  template <typename V>
  PFRT_AVX2_INLINE static V position(int64_t i, const V* m) {
    return i == 0 ? m[0] + (m[1] + m[2]) : (m[1] - m[2]) - m[3];
  }
};

// Six elements by the points 0, 2/3, -2/3, 3/2, -3/2 and infinity, as F(4, 3) and F(2, 5) have
// them. Whole points, as 1 and 2, are the usual ones, but their errors are twice these: the powers
// of points whose product is 1 stay near 1. Transformed taps take the divisions; they come in
// double precision.
struct SixPoints {
  static constexpr int64_t kSide = 6;
  static constexpr double kTapsScale = 1;
  static constexpr double kA = 2.0 / 3, kB = 3.0 / 2, kA2 = kA * kA, kB2 = kB * kB;
  static constexpr auto kFA = static_cast<float>(kA), kFB = static_cast<float>(kB),
                        kFA2 = static_cast<float>(kA2), kFB2 = static_cast<float>(kB2),
                        kFA3 = static_cast<float>(kA2 * kA), kFB3 = static_cast<float>(kB2 * kB);
  static constexpr auto kSum = static_cast<float>(kA2 + kB2);
  // All elements of pixels, each |step| from the next.
  template <typename V>
  PFRT_AVX2_INLINE static void pixels(const V* d, V* out, int64_t step) {
    const V even_a = d[4] - kFB2 * d[2], odd_a = kFA * (d[3] - kFB2 * d[1]);
    const V even_b = d[4] - kFA2 * d[2], odd_b = kFB * (d[3] - kFA2 * d[1]);
    out[0] = d[0] + (d[4] - kSum * d[2]);
    out[step] = even_a + odd_a;
    out[2 * step] = even_a - odd_a;
    out[3 * step] = even_b + odd_b;
    out[4 * step] = even_b - odd_b;
    out[5 * step] = d[1] + (d[5] - kSum * d[3]);
  }

 protected:
  // Element |i| of taps that are |first| and |last| at 0 and at infinity, and at the points x and
  // -x the sum and the difference of |even| and |odd| of x^2; of |odd| without a factor of x.
  template <typename V, typename Even, typename Odd>
  PFRT_AVX2_INLINE static V taps(int64_t i, V first, V last, const Even& even, const Odd& odd) {
    constexpr double kDifference = 2 * (kB2 - kA2);
    switch (i) {
      case 0:
        return first;
      case 1:
        return (even(kA2) + kA * odd(kA2)) / (-kA2 * kDifference);
      case 2:
        return (even(kA2) - kA * odd(kA2)) / (-kA2 * kDifference);
      case 3:
        return (even(kB2) + kB * odd(kB2)) / (kB2 * kDifference);
      case 4:
        return (even(kB2) - kB * odd(kB2)) / (kB2 * kDifference);
      default:
        return last;
    }
  }
};

// F(4, 3).
struct ThreeTapsOf4 : SixPoints {
  static constexpr int64_t kTaps = 3, kOut = 4;
  template <typename V>
  PFRT_AVX2_INLINE static V taps(int64_t i, const V* g) {
    return SixPoints::taps(
        i, g[0], g[2], [g](double x2) PFRT_AVX2_INLINE { return g[0] + x2 * g[2]; },
        [g](double) PFRT_AVX2_INLINE { return g[1]; });
  }
  // All positions, each |step| from the next.
  template <typename V>
  PFRT_AVX2_INLINE static void positions(const V* m, V* out, int64_t step) {
    const V even_a = m[1] + m[2], odd_a = m[1] - m[2], even_b = m[3] + m[4], odd_b = m[3] - m[4];
    out[0] = m[0] + (even_a + even_b);
    out[step] = kFA * odd_a + kFB * odd_b;
    out[2 * step] = kFA2 * even_a + kFB2 * even_b;
    out[3 * step] = m[5] + (kFA3 * odd_a + kFB3 * odd_b);
  }
};

// F(2, 5).
struct FiveTaps : SixPoints {
  static constexpr int64_t kTaps = 5, kOut = 2;
  template <typename V>
  PFRT_AVX2_INLINE static V taps(int64_t i, const V* g) {
    return SixPoints::taps(
        i, g[0], g[4], [g](double x2) PFRT_AVX2_INLINE { return g[0] + x2 * (g[2] + x2 * g[4]); },
        [g](double x2) PFRT_AVX2_INLINE { return g[1] + x2 * g[3]; });
  }
  template <typename V>
  PFRT_AVX2_INLINE static void positions(const V* m, V* out, int64_t step) {
    out[0] = m[0] + ((m[1] + m[2]) + (m[3] + m[4]));
    out[step] = m[5] + (kFA * (m[1] - m[2]) + kFB * (m[3] - m[4]));
  }
};

// F(2, 2). Of pixels d and taps g, (d0 - d1) g0, d1 (g0 + g1), (d2 - d1) g1 give d0 g0 + d1 g1, the
// sum of the first two, and d1 g0 + d2 g1, the sum of the last two. A position's sum is thus made
// only of pixels that it sees.
struct TwoTaps {
  static constexpr int64_t kTaps = 2, kSide = 3, kOut = 2;
  template <typename V>
  PFRT_AVX2_INLINE static V pixels(int64_t i, const V* d) {
    const V all[] = {d[0] - d[1], d[1], d[2] - d[1]};
    return all[i];
  }
  template <typename V>
  PFRT_AVX2_INLINE static V taps(int64_t i, const V* g) {
    const V all[] = {g[0], g[0] + g[1], g[1]};
    return all[i];
  }
  template <typename V>
  PFRT_AVX2_INLINE static V position(int64_t i, const V* m) {
    return i == 0 ? m[0] + m[1] : m[1] + m[2];
  }
};

template <typename V>
PFRT_AVX2_INLINE inline V load_lanes(const float* from) {
  return V(_mm256_loadu_ps(from));
}
template <typename V>
PFRT_AVX2_INLINE inline void store_lanes(float* to, V x) {
  _mm256_storeu_ps(to, __m256(x));
}

// The pixels of a tile, 16 channels each in rows |row| apart, to its elements, |stride| apart.
template <typename Method, typename V>
PFRT_AVX2 void transform_pixels(const float* in, int64_t row, float* out, int64_t stride) {
  constexpr int64_t kSide = Method::kSide, kPanel = PanelMicrokernel::kPanel;
#pragma GCC unroll 2
  for (int64_t half = 0; half < kPanel; half += 8) {
    const float* rows[kSide] = {in + half};
#pragma GCC unroll 4
    for (int64_t i = 1; i < kSide; ++i) rows[i] = rows[i - 1] + row;
    float* to = out + half;
    // Row by row of the elements: all of them do not fit the registers.
#pragma GCC unroll 4
    for (int64_t y = 0; y < kSide; ++y, to += kSide * stride) {
      V line[kSide];
#pragma GCC unroll 4
      for (int64_t x = 0; x < kSide; ++x) {
        V column[kSide];
#pragma GCC unroll 4
        for (int64_t i = 0; i < kSide; ++i) column[i] = load_lanes<V>(rows[i] + x * kPanel);
        line[x] = Method::pixels(y, column);
      }
#pragma GCC unroll 4
      for (int64_t x = 0; x < kSide; ++x) store_lanes(to + x * stride, Method::pixels(x, line));
    }
  }
}

// Transforms pixels by SixPoints, whose elements are made all at once.
PFRT_AVX2 inline void transform_pixels_of_six(const float* in, int64_t row, float* out,
                                              int64_t stride) {
  using V = float __attribute__((vector_size(32)));
  constexpr int64_t kSide = SixPoints::kSide, kPanel = PanelMicrokernel::kPanel;
#pragma GCC unroll 2
  for (int64_t half = 0; half < kPanel; half += 8) {
    V columns[kSide * kSide];
#pragma GCC unroll 6
    for (int64_t x = 0; x < kSide; ++x) {
      V column[kSide];
#pragma GCC unroll 6
      for (int64_t y = 0; y < kSide; ++y)
        column[y] = load_lanes<V>(in + y * row + x * kPanel + half);
      SixPoints::pixels(column, columns + x, kSide);
    }
    float* to = out + half;
#pragma GCC unroll 6
    for (int64_t y = 0; y < kSide; ++y, to += kSide * stride) {
      V line[kSide];
      SixPoints::pixels(columns + y * kSide, line, 1);
#pragma GCC unroll 6
      for (int64_t x = 0; x < kSide; ++x) store_lanes(to + x * stride, line[x]);
    }
  }
}

// 8 channels of a tile's sums, elements |stride| apart, to its 2 x 2 positions.
template <typename Method, typename V>
PFRT_AVX2_INLINE inline void transform_sums(const float* in, int64_t stride, V (&out)[2][2]) {
  constexpr int64_t kSide = Method::kSide;
  V lines[2][kSide];
#pragma GCC unroll 4
  for (int64_t x = 0; x < kSide; ++x) {
    V column[kSide];
#pragma GCC unroll 4
    for (int64_t y = 0; y < kSide; ++y) column[y] = load_lanes<V>(in + (kSide * y + x) * stride);
    lines[0][x] = Method::position(0, column);
    lines[1][x] = Method::position(1, column);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) out[i / 2][i % 2] = Method::position(i % 2, lines[i / 2]);
}

// Taps to the elements that they are multiplied by.
template <typename Method, typename V>
PFRT_AVX2_INLINE inline void transform_taps(const V (&taps)[Method::kTaps][Method::kTaps],
                                            V (&out)[Method::kSide * Method::kSide]) {
  constexpr int64_t kTaps = Method::kTaps, kSide = Method::kSide;
#pragma GCC unroll 6
  for (int64_t x = 0; x < kSide; ++x) {
    V column[kTaps];
#pragma GCC unroll 6
    for (int64_t y = 0; y < kTaps; ++y) column[y] = Method::taps(x, taps[y]);
#pragma GCC unroll 6
    for (int64_t y = 0; y < kSide; ++y) out[kSide * y + x] = Method::taps(y, column);
  }
}

}  // namespace pfrt::cpu
