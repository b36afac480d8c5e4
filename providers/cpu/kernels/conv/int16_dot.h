// SPDX-License-Identifier: Apache-2.0
//
// What the vector kernels of ConvInteger and QLinearConv share. Two neighbouring channels of bytes,
// each less its zero point, become one channel of pairs of int16, which one instruction multiplies
// and adds up (matmul/int16_dot.h); sums leave in blocks of 16 channels. Padding is 0 in that form.
// Zero points of weights are subtracted when the weights are packed. Immutable; thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/row/requantize.h"

namespace pfrt::cpu {

// Positions of the inputs.
struct IntegerInputs {
  uint32_t x, w, x_zero, w_zero;
};

// The zero points of constant weights, one or one a channel; nullopt when only a run knows them.
std::optional<std::vector<int32_t>> weight_zeros(const SnapshotNode& node, const IntegerInputs& in);
// |packed| takes weights that are pairs; this takes the node's bytes and makes them pairs first.
PackedInput packed_from_bytes(const SnapshotNode& node, const IntegerInputs& in,
                              const std::vector<int32_t>& zeros, PackedInput packed);

struct Int16DotConv {
  ConvGeometry geometry;  // of bytes
  IntegerInputs inputs;
  pfrt_dtype x_type;
  Parameter x_zero;

  // The same convolution of pairs.
  ConvGeometry as_int16_dot() const;
  uint64_t plane_bytes() const;
  int32_t read_x_zero(const Run& run) const {
    return static_cast<int32_t>(x_zero.read<uint32_t>(run, 1, 0)[0]);
  }
  // Writes the pairs of image |image|: group g of image i has number i * groups + g.
  void widen(const Run& run, int64_t image, int32_t zero, uint32_t* planes) const;
};

// Sums at positions [from, from + n) of |channels| channels from |channel| on, counted over all
// images: |lines| has 16 channels of one position after another, |scratch| is as large.
struct Int16DotSums {
  int64_t channel, channels, from, n;
  const float* lines;
  float* scratch;
};
// What a run does with sums (it writes them, or requantizes them), and the bytes of scratch that it
// takes a position.
struct PutSums {
  using Fn = std::function<void(const Run&, const Int16DotSums&)>;
  uint64_t bytes;
  std::function<Fn(const Run&)> of_run;
};

// winograd/int16.cc: of 3 x 3 taps with strides and dilations of 1.
bool int16_dot_winograd_takes(const SnapshotNode& node, const IntegerInputs& in);
PackedInput pack_int16_dot_winograd(int64_t groups, int64_t outs, int64_t pairs);
Kernel int16_dot_winograd_kernel(const Int16DotConv& conv, PutSums put);

}  // namespace pfrt::cpu
