// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, products and normalisations with constant weights in one form: y = W x + b with an
// output channel, whose scale and shift can be moved into W and b. The functions change only the
// editor's graph.
#pragma once

#include <optional>
#include <vector>

#include "core/pass/engine/editor.h"

namespace pfrt {

// y[c] = scale[c] * x[c] + shift[c] for each channel c.
struct ChannelAffine {
  std::vector<double> scale, shift;
};

struct Linear {
  Node* node;
  size_t channels;      // of the output
  size_t channel_axis;  // of the output
  size_t rank;          // of the output
};

// |node| in this form, when its weights (and bias, if any) are constants: Conv, ConvTranspose of
// one group, Gemm, MatMul by a matrix, BatchNormalization in inference.
std::optional<Linear> as_linear(Editor& editor, Node& node);

// BatchNormalization in inference with constant statistics, of |channels|; nullopt for other nodes.
std::optional<ChannelAffine> as_affine(const Editor& editor, const Node& normalization);

// The elements of constant |value| for each channel, when it broadcasts over everything else in a
// tensor of |rank| without enlarging it; a single number counts for every channel.
std::optional<std::vector<double>> per_channel(const Editor& editor, ValueId value, size_t rank,
                                               size_t axis, size_t channels);

// Moves the affine map behind the node into its weights and bias; false when it needs a bias and
// has no place for one. Users of the node's output stay.
Result<bool> scale_output(Editor& editor, const Linear& linear, const ChannelAffine& affine);

}  // namespace pfrt
