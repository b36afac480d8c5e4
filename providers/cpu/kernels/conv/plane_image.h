// SPDX-License-Identifier: Apache-2.0
//
// An image split into bfloat16 planes (planes.h) so that a convolution can load its tiles from it
// where they lie: nothing is gathered. With strides s x t it is kept as s * t smaller images, of
// the pixels that a tap at one offset sees; each row is padded, and rows follow each other, so that
// a tap at any position is an offset from the position's own. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/conv/geometry.h"

namespace pfrt::cpu {

class PlaneImage {
 public:
  // Of two-dimensional windows over |channels| channels.
  PlaneImage(const Window& window, int64_t channels);

  uint64_t bytes() const { return static_cast<uint64_t>(chunks_ * chunk_bytes()); }
  // Parts that fill can be called for, each once, by any thread.
  int64_t parts() const { return chunks_ * phases_y_; }
  // What fill needs, in floats.
  int64_t line_elements() const { return 2 * width_; }
  // |image|: channels of height x width, one after another.
  void fill(int64_t part, const float* image, uint8_t* out, float* lines) const;

  // Positions are numbered along the padded rows: row y, column x is y * row_positions() + x.
  int64_t row_positions() const { return width_; }
  // Where the tiles of each chunk of k begin, for position 0: taps outermost, then channels.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t row_bytes() const { return 4 * words_; }
  int64_t plane_bytes() const { return 16 * row_bytes(); }

 private:
  int64_t chunk_bytes() const { return 3 * plane_bytes(); }
  int64_t channels_, chunks_;
  int64_t image_height_, image_width_, pad_y_, pad_x_;
  int64_t phases_y_, phases_x_;  // strides, or 1 where only one phase is looked at
  int64_t stride_y_, stride_x_;
  int64_t height_, width_;  // of a phase, padded
  int64_t words_;           // of a pair of channels: all phases, and what tiles may read beyond
  std::vector<int64_t> offsets_;
};

}  // namespace pfrt::cpu
