// SPDX-License-Identifier: Apache-2.0
//
// Windows that slide over the spatial dimensions (all but the first two) of a tensor: the
// attributes kernel_shape, strides, dilations, pads, auto_pad and ceil_mode of convolutions and
// pools. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

enum class AutoPad { kNone, kSameUpper, kSameLower };

struct Window {
  std::vector<int64_t> kernel;              // empty when unknown
  std::vector<int64_t> strides, dilations;  // one for each spatial dimension
  std::vector<int64_t> pads;                // begins, then ends; meaningless with auto_pad
  AutoPad auto_pad = AutoPad::kNone;
  bool ceil_mode = false;

  // (kernel - 1) * dilation + 1 in spatial dimension |i|.
  int64_t extent(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

// Fills the window attributes of a node over |rank| spatial dimensions and checks them. auto_pad
// becomes pads where the pads follow: VALID, a stride of 1, or known dimensions |spatial|. |kernel|
// is empty when unknown.
Status canonical_window(Rewriter& rewriter, size_t rank, const std::vector<int64_t>& kernel,
                        const Shape& spatial);

// Reads the attributes of a canonical node; |kernel| replaces an absent kernel_shape.
Result<Window> read_window(const Inference& inference, size_t rank,
                           std::vector<int64_t> kernel = {});

// Number of positions of |window| over dimension |i| of size |in|. With ceil_mode the last window
// starts inside the input or its leading padding.
Result<Dim> window_positions(const Inference& inference, const Window& window, size_t i, Dim in);

// Dimensions [2, rank) of |shape|; empty for a shorter shape.
Shape spatial_dims(const Shape& shape);
// Dimensions as numbers; empty unless all are known.
std::vector<int64_t> as_numbers(const Shape& shape);

}  // namespace pfrt
