// SPDX-License-Identifier: Apache-2.0
//
// Winograd's transforms. A method, ThreeTaps or TwoTaps, gives them along one dimension: element i
// of pixels, element i of taps, and position i of what the products of both sum to. In two
// dimensions all rows are transformed, then all columns. V is a number or a vector of them: pixels
// and sums come as vectors of 32 bytes, 8 channels or pairs of channels. Pure functions;
// thread-safe.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/jit/panel_microkernel.h"

namespace pfrt::cpu {

// F(2, 3). Transformed taps are doubled, which makes all factors whole.
struct ThreeTaps {
  static constexpr int64_t kTaps = 3, kSide = 4;
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

// F(2, 2). Of pixels d and taps g, (d0 - d1) g0, d1 (g0 + g1), (d2 - d1) g1 give d0 g0 + d1 g1, the
// sum of the first two, and d1 g0 + d2 g1, the sum of the last two. So a position's sum is made
// only of pixels that it sees.
struct TwoTaps {
  static constexpr int64_t kTaps = 2, kSide = 3;
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
#pragma GCC unroll 4
  for (int64_t x = 0; x < kSide; ++x) {
    V column[kTaps];
#pragma GCC unroll 4
    for (int64_t y = 0; y < kTaps; ++y) column[y] = Method::taps(x, taps[y]);
#pragma GCC unroll 4
    for (int64_t y = 0; y < kSide; ++y) out[kSide * y + x] = Method::taps(y, column);
  }
}

}  // namespace pfrt::cpu
