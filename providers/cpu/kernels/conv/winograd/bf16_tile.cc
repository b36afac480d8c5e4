// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/winograd/bf16_tile.h"

#include <immintrin.h>

#include "providers/cpu/isa/avx512_bf16_begin.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kSide = 4, kPanel = 16;

// The elements of one dimension, as ThreeTaps has them.
inline void elements_of(const __m512* d, __m512* out) {
  out[0] = d[0] - d[2];
  out[1] = d[1] + d[2];
  out[2] = d[2] - d[1];
  out[3] = d[1] - d[3];
}

}  // namespace

void transform_pixels_to_pairs(const float* in, int64_t row, float* out, int64_t stride) {
  __m512 columns[kSide][kSide];  // [column][element]
#pragma GCC unroll 4
  for (int64_t x = 0; x < kSide; ++x) {
    __m512 column[kSide];
#pragma GCC unroll 4
    for (int64_t y = 0; y < kSide; ++y) column[y] = _mm512_loadu_ps(in + y * row + x * kPanel);
    elements_of(column, columns[x]);
  }
#pragma GCC unroll 4
  for (int64_t y = 0; y < kSide; ++y, out += kSide * stride) {
    const __m512 line[kSide] = {columns[0][y], columns[1][y], columns[2][y], columns[3][y]};
    __m512 made[kSide];
    elements_of(line, made);
#pragma GCC unroll 4
    for (int64_t x = 0; x < kSide; ++x)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x * stride),
                          __m256i(_mm512_cvtneps_pbh(made[x])));
  }
}

}  // namespace pfrt::cpu

#include "providers/cpu/isa/avx512_bf16_end.h"
