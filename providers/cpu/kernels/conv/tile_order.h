// SPDX-License-Identifier: Apache-2.0
//
// The order of k in convolutions of bytes on tiles: a product of tiles takes up to 64 bytes of k
// that are neighbours in a band, so a line has up to 64 channels. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernels/conv/image_band.h"

namespace pfrt::cpu {

// Lines of 16 channels or a multiple; fewer channels than 16 are as without tiles. If all are in
// one line, a chunk is what a row of taps sees, unless taps are dilated.
ChunkOrder tile_order(int64_t channels, int64_t taps_y, int64_t taps_x, int64_t dilation_x);

// A chunk of k as products of equal depth, 16 steps or fewer; the last may be filled up.
struct TileParts {
  int64_t parts, depth;

  static TileParts of(int64_t steps);
  int64_t steps() const { return parts * depth; }
};

}  // namespace pfrt::cpu
