// SPDX-License-Identifier: Apache-2.0
//
// Which nodes can work on transposed tensors, and what they look like then. Here a value v is
// "permuted by p" when v' with v = Transpose(v', p) stands in its place. Pure but for the editor.
#pragma once

#include <optional>
#include <vector>

#include "core/pass/engine/editor.h"

namespace pfrt {

using Perm = std::vector<int64_t>;

// By what each input and output is permuted together; none: it stays as it is, or it is a constant
// that permuted() takes care of.
struct Permutations {
  std::vector<std::optional<Perm>> inputs, outputs;
};

// How |node| permutes when its input or output |slot| permutes by |perm|; nullopt when it cannot.
std::optional<Permutations> permutations_of(const Editor& editor, const Node& node, bool is_output,
                                            size_t slot, const Perm& perm);
// The node as it is then, with outputs still to be made: attributes and constants are changed,
// inputs that permute are those of |node|.
Result<Node> permuted(Editor& editor, const Node& node, const Permutations& permutations);

// A constant's elements in another order; whole bytes each.
Result<Tensor> transposed(const Tensor& tensor, const Perm& perm);
// Whether only dimensions of one element move, so that a Reshape does it.
bool moves_only_ones(const Shape& from, const Perm& perm);

}  // namespace pfrt
