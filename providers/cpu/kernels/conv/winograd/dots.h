// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of bytes by 3 x 3 taps by Winograd's F(2 x 2, 3 x 3) in int16, exactly, for machines
// that multiply bytes as int16 anyway. Transformed taps are doubled along both dimensions, which
// makes all factors whole; four times the sum comes out. Transformed pixels are within +-1020 and
// taps within +-2295; a quarter of a sum of int32 is exact up to 2^29, which 917 channels cannot
// exceed. The output is divided into tiles of 2 x 2 positions that see 4 x 4 pixels, and into bands
// of rows of tiles; of each band
//   1. the pixels become lines of int16 (dot_plan.h);
//   2. those of a tile are transformed to 16 elements, 16 channels at a time;
//   3. each element of all tiles is multiplied by the transformed taps, a matmul over channels;
//   4. the sums of each tile are transformed to its positions.
// Immutable once made; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/jit/dot_microkernel.h"
#include "providers/cpu/kernels/conv/dot_plan.h"
#include "providers/cpu/kernels/conv/geometry.h"

namespace pfrt::cpu {

// Transformed taps less their zero points: [group][panel][element] columns of DotMicrokernel; then
// [group][panel][element][16] what their sums begin with, which is less by their own products; then
// [group][panel][16] the sum of each channel's taps.
struct WinogradDotTaps {
  static constexpr int64_t kPanel = DotMicrokernel::kPanel, kElements = 16;

  int64_t groups, outs, channels;  // outs and channels of a group
  bool is_signed;
  std::vector<int32_t> zeros;  // one, or one an output channel
  const DotMicrokernel* microkernel;

  int64_t panels() const;  // of a group
  int64_t steps() const { return microkernel->steps(ceil_div(channels, kPanel) * kPanel); }
  int64_t element_bytes() const { return steps() * kPanel * DotMicrokernel::kStepBytes; }
  int64_t panel_bytes() const { return kElements * element_bytes(); }
  uint64_t bytes() const;
  const char* panel(const void* packed, int64_t group, int64_t p) const;
  const int32_t* starts(const void* packed, int64_t group, int64_t p) const;
  const int32_t* sums(const void* packed, int64_t group) const;
  PackedInput packed(uint32_t input) const;

 private:
  void pack(const uint8_t* source, char* out) const;
};

struct WinogradDotPlan {
  static constexpr int64_t kPanel = WinogradDotTaps::kPanel, kElements = WinogradDotTaps::kElements;

  ConvGeometry geometry;
  WinogradDotTaps taps;
  int64_t tiles_y, tiles_x, band;  // rows of tiles
  DotConvPlan image;               // of pixels, twice |band| rows of positions at a time

  WinogradDotPlan(const ConvGeometry& geometry, const WinogradDotTaps& taps, pfrt_dtype x,
                  bool nchw16c);

  int64_t band_tiles() const { return band * tiles_x; }
  int64_t tile_bytes() const;  // of an element
  int64_t task_panels() const;
  // The step's memory: pixels, elements, what the sums of elements' tiles begin with.
  uint64_t pixel_bytes() const { return (image.band_bytes() + 63) / 64 * 64; }
  uint64_t element_bytes() const;
  uint64_t shared_bytes() const;
  // A worker's: sums of the elements of a task's panels.
  int64_t sums_of_panel() const { return kElements * band_tiles() * kPanel; }

  // Tiles [begin, end) of a band.
  void transform_pixels(const uint8_t* pixels, int64_t begin, int64_t end, char* elements,
                        int32_t* starts) const;
  void multiply(const char* elements, const int32_t* starts, const void* packed, int64_t group,
                int64_t panel, int64_t panels, int64_t begin, int64_t end, int32_t* sums) const;
  // Row |y| of tiles to the 16 channels of two rows of positions, 2 * tiles_x each, plus |start|.
  void transform_sums(const int32_t* sums, int64_t y, const int32_t* start, int32_t* lines) const;
};

}  // namespace pfrt::cpu
