// SPDX-License-Identifier: Apache-2.0
//
// A band of an image, split into bfloat16 planes (planes.h) so that a convolution can load its
// tiles from it where they lie: nothing is gathered. With strides s x t it is kept as s * t smaller
// images, of the pixels that a tap at one offset sees; each row is padded, and rows follow each
// other, so that a tap at any position is an offset from the position's own. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/conv/geometry.h"

namespace pfrt::cpu {

class PlaneImage {
 public:
  // Of two-dimensional windows over |channels| channels, for |rows| rows of positions.
  PlaneImage(const Window& window, int64_t channels, int64_t rows);

  uint64_t bytes() const { return static_cast<uint64_t>(chunks_ * chunk_bytes()); }
  // Parts that fill can be called for, each once, by any thread.
  int64_t parts() const { return chunks_ * phases_y_; }
  // What fill needs, in floats.
  int64_t line_elements() const { return 2 * width_; }
  // The band for rows of positions from |top| on. |image|: channels of height x width, one after
  // another.
  void fill(int64_t part, int64_t top, const float* image, uint8_t* out, float* lines) const;

  // Positions are numbered along the padded rows: column x of row y of the band is
  // y * row_positions() + x.
  int64_t row_positions() const { return width_; }
  // Where the tiles of each chunk of k begin, for position 0: taps outermost, then channels. One
  // more ends the list, as TileProduct wants it.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t row_bytes() const { return 4 * words_; }
  int64_t plane_bytes() const { return 16 * row_bytes(); }

 private:
  int64_t chunk_bytes() const { return 3 * plane_bytes(); }
  // Words from |from| on, of a pair in each plane.
  void zero(uint8_t* words, int64_t from) const;
  int64_t channels_, chunks_;
  int64_t image_height_, image_width_, pad_y_, pad_x_;
  int64_t phases_y_, phases_x_;  // strides, or 1 where only one phase is looked at
  int64_t stride_y_, stride_x_;
  int64_t height_, width_;  // of a phase, padded
  bool as_it_lies_;         // rows follow each other in the image as they do here
  int64_t words_;           // of a pair of channels: all phases, and what tiles may read beyond
  std::vector<int64_t> offsets_;
};

}  // namespace pfrt::cpu
