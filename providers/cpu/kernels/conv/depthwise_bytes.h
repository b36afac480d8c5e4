// SPDX-License-Identifier: Apache-2.0
//
// Sums of depthwise convolutions of bytes: 16 channels of a row of positions, from lines of 16
// bytes without sign, a pixel each. Neighbouring taps of a row are multiplied together: four by
// vpdpbusd where weights are int8, or two as pairs of int16. The same bits either way. Pure
// functions over the caller's memory; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

class DepthwiseByteTaps {
 public:
  static constexpr int64_t kChannels = 16;
  static constexpr int64_t kSlack = 3;  // pixels that are read behind the last that a tap sees

  // Whether four taps can be multiplied together, if all weights are int8.
  static bool has_quads();
  static int64_t group(bool quads) { return quads ? 4 : 2; }
  // Bytes of a tap row's weights, a multiple of 64.
  static int64_t row_bytes(int64_t taps_x, bool quads);

  // Weight (row, tap, channel) is weights[(row * taps_x + tap) * 16 + channel], within +-255, or
  // int8 with |quads|; |out| has taps_y * row_bytes, aligned to 64.
  static void pack(const int16_t* weights, int64_t taps_y, int64_t taps_x, bool quads, void* out);
};

struct DepthwiseByteRow {
  const uint8_t* const* tap_rows;  // where the first position's taps begin, taps_y of them
  int64_t taps_y, taps_x;
  int64_t step;          // pixels from position to position
  const void* weights;   // packed
  const int32_t* start;  // of 16 channels
};
// Writes 16 sums for each of |n| positions.
void depthwise_byte_sums(const DepthwiseByteRow& row, bool quads, int64_t n, int32_t* out);

}  // namespace pfrt::cpu
