// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/depthwise_taps.h"

#include <immintrin.h>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/window/nchw16c_row.h"

namespace pfrt::cpu {
namespace {

template <int N>
PFRT_AVX512 void add(std::span<const DepthwiseTap> taps, const float* weights, const float* bias,
                     const float* in, int64_t step, float* out) {
  __m512 sum[N];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) sum[i] = _mm512_loadu_ps(bias);
  for (const DepthwiseTap& tap : taps) {
    const __m512 weight = _mm512_loadu_ps(weights + tap.weight);
    const float* const at = in + tap.pixel;
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i)
      sum[i] = _mm512_add_ps(sum[i], _mm512_mul_ps(weight, _mm512_loadu_ps(at + i * step)));
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) _mm512_storeu_ps(out + kBlockChannels * i, sum[i]);
}

}  // namespace

void add_depthwise_taps(std::span<const DepthwiseTap> taps, const float* weights, const float* bias,
                        const float* in, int64_t step, int64_t n, float* out) {
  const auto next = [&](auto* fn, int64_t positions) {
    for (; n >= positions; n -= positions) {
      fn(taps, weights, bias, in, step, out);
      in += positions * step;
      out += positions * kBlockChannels;
    }
  };
  next(add<8>, 8);
  next(add<4>, 4);
  next(add<2>, 2);
  next(add<1>, 1);
}

}  // namespace pfrt::cpu
