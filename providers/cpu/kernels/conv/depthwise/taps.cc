// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/depthwise/taps.h"

#include <immintrin.h>

#include <algorithm>
#include <iterator>

#include "providers/cpu/isa/isa.h"
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
      sum[i] = _mm512_fmadd_ps(weight, _mm512_loadu_ps(at + i * step), sum[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) _mm512_storeu_ps(out + kBlockChannels * i, sum[i]);
}

template <bool kFused>
inline __attribute__((always_inline)) void tap_loop(float* out, const float* in, float w,
                                                    int64_t stride, int64_t n) {
  const auto add = [&](int64_t i, int64_t at) {
    out[i] = kFused ? __builtin_fmaf(w, in[at], out[i]) : out[i] + w * in[at];
  };
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) add(i, i);
  } else if (stride == 2) {
    for (int64_t i = 0; i < n; ++i) add(i, 2 * i);
  } else {
    for (int64_t i = 0; i < n; ++i) add(i, i * stride);
  }
}

void tap_generic(float* out, const float* in, float w, int64_t stride, int64_t n) {
  tap_loop<false>(out, in, w, stride, n);
}
PFRT_AVX2_FMA void tap_avx2(float* out, const float* in, float w, int64_t stride, int64_t n) {
  tap_loop<true>(out, in, w, stride, n);
}

}  // namespace

TapRow tap_row() { return isa() >= Isa::kAvx2 ? tap_avx2 : tap_generic; }

void add_depthwise_taps(std::span<const DepthwiseTap> taps, const float* weights, const float* bias,
                        const float* in, int64_t step, int64_t n, float* out) {
  static constexpr decltype(&add<1>) kAdd[] = {add<1>, add<2>, add<3>, add<4>,
                                               add<5>, add<6>, add<7>, add<8>};
  constexpr auto kMost = static_cast<int64_t>(std::size(kAdd));
  for (int64_t positions; n > 0; n -= positions) {
    positions = std::min(n, kMost);
    kAdd[positions - 1](taps, weights, bias, in, step, out);
    in += positions * step;
    out += positions * kBlockChannels;
  }
}

}  // namespace pfrt::cpu
