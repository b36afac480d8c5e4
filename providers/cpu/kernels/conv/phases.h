// SPDX-License-Identifier: Apache-2.0
//
// A transposed convolution as ordinary ones: with strides s, output pixel y, counted from the first
// one before padding, is phase y % s of site y / s. A phase sees, of the taps, every s-th from its
// own number on, over neighbouring pixels of the input that end at the site: a convolution of
// stride 1. All phases read one band of the input (image_band.h), whose window is the taps of them
// all. Immutable once made; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_band.h"

namespace pfrt::cpu {

// Along one dimension.
struct PhaseAxis {
  int64_t in, out, kernel, stride, pad;
  int64_t first, sites, taps;  // first site, how many, and taps of the phase with most

  PhaseAxis(const Window& window, size_t axis);
  // Of |phase|; 0 where the stride is longer than the kernel.
  int64_t phase_taps(int64_t phase) const {
    return phase < kernel ? (kernel - phase + stride - 1) / stride : 0;
  }
  // The output pixel of a site counted from |first|; it may be outside.
  int64_t pixel(int64_t site, int64_t phase) const { return (first + site) * stride + phase - pad; }
  // The tap whose pixel is |back| before the site.
  int64_t tap(int64_t phase, int64_t back) const { return phase + back * stride; }
};

// Which part of the packed weights a phase takes, and where its chunks of k begin in the band.
struct Phase {
  int64_t y, x;
  int64_t at = 0;     // in numbers of k of a panel
  int64_t depth = 0;  // of a chunk
  std::vector<int64_t> offsets;
};

struct Phases {
  PhaseAxis y, x;
  ChunkOrder order;

  // Of a two-dimensional transposed window, for |channels| of a group.
  Phases(const Window& window, int64_t channels);
  // The convolution of stride 1 at all sites by the taps of all phases.
  Window window() const;
  std::vector<Phase> list(const ImageBand& band) const;
  // Numbers of k of all phases.
  int64_t depth() const;
  // Where the weights of |channel| stand, by tap.
  void places(int64_t channel, std::vector<int64_t>& out) const;

 private:
  int64_t phase_depth(int64_t phase_y, int64_t phase_x) const;
};

// The output of sites [y, y + rows) by [x, x + columns) and some panels of 16 channels, of an image
// that counts the groups of an image as images of their own.
struct SiteTile {
  int64_t image, panel, panels, y, rows, x, columns;
};

// What of the tile lies inside, to output 0, and its epilogue: lines of 16 channels, a row |row|
// elements after another, a panel |panel|.
void put_sites(const Run& run, const Phases& phases, int64_t group_out, const SiteTile& tile,
               const float* lines, int64_t row, int64_t panel);

}  // namespace pfrt::cpu
