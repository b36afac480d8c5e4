// SPDX-License-Identifier: Apache-2.0
//
// Shared by the forms of depthwise convolutions. Pure; thread-safe.
#pragma once

#include <immintrin.h>

#include <memory>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/jit/depthwise_loop.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/window/nchw16c_row.h"

namespace pfrt::cpu {

// The plane of the input that plane |p| of the output sees, in an image whose channels are shuffled
// by |shuffle| groups; 1 leaves them alone.
int64_t depthwise_input_plane(const ConvGeometry& geometry, int64_t shuffle, int64_t p);

// 8 channels at a time. Products are fused with sums, as in every kernel that has vectors: all
// give the same bits.
struct ChannelTaps {
  using Sum = __m256;
  const float *weights, *bias;  // weights: of 16 channels a tap
  PFRT_AVX2_FMA_INLINE Sum start() const { return _mm256_loadu_ps(bias); }
  PFRT_AVX2_FMA_INLINE Sum add(Sum sum, __m256 x, int64_t tap) const {
    return _mm256_fmadd_ps(_mm256_loadu_ps(weights + kBlockChannels * tap), x, sum);
  }
  PFRT_AVX2_FMA_INLINE __m256 finish(Sum sum, int64_t) const { return sum; }
};

// The code for a window; null where other kernels are faster or there is none. |adds| as in
// DepthwiseLoop.
std::shared_ptr<const DepthwiseLoop> depthwise_loop(const Window& window, bool nchw16c, bool adds);
inline constexpr int64_t kNear = 1 << 12;  // elements whose epilogue finds them in the first cache

// Makes the kernel for small planes of float32, which SmallPlanes::takes() takes.
Kernel depthwise_small_planes(const ConvGeometry& geometry, int64_t shuffle, bool has_bias);

}  // namespace pfrt::cpu
