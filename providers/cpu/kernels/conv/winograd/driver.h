// SPDX-License-Identifier: Apache-2.0
//
// Shared by convolutions by Winograd's F(o x o, r x r). The output is divided into tiles of o x o
// positions, each of which sees side x side pixels, where side is r + o - 1. A band is some rows of
// tiles; for each band
//   1. the pixels of each tile are transformed to side x side elements, 16 channels at a time;
//   2. each element of all tiles is multiplied by the transformed weights, a matmul over channels;
//   3. the sums of each tile, side x side again, are transformed to its o x o positions.
// The first transform is given here as a function; the kernel does the last one when it puts tiles
// to the output. An element is float32, or a pair of bfloat16 that the transform makes of two
// channels (PanelMicrokernel::get_bf16_dot); either is moved as float32. After A. Lavin and S.
// Gray, "Fast algorithms for convolutional neural networks", 2015. Immutable once made;
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/source_behind.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/jit/short_chain_microkernel.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_band.h"

namespace pfrt::cpu {

// The layout of transformed weights: [group][panel][element][channel][16 outputs], with zeros for
// channels and outputs that fill up 16. Behind them (source_behind.h) come the weights as they
// were, for sums that cannot be taken from transformed ones.
struct WinogradWeights {
  int64_t groups, panels, elements, channels;

  // Distance from an element of a panel to the next.
  int64_t stride() const { return ceil_div(channels, 16) * 16 * 16; }
  int64_t size() const { return groups * panels * elements * stride(); }
  int64_t source_at() const { return source_behind(size() * kBytes) / kBytes; }
  // Bytes with |source_size| elements of the weights as they were.
  uint64_t bytes(int64_t source_size) const {
    return bytes_with_source(size() * kBytes, source_size * kBytes);
  }
  // Element 0 of a channel; the other elements are stride() apart.
  int64_t line(int64_t group, int64_t panel, int64_t channel) const {
    return (group * panels + panel) * elements * stride() + channel * 16;
  }

 private:
  static constexpr int64_t kBytes = sizeof(float);
};

// The choices of a kernel.
struct WinogradForm {
  static constexpr int64_t kBandBytes = 1 << 20;

  const PanelMicrokernel* microkernel;
  // Transforms the pixels of a tile, 16 channels each. Rows of pixels are |row| apart, elements
  // |stride|.
  void (*transform_pixels)(const float* pixels, int64_t row, float* elements, int64_t stride);
  int64_t chain;         // k added up in a register before the sum goes to memory
  int64_t pass;          // k of a call of the microkernel, one chain or several
  int64_t phases = 1;    // panels of weights and sums that a panel of output channels has
  int64_t out = 2;       // positions of a tile along a dimension
  bool nchw16c = false;  // the image
  int64_t line = 16;  // elements that 16 channels of a tile have: 8 where the transform pairs them
  // Multiplies in place of |microkernel| where chains are short.
  const ShortChainMicrokernel* short_chains = nullptr;
  int64_t band_bytes = kBandBytes;  // of elements and sums; results do not depend on it
};

struct WinogradPlan {
  static constexpr int64_t kPanel = PanelMicrokernel::kPanel;

  ConvGeometry geometry;  // of stride 1, with r x r taps
  WinogradForm form;
  int64_t side;
  int64_t chunks, panels;  // of 16 input and output channels of a group
  WinogradWeights weights;
  int64_t tiles_y, tiles_x;
  int64_t band;     // rows of tiles
  ImageBand lines;  // of an image that is not nChw16c
  std::vector<int64_t> offsets;

  WinogradPlan(const ConvGeometry& g, const WinogradForm& f);

  int64_t band_tiles() const { return band * tiles_x; }
  // Distances from an element to the next: of transformed pixels, of sums.
  int64_t pixels_stride() const { return apart(ceil_div(chunks * band_tiles() * form.line, 16)); }
  int64_t sums_stride() const { return apart(weights.panels * band_tiles()); }
  // Distance from the sums of a phase to those of the next.
  int64_t phase_stride() const { return panels * band_tiles() * kPanel; }
  // Number of outputs of |panel| that are computed: 8 where the other 8 are padding and the
  // microkernel can leave them out, else 16.
  int64_t outputs(int64_t panel) const {
    const bool half = geometry.group_out - panel % panels * kPanel <= kPanel / 2;
    return half && form.microkernel->half_rows() > 0 ? kPanel / 2 : kPanel;
  }
  // Offsets in the memory of the step: lines at 0, then transformed pixels, then sums.
  int64_t pixels_at() const;
  int64_t sums_at() const { return pixels_at() + weights.elements * pixels_stride(); }
  int64_t shared_elements() const { return sums_at() + weights.elements * sums_stride(); }
  uint64_t shared_bytes() const { return static_cast<uint64_t>(shared_elements()) * sizeof(float); }

 private:
  static int64_t apart(int64_t lines);
  int64_t band_rows() const;
  Window whole_tiles() const;
};

// Rows [begin, end) of the output's tiles, for a panel of output channels: |channels| from
// |channel| on, counted over all images.
struct WinogradTiles {
  int64_t image;  // group g of image i has number i * groups + g
  int64_t panel, channel, channels, begin, end;
  const float* sums;  // element 0 of the first tile; the tiles' sums follow each other
};
// Writes tiles to the output; each tile of each panel comes once, on any thread.
using PutWinogradTiles = std::function<void(const WinogradTiles& tiles, uint32_t worker)>;
// The pixels of an image; input 0 holds them where there is no such function.
using WinogradImage = std::function<const float*(int64_t image)>;

// Runs all images with the weights of run.packed(), which |kernel| needs.
pfrt_code run_winograd(const Run& run, const WinogradPlan& plan, std::string_view kernel,
                       const PutWinogradTiles& put, const WinogradImage& pixels_of = {});

// Whether the weights, input |w|, are |side| x |side| taps with strides and dilations of 1.
bool has_plain_taps(const SnapshotNode& node, uint32_t w, int64_t side);

}  // namespace pfrt::cpu
