// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/gemv.h"

#include <immintrin.h>

#include "providers/cpu/isa/isa.h"

namespace pfrt::cpu {
namespace {

constexpr int kLanes = 8;

// P panels of V vectors.
template <int P, int V>
__attribute__((target("avx2,fma"))) void together(int64_t kn, const float* a, const float* b,
                                                  float* c) {
  const int64_t panel = kn * V * kLanes;
  __m256 sum[P][V];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[p][v] = _mm256_setzero_ps();
  for (int64_t k = 0; k < kn; ++k, b += V * kLanes) {
    const __m256 x = _mm256_broadcast_ss(a + k);
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v)
        sum[p][v] = _mm256_fmadd_ps(x, _mm256_loadu_ps(b + p * panel + v * kLanes), sum[p][v]);
  }
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      float* const to = c + (p * V + v) * kLanes;
      _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), sum[p][v]));
    }
}

template <int P, int V>
void run(int64_t kn, const float* a, const float* b, int64_t panels, float* c) {
  constexpr int64_t kWidth = V * kLanes;
  int64_t p = 0;
  for (; p + P <= panels; p += P) together<P, V>(kn, a, b + p * kn * kWidth, c + p * kWidth);
  if constexpr (P > 2)
    if (panels - p >= 2) {
      together<2, V>(kn, a, b + p * kn * kWidth, c + p * kWidth);
      p += 2;
    }
  for (; p < panels; ++p) together<1, V>(kn, a, b + p * kn * kWidth, c + p * kWidth);
}

}  // namespace

GemvFn gemv(int64_t width) {
  if (isa() < Isa::kAvx2) return nullptr;
  return width == 2 * kLanes ? run<4, 2> : width == 4 * kLanes ? run<2, 4> : nullptr;
}

}  // namespace pfrt::cpu
