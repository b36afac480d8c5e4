// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/transpose.h"

#include <immintrin.h>

#include <algorithm>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

void transpose_reference(const float* in, int64_t stride, int64_t count, int64_t n, float* out,
                         int64_t width) {
  for (int64_t j = 0; j < count; ++j)
    for (int64_t k = 0; k < n; ++k) out[k * width + j] = in[j * stride + k];
}

// Four rows, four elements at a time.
void transpose_4(const float* in, int64_t stride, int64_t n, float* out, int64_t width) {
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    __m128 r0 = _mm_loadu_ps(in + k), r1 = _mm_loadu_ps(in + stride + k);
    __m128 r2 = _mm_loadu_ps(in + 2 * stride + k), r3 = _mm_loadu_ps(in + 3 * stride + k);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    float* const to = out + k * width;
    _mm_storeu_ps(to, r0);
    _mm_storeu_ps(to + width, r1);
    _mm_storeu_ps(to + 2 * width, r2);
    _mm_storeu_ps(to + 3 * width, r3);
  }
  transpose_reference(in + k, stride, 4, n - k, out + k * width, width);
}

PFRT_AVX2 inline __m256 halves(const float* low, const float* high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

// Transposes 8 rows by 4: rows 0 to 3 are the lower halves.
PFRT_AVX2 inline void transpose_8x4(const float* in, int64_t stride, float* out, int64_t width) {
  const __m256 r0 = halves(in, in + 4 * stride), r1 = halves(in + stride, in + 5 * stride);
  const __m256 r2 = halves(in + 2 * stride, in + 6 * stride);
  const __m256 r3 = halves(in + 3 * stride, in + 7 * stride);
  const __m256 a = _mm256_unpacklo_ps(r0, r1), b = _mm256_unpackhi_ps(r0, r1);
  const __m256 c = _mm256_unpacklo_ps(r2, r3), d = _mm256_unpackhi_ps(r2, r3);
  _mm256_storeu_ps(out, _mm256_shuffle_ps(a, c, 0x44));
  _mm256_storeu_ps(out + width, _mm256_shuffle_ps(a, c, 0xee));
  _mm256_storeu_ps(out + 2 * width, _mm256_shuffle_ps(b, d, 0x44));
  _mm256_storeu_ps(out + 3 * width, _mm256_shuffle_ps(b, d, 0xee));
}

// Transposes a cache line of each of 8 rows at a time. With more rows, which may share sets of the
// cache, a line would be fetched twice.
PFRT_AVX2 void transpose_vectors(const float* in, int64_t stride, int64_t count, int64_t n,
                                 float* out, int64_t width) {
  constexpr int64_t kLine = 16;
  for (int64_t k = 0; k < n; k += kLine) {
    const int64_t depth = std::min(kLine, n - k);
    int64_t j = 0;
    for (; j + 8 <= count; j += 8) {
      const float* const from = in + j * stride + k;
      float* const to = out + k * width + j;
      int64_t i = 0;
      for (; i + 4 <= depth; i += 4) transpose_8x4(from + i, stride, to + i * width, width);
      transpose_reference(from + i, stride, 8, depth - i, to + i * width, width);
    }
    for (; j + 4 <= count; j += 4)
      transpose_4(in + j * stride + k, stride, depth, out + k * width + j, width);
    transpose_reference(in + j * stride + k, stride, count - j, depth, out + k * width + j, width);
  }
}

}  // namespace

void transpose(const float* in, int64_t stride, int64_t count, int64_t n, float* out,
               int64_t width) {
  static const bool have_vectors = isa() >= Isa::kAvx2;  // the reference gives the same bits
  if (have_vectors) return transpose_vectors(in, stride, count, n, out, width);
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) transpose_4(in + j * stride, stride, n, out + j, width);
  transpose_reference(in + j * stride, stride, count - j, n, out + j, width);
}

}  // namespace pfrt::cpu
