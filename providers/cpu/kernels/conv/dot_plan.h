// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of bytes in dot products of vectors (jit/dot_microkernel.h): how one is divided into
// bands of the image and tasks, what a band holds, and the sums of a task. A band has the pixels
// that some rows of positions see, as lines: the channels of a pixel, 16 or 8 at a time, or all of
// them where there are fewer; all pixels of one block of channels come before those of the next.
// Around the image it has the zero point, so that padding takes part in the sums like a pixel of
// 0. An image in nChw16c that the microkernel can read is its own band where nothing is padded.
// Immutable once made; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/jit/dot_tile_microkernel.h"
#include "providers/cpu/kernels/conv/dot_weights.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_band.h"

namespace pfrt::cpu {

struct DotConvPlan {
  static constexpr int64_t kPanel = DotMicrokernel::kPanel;

  ConvGeometry geometry;
  DotWeights weights;
  bool x_signed;
  Nchw16cSides nchw16c;
  bool in_place;
  int64_t depth, panel_bytes;  // of the weights: steps of a chunk, and bytes of a panel
  int64_t line, blocks;        // elements of a pixel in a block; blocks of channels
  int64_t band;                // rows of positions
  int64_t rows, width;         // pixels of a band
  bool sparse;                 // the band holds the pixels that its one tap sees, not those between
  std::vector<int64_t> offsets;   // of chunks, in bytes
  int64_t row_bytes, step_bytes;  // from position to position
  int64_t task_positions;
  const DotTileMicrokernel* tiles;  // nullptr: not used

  // Plans bands of |wanted| rows of positions; 0: of as many as a cache holds.
  DotConvPlan(const ConvGeometry& geometry, const DotWeights& weights, pfrt_dtype x,
              Nchw16cSides sides, int64_t wanted = 0);

  bool flipped() const { return weights.microkernel->bytes() && x_signed && tiles == nullptr; }
  int32_t x_shift() const { return flipped() ? 128 : 0; }
  int64_t element() const { return weights.microkernel->element_bytes(); }
  int64_t positions() const { return band * geometry.window.positions[1]; }  // of a band
  int64_t out_panels() const;                                                // without that of ones
  int64_t columns() const;                                                   // of tasks
  int64_t block_bytes() const { return element() * line * rows * width; }
  uint64_t band_bytes() const;
  uint64_t scratch_bytes() const;  // sums of a task

  // Writes the band whose first row of positions is |top|; |pad| is the zero point's byte.
  void fill(const Run& run, const uint8_t* image, int64_t top, uint8_t pad, uint8_t* out) const;
  // Numbers that sums begin with: 16 channels a panel, plus one for each position of the band where
  // |positions| is not null.
  struct Start {
    const int32_t *channels, *positions;
  };
  // Lines of bytes, where the microkernel requantizes().
  struct Bytes {
    const DotMicrokernel::Bytes* form;
    const float* scales;  // 16 a panel
    uint8_t* out;
    int64_t out_panel;
  };
  // The sums of |panels| panels from |panel| on at positions [begin, end) of the band, as lines of
  // 16, panels |out_panel| apart; or of these |bytes|, where |out| is memory for them, used or not.
  void sums(const uint8_t* pixels, const void* packed, int64_t group, int64_t panel, int64_t panels,
            int64_t begin, int64_t end, const Start& start, int32_t* out, int64_t out_panel,
            const Bytes* bytes = nullptr) const;
  // Writes what the sums of positions [begin, end) begin with: minus the own products (int16_dot.h)
  // of the pixels that a position sees, where they are multiplied crosswise, else 0.
  void start_positions(const uint8_t* pixels, int64_t begin, int64_t end, int32_t* starts) const;

 private:
  // Positions that are neighbours in the band.
  int64_t across() const;
  const uint8_t* position(const uint8_t* pixels, int64_t i) const {
    const int64_t across = geometry.window.positions[1];
    return pixels + i / across * row_bytes + i % across * step_bytes;
  }
  void sums_on_tiles(const uint8_t* pixels, const void* packed, int64_t group, int64_t panel,
                     int64_t panels, int64_t begin, int64_t end, const Start& start, int32_t* out,
                     int64_t out_panel) const;
  // Pixels of an image: |n| from |at| on, |step| apart.
  struct Pixels {
    int64_t at, step, n;
  };
  // Whether the pixels of a band are neighbours in the image as well.
  bool contiguous() const;
  // A block's channels of any number of pixels, to the lines of a band.
  void fill_pixels(int64_t block, const uint8_t* image, const Pixels& pixels, uint8_t* out) const;
  // Copies channels [channel, channel + count), 1 to 16, to lines |pitch| apart, of which it writes
  // |width| bytes: 16 or 8, or |count| where that is less. |planes| is for 16 bytes of each pixel.
  void copy_lines(const uint8_t* image, int64_t channel, int64_t count, const Pixels& pixels,
                  int64_t width, int64_t pitch, uint8_t* planes, uint8_t* out) const;
  // Copies the channels of a block to lines of bytes.
  void fill_lines(const uint8_t* image, int64_t block, const Pixels& pixels, uint8_t* out) const;
  // Copies the channels of a block to lines of int16.
  void fill_wide(const uint8_t* image, int64_t block, const Pixels& pixels, int16_t* out) const;
  void fill_row(int64_t block, int64_t row, const uint8_t* image, int64_t top, uint8_t pad,
                uint8_t* out) const;
};

}  // namespace pfrt::cpu
