// SPDX-License-Identifier: Apache-2.0
//
// Weights of depthwise convolutions of bytes as depthwise/bytes.h takes them. Values and pure
// functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/conv/depthwise/bytes.h"
#include "providers/cpu/kernels/conv/integer_inputs.h"

namespace pfrt::cpu {

// Constant weights in blocks of 16 output channels, each with the sums of its channels behind it.
struct PackedTaps {
  int64_t channels;
  DepthwiseBytes shape;

  int64_t block_bytes() const {
    return shape.weight_bytes() + DepthwiseBytes::kChannels * int64_t{sizeof(int32_t)};
  }
  int64_t blocks() const { return ceil_div(channels, DepthwiseBytes::kChannels); }
  uint64_t bytes() const { return static_cast<uint64_t>(blocks() * block_bytes()); }
  std::string recipe() const;
};

// The weights of a node whose window lines can have, in quads if its constants allow that.
PackedTaps packed_taps(const SnapshotNode& node, const IntegerInputs& in);
// Packs these weights; nullopt where weights or zero points are not constant.
std::optional<PackedInput> pack_taps(const SnapshotNode& node, const IntegerInputs& in);

// Widens the weights of 16 output channels from |first| on, of which |count| are there, less their
// zero points (modulo 2^32; one, or one a channel), and sums them by channel. Whether all are int8.
bool widen_taps(const uint8_t* weights, bool is_signed, int64_t taps, int64_t first, int64_t count,
                std::span<const uint32_t> zeros, int16_t* out, int32_t* sums);

}  // namespace pfrt::cpu
