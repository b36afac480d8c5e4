// SPDX-License-Identifier: Apache-2.0
//
// The geometry that convolutions and pooling share: where a window of taps lies on an image for
// every position, in any number of dimensions. Coordinate of a tap on the image: position * stride
// - pad + tap * dilation. For a transposed convolution the image is the output and the positions
// are the input. Immutable once made; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

struct Window {
  std::vector<int64_t> image, positions, kernel, strides, dilations, pads, end_pads;

  // Makes a window of one dimension or more from attributes strides, dilations, pads and auto_pad.
  static Result<Window> make(const SnapshotNode& node, std::span<const int64_t> image,
                             std::span<const int64_t> positions, std::span<const int64_t> kernel);

  size_t rank() const { return image.size(); }
  int64_t image_size() const { return SnapshotNode::elements(image); }
  int64_t position_count() const { return SnapshotNode::elements(positions); }
  int64_t taps() const { return SnapshotNode::elements(kernel); }
  // Whether the window has one tap and a position for each pixel: the image is read as it lies.
  bool is_identity() const;
};

// A window for the innermost loops: the last dimension is a row; the others are walked by row and
// by tap row.
class WindowRows {
 public:
  explicit WindowRows(const Window& window);

  int64_t row_length() const { return row_length_; }  // positions in a row
  int64_t rows() const { return rows_; }              // rows of positions
  int64_t tap_rows() const { return tap_rows_; }      // kernel rows
  int64_t row_taps() const { return row_taps_; }      // taps in a kernel row
  int64_t stride() const { return stride_; }
  // Start in the image of the row that tap row |tap_row| touches for row |row| of positions; -1
  // outside.
  int64_t row_offset(int64_t row, int64_t tap_row) const;
  // Positions [begin, end) of a row whose tap |tap| lies inside the image, and the column of
  // position 0 (may be negative): column of position p is first + p * stride().
  struct Span {
    int64_t begin, end, first;
  };
  const Span& span(int64_t tap) const { return spans_[tap]; }

 private:
  size_t outer_;  // dimensions but the last
  std::vector<int64_t> image_, positions_, strides_, pads_, image_strides_;
  std::vector<int64_t> tap_offsets_;  // by tap row, by outer dimension: tap * dilation
  std::shared_ptr<Span[]> spans_;     // by tap; copies of this share them
  int64_t row_length_, rows_, tap_rows_, row_taps_, stride_;
};

}  // namespace pfrt::cpu
