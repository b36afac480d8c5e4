// SPDX-License-Identifier: Apache-2.0
//
// Taps of a depthwise convolution added for 16 channels at once, with AVX-512. Products are fused
// with sums: the bits are those of ChannelTaps. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace pfrt::cpu {

struct DepthwiseTap {
  int64_t pixel;   // elements from the pixel that a position begins at
  int64_t weight;  // elements from the first weight
};

// out[16 p + c] = bias[c] + sum over taps of weights[weight + c] * in[p * step + pixel + c] for |n|
// positions p and 16 channels c.
void add_depthwise_taps(std::span<const DepthwiseTap> taps, const float* weights, const float* bias,
                        const float* in, int64_t step, int64_t n, float* out);

// out[i] += w * in[i * stride]. Products are fused with sums where the processor can.
using TapRow = void (*)(float* out, const float* in, float w, int64_t stride, int64_t n);
TapRow tap_row();

}  // namespace pfrt::cpu
