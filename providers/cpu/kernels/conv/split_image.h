// SPDX-License-Identifier: Apache-2.0
//
// A band of an image, split into bfloat16 terms (split_terms.h): the rows of A of a convolution's
// product, so that TileMicrokernel loads its tiles from where they lie. A row of A is 64 bytes, a
// line. The band has one of two forms.
//
// In a band by pixel, a line is 32 channels of a pixel. Rows of the image are padded and follow
// each other, so that a tap at any position is an offset from the position's own; the padding to
// the right of one row is the padding to the left of the next. With strides, rows that one tap sees
// follow each other.
//
// In a band by position, for few channels, the lines of a position are all that its window sees.
//
// The image is row-major (NCHW) or nChw16c. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/matmul/split_terms.h"

namespace pfrt::cpu {

// The order of k: each tap and channel has a place of |depth|, a multiple of 32. Places that are
// left over are multiplied by zeros. The order depends on the arguments of |of| alone.
struct KOrder {
  bool by_position;
  int64_t tap_stride, depth;

  static KOrder of(int64_t channels, int64_t taps, int64_t outputs, bool dilated);
  // The row of B, as split_columns counts rows.
  int64_t row(int64_t tap, int64_t channel) const;
};

class SplitImage {
 public:
  // Makes a band of two-dimensional windows over |channels| channels, for |rows| rows of positions.
  SplitImage(const Window& window, int64_t channels, const KOrder& order, int64_t rows, int terms,
             bool nchw16c);

  uint64_t bytes() const { return static_cast<uint64_t>(chunks_ * layout_.chunk_bytes); }
  // Bytes of the band that a row of positions takes, roughly.
  static int64_t bytes_of_row(const Window& window, const KOrder& order, int64_t channels,
                              int terms);
  // Tasks that fill can be called for, each once, by any thread.
  int64_t tasks() const { return order_.by_position ? groups_ : chunks_ * groups_; }
  // The size of |lines| that fill needs, in floats.
  int64_t line_elements() const;
  // Writes the band for rows of positions from |top| on. Returns false where the image holds
  // numbers too small to be split.
  bool fill(int64_t task, int64_t top, const float* image, uint8_t* out, float* lines) const;

  // Positions are numbered along the padded rows: column x of row y of the band is
  // y * row_positions() + x. Blocks of 32 positions may begin at any of them.
  int64_t row_positions() const { return row_positions_; }
  // Offsets of the chunks of k, for position 0, as TileMicrokernel wants them.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t row_bytes() const { return 64 * step_; }  // from position to position
  const TermLayout& layout() const { return layout_; }

 private:
  bool fill_pixels(int64_t chunk, int64_t group, int64_t top, const float* image,
                   uint8_t* out) const;
  bool fill_positions(int64_t group, int64_t top, const float* image, uint8_t* out,
                      float* lines) const;
  // Elements of a padded row of the image, by position.
  int64_t row_elements() const;
  // Copies row |row| of the image, padded, with the channels of a pixel contiguous.
  void interleave(const float* image, int64_t row, float* out) const;

  KOrder order_;
  TermLayout layout_;
  bool nchw16c_;
  int64_t channels_, chunks_;
  int64_t image_height_, image_width_, pad_y_, pad_x_, stride_y_, stride_x_;
  int64_t taps_y_, taps_x_, dilation_y_, dilation_x_;
  int64_t rows_;                       // of positions
  int64_t positions_, row_positions_;  // of a row; the same with those in the padding
  int64_t step_;                       // lines from a position to the next
  // The following are for a band by pixel: pixels from the pixel of a line to that of the next;
  // phases of rows, and rows of a phase, that a tap sees; lines of a row.
  int64_t pixel_step_y_, pixel_step_x_, phases_, phase_rows_, pitch_;
  int64_t lines_;                // of a chunk and term
  int64_t groups_, group_rows_;  // of rows that one task fills
  std::vector<int64_t> offsets_;
};

}  // namespace pfrt::cpu
