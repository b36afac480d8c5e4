// SPDX-License-Identifier: Apache-2.0
//
// Shared by the direct convolutions: their division into bands of the image and tasks, and the sums
// of a task. Immutable once made; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_band.h"

namespace pfrt::cpu {

// The division of the work, which results do not depend on.
struct DirectBlocking {
  int64_t band_bytes = 256 << 10;  // stays in the second-level cache
  int64_t task_positions = 256;    // their sums stay in the first
  bool by_weights = false;         // tasks with the same weights follow each other
  int64_t row_step = 0;            // bands and tasks are multiples of so many rows; 0: of any
};

// Elements of the band and weights: float32, or pairs of bfloat16 (bf16_dot.h). The image is
// float32, and so are sums.
enum class DirectElements : uint8_t { kFloat, kBf16Dot };

// Chunks of k that are added up in a register, and those of a call of the microkernel: whole
// chains. Calls are about equally long, and where possible no chain is shorter than the others,
// since each of these takes a call of its own.
struct DirectChains {
  int64_t chain, pass;

  // |depth| is the k of a chunk, |together| the chunks of a chain.
  static DirectChains of(int64_t chunks, int64_t depth);
  static DirectChains of(int64_t chunks, int64_t depth, int64_t together);
};

struct DirectPlan {
  static constexpr int64_t kPanel = PanelMicrokernel::kPanel;

  ConvGeometry geometry;
  Nchw16cSides nchw16c;
  DirectBlocking blocking;
  DirectElements elements;
  ChunkOrder order;
  const PanelMicrokernel* microkernel;
  bool has_bias;
  bool live_alone;  // each tap is multiplied where it sees the image; the band is without padding
  int64_t band;     // rows of positions
  ImageBand image;
  int64_t chain_chunks;    // added up in a register
  int64_t pass_chunks;     // of a call of the microkernel
  int64_t panels;          // of output channels of a group
  int64_t task_positions;  // of a task

  DirectPlan(const ConvGeometry& geometry, bool bias, Nchw16cSides sides,
             const DirectBlocking& blocking = {}, DirectElements elements = DirectElements::kFloat);

  static const PanelMicrokernel* microkernel_of(DirectElements elements);
  int64_t positions() const { return band * geometry.window.positions[1]; }  // of a band
  int64_t columns() const;
  int64_t tasks() const;
  int64_t panel_elements() const { return order.chunks() * order.depth() * kPanel; }
  // Memory for the sums of a task: a line of 16 for each position and panel.
  uint64_t scratch_bytes() const;
  // Memory of the step: the band, then of pairs of bfloat16 what ImageBand::fill gives, by task.
  uint64_t shared_bytes() const;
  uint16_t* largest(const Run& run) const {
    return run.shared<uint16_t>() + image.bytes() / sizeof(uint16_t);
  }

 private:
  int64_t whole_rows(int64_t n) const;
  int64_t band_rows() const;
};

// A number of output channels at positions [begin, end) of a band whose first row is |top|.
struct DirectTask {
  int64_t panel, panels, columns, begin, end, top;
};
// Task |column| of the panels, at positions [begin, end).
DirectTask direct_task(const DirectPlan& plan, int64_t column, int64_t begin, int64_t end,
                       int64_t top);

// Writes the sums of a task, bias included, as lines of 16 channels to |out|, panels |out_panel|
// apart. |image| numbers the groups of all images: group g of image i is i * groups + g. The band
// is the image itself, or in the step's shared memory. Not all sums of pairs of bfloat16 are to be
// trusted: see bf16_direct_sums.
void direct_sums(const Run& run, const DirectPlan& plan, const DirectTask& task, int64_t image,
                 float* out, int64_t out_panel);
// Fills the band from row |top| of positions on, where it is not in place.
void fill_direct_band(const Run& run, const DirectPlan& plan, int64_t image, int64_t top);
// Fills the band from |pixels|; such a band is never in place.
void fill_direct_band(const Run& run, const DirectPlan& plan, const float* pixels, int64_t top);

// Packs weights of |out| x |channels| x |taps_y| x |taps_x| a group.
PackedInput pack_direct_weights(int64_t groups, int64_t out, int64_t channels, int64_t taps_y,
                                int64_t taps_x);
// Packs the weights of a window with dilations. A last element is 0, or NaN where some weight is
// not finite.
PackedInput pack_dilated_weights(int64_t groups, int64_t out, int64_t channels, int64_t taps_y,
                                 int64_t taps_x);
// Packs weights in any order of k.
PackedInput pack_direct_weights(int64_t groups, int64_t out, const ChunkOrder& order);

}  // namespace pfrt::cpu
