// SPDX-License-Identifier: Apache-2.0
//
// A transposed convolution as ordinary ones. With stride s, output pixel y (counted before the pads
// are cut off) is phase y % s of site y / s. Phase p has the taps p, p + s, p + 2 s and so on. They
// see neighbouring pixels of the input, the last of them the site's own: a convolution of stride 1.
// All phases read one band of the input (image_band.h), whose window covers the taps of them all.
// Immutable once made; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_band.h"

namespace pfrt::cpu {

// Along one dimension.
struct PhaseAxis {
  int64_t in, out, kernel, stride, pad;
  int64_t first, sites, taps;  // first site, number of sites, most taps of a phase

  PhaseAxis(const Window& window, size_t axis);
  // The taps of |phase|; 0 where the stride is longer than the kernel.
  int64_t phase_taps(int64_t phase) const {
    return phase < kernel ? (kernel - phase + stride - 1) / stride : 0;
  }
  // The output pixel of a site counted from |first|; it may be outside.
  int64_t pixel(int64_t site, int64_t phase) const { return (first + site) * stride + phase - pad; }
  // The tap that sees the pixel |back| before the site.
  int64_t tap(int64_t phase, int64_t back) const { return phase + back * stride; }
};

// A phase: the places of its weights in a panel and of its chunks of k in the band.
struct Phase {
  int64_t y, x;
  int64_t at = 0;     // in k of a panel
  int64_t depth = 0;  // of a chunk
  std::vector<int64_t> offsets;
};

struct Phases {
  PhaseAxis y, x;
  ChunkOrder order;

  // Divides a two-dimensional transposed window, for |channels| of a group.
  Phases(const Window& window, int64_t channels);
  // The convolution of stride 1 at all sites by the taps of all phases.
  Window window() const;
  std::vector<Phase> list(const ImageBand& band) const;
  // The k of all phases together.
  int64_t depth() const;
  // The place in k of the weights of |channel|, by tap.
  void places(int64_t channel, std::vector<int64_t>& out) const;

 private:
  int64_t phase_depth(int64_t phase_y, int64_t phase_x) const;
};

// The output of sites [y, y + rows) by [x, x + columns) and some panels of 16 channels. The image
// is one group of an image: group g of image i has number i * groups + g.
struct SiteTile {
  int64_t image, panel, panels, y, rows, x, columns;
};

// Writes what of the tile lies inside to output 0 and applies the epilogue. The tile holds lines of
// 16 channels; its rows are |row| elements apart, its panels |panel|.
void put_sites(const Run& run, const Phases& phases, int64_t group_out, const SiteTile& tile,
               const float* lines, int64_t row, int64_t panel);

}  // namespace pfrt::cpu
