// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolutions of bytes, 16 channels at a time. The pixels that a column of taps sees are
// multiplied together, four rows by vpdpbusd where weights are int8, or two as pairs of int16: the
// same bits either way. So that each pixel is arranged once for all taps of a row, rows of the
// image become lines of columns first: 16 bytes hold those pixels of a column in four channels.
// Where strides allow it, two rows of positions share the lines. Pure functions over the caller's
// memory; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

struct DepthwiseBytes {
  static constexpr int64_t kChannels = 16;
  static constexpr int64_t kLines = 4;    // of four channels each, for each group of rows
  static constexpr int64_t kColumn = 16;  // bytes
  static constexpr int64_t kSlack = 4;    // columns that are read behind the last

  int64_t taps_y, taps_x;
  bool two_rows;  // of positions at once, one below the other: tap 1 of the first is 0 of the other
  bool quads;     // four rows together, with int8 weights; else two, and weights within +-255
  bool vectors;   // of pairs; quads always are

  // Whether the machine multiplies four together, or two in vectors.
  static bool has_quads();
  static bool has_vectors();
  int64_t outputs() const { return two_rows ? 2 : 1; }
  int64_t group() const { return quads ? 4 : 2; }
  int64_t rows() const { return taps_y + outputs() - 1; }  // rows of pixels that positions see
  int64_t groups() const { return quads ? (rows() + 3) / 4 : (rows() + 1) / 2; }
  // Bytes of the weights of 16 channels; a multiple of 64.
  int64_t weight_bytes() const { return groups() * taps_x * kLines * outputs() * kColumn; }

  // Weight (y, x, channel) is weights[(y * taps_x + x) * 16 + channel].
  void pack(const int16_t* weights, void* out) const;
  // Arranges the columns of one group of rows: pixels i * stride of |rows|, 16 bytes each, for i <
  // |n|. |flip| inverts bits of all bytes. The lines are |pitch| bytes apart.
  void arrange(const uint8_t* const* rows, int64_t stride, int64_t n, uint8_t flip, uint8_t* out,
               int64_t pitch) const;
};

struct DepthwiseColumns {
  const uint8_t* const* groups;  // of rows: four lines each
  int64_t pitch;                 // bytes from line to line
  const int64_t* taps;           // offsets in bytes of the columns of the first position's taps
  const void* weights;           // packed
  const int32_t* start;          // numbers that the sums of 16 channels begin with
};

// Writes 16 sums for each of |n| positions of outputs() rows.
void depthwise_sums(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
                    int32_t* const* out);
// Writes bytes in place of sums, rounded as RequantizeFns does, with |scales| of 16 channels, all
// below 1 in size: products with them are within int32.
void depthwise_requantized(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
                           const float* scales, int32_t zero, bool is_signed, uint8_t* const* out);

}  // namespace pfrt::cpu
