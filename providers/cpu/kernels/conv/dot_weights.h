// SPDX-License-Identifier: Apache-2.0
//
// Weights of convolutions of bytes in dot products of vectors, packed for the microkernel. A value;
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/jit/dot_microkernel.h"
#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/conv/image_band.h"

namespace pfrt::cpu {

// Weights, packed as panels of 16 output channels, and then the sum of each channel's weights as
// they count (matmul/dot_columns.h says what that is) and, where they are multiplied crosswise,
// their own products. With |ones| a group has one channel more
// whose weights are all 1: its sums are those of the pixels.
struct DotWeights {
  // A panel's part of so many steps of int16 stays in the first-level cache while positions read
  // it.
  static constexpr int64_t kPassSteps = 384;

  int64_t groups, outs, channels, taps_y, taps_x;  // outs and channels of a group
  int64_t dilation_x;
  bool is_signed, ones;
  int32_t shift;  // added to each weight by the packing
  const DotMicrokernel* microkernel;
  bool for_tiles;  // k is in the order that tiles want, which |microkernel| takes too

  ChunkOrder order() const;
  int64_t panels() const;  // of a group, that of ones included
  int64_t ones_panel() const { return panels() - 1; }
  int64_t chunk_steps() const;
  int64_t panel_bytes() const;
  uint64_t bytes() const;
  const char* panel(const void* packed, int64_t group, int64_t p) const;
  // The sums of the panels' channels, 16 each.
  const int32_t* sums(const void* packed, int64_t group) const;
  const uint32_t* own_products(const void* packed, int64_t group) const;  // modulo 2^32
  PackedInput packed(uint32_t input) const;
  // Offsets of the elements of a filter in a panel, in bytes from their channel's place.
  std::vector<int64_t> places() const;
  // Packs panel |p| of all groups, with the sums and own products of its channels. |packed| has
  // bytes().
  void pack_panel(const uint8_t* source, const std::vector<int64_t>& places, int64_t p,
                  void* packed) const;

 private:
  void add_own_products(const char* panel, uint32_t* own) const;
};

}  // namespace pfrt::cpu
