// SPDX-License-Identifier: Apache-2.0
//
// A band of an image as lines of float32 that a PanelMicrokernel reads: what a tap sees at any
// position is an offset from the position's own line. Rows are padded with zeros. A line is 16
// channels of a pixel, or 8 where that leaves fewer zeros; all pixels of one block of channels come
// before those of the next. With fewer than 16 channels a line is all channels of a pixel, and the
// pixels that a row of taps sees are one chunk of k. An image that is nChw16c already and needs no
// padding is read in place, unless the kernel is one tap with strides: then the pixels that it sees
// are copied to be contiguous. A band may be of pairs of bfloat16 instead: then a line has 8 pairs,
// and nothing is read in place. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/conv/geometry.h"

namespace pfrt::cpu {

// The order of k: in chunks of depth(). It depends on the members alone.
struct ChunkOrder {
  int64_t channels = 0, taps_y = 0, taps_x = 0;
  bool by_row = false;  // a chunk is what a row of taps sees
  int64_t line = 16;    // channels of a block
  // Channels of the image, where two neighbours make a pair of bfloat16, which counts as one
  // channel; 0: float32.
  int64_t paired = 0;
  bool by_tap = false;  // all channels of a tap follow each other

  static ChunkOrder of(int64_t channels, int64_t taps_y, int64_t taps_x, int64_t dilation_x);
  // The order for dilated windows, whose taps may see different parts of the image.
  ChunkOrder dilated() const;
  // The order for pairs of |channels| channels.
  static ChunkOrder of_pairs(int64_t channels, int64_t taps_y, int64_t taps_x, int64_t dilation_x);
  int64_t depth() const;
  int64_t chunks() const;
  // The place in k of the weight of a tap and channel.
  int64_t k(int64_t tap, int64_t channel) const;
};

class ImageBand {
 public:
  // Makes a band of two-dimensional windows, for |rows| rows of positions.
  ImageBand(const Window& window, const ChunkOrder& order, int64_t rows, bool nchw16c);

  static bool in_place(const Window& window, const ChunkOrder& order, bool nchw16c);
  // Bytes of the band that a row of positions takes, roughly.
  static int64_t bytes_of_row(const Window& window, const ChunkOrder& order, bool nchw16c);

  bool in_place() const { return in_place_; }
  uint64_t bytes() const;
  // Tasks that fill can be called for, each once, by any thread; none where the image is read in
  // place.
  int64_t tasks() const { return tasks_; }
  // Writes the band for rows of positions from |top| on. Returns the upper half of the largest
  // number's bits (bf16_pairs.h) if it holds pairs.
  uint16_t fill(int64_t task, int64_t top, const float* image, float* out) const;

  // Offsets from the band's first element, or from the image's in place: position (y, x) begins at
  // y * row_step() + x * step(), chunk c of k at offsets()[c] from there.
  int64_t row_step() const { return row_step_; }
  int64_t step() const { return step_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  uint16_t fill_row(int64_t block, int64_t row, int64_t top, const float* image, float* out) const;
  uint16_t fill_sparse_row(int64_t block, int64_t row, int64_t top, const float* image,
                           float* out) const;
  // Copies |n| neighbouring pixels from |at| on.
  void copy_pixels(int64_t block, int64_t at, int64_t n, const float* image, float* out) const;
  uint16_t pair_pixels(int64_t block, int64_t at, int64_t n, const float* image,
                       uint32_t* out) const;
  ChunkOrder order_;
  bool nchw16c_, in_place_;
  bool sparse_;  // the band holds the pixels that one tap sees, not those between
  int64_t image_height_, image_width_, stride_y_, stride_x_, pad_y_, pad_x_;
  int64_t line_, blocks_;      // elements of a pixel in a block; blocks of channels
  int64_t band_rows_, width_;  // of pixels
  int64_t task_rows_, tasks_;
  int64_t row_step_, step_;
  std::vector<int64_t> offsets_;
};

}  // namespace pfrt::cpu
