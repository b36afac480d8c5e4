// SPDX-License-Identifier: Apache-2.0
//
// Finds nodes that can work on transposed tensors, and their form then. Here a value v is "permuted
// by p" when v' with v = Transpose(v', p) replaces it. The functions change only the editor's
// graph.
#pragma once

#include <optional>
#include <vector>

#include "core/pass/engine/editor.h"

namespace pfrt {

using Perm = std::vector<int64_t>;

// Permutations of inputs and outputs that belong together; none: the value stays as it is, or is a
// constant that permuted() takes care of.
struct Permutations {
  std::vector<std::optional<Perm>> inputs, outputs;
};

// The permutations of |node| when its input or output |slot| is permuted by |perm|; nullopt when it
// cannot be.
std::optional<Permutations> permutations_of(const Editor& editor, const Node& node, bool is_output,
                                            size_t slot, const Perm& perm);
// The node in its permuted form, without outputs: attributes and constants are changed, and inputs
// that are permuted are still those of |node|.
Result<Node> permuted(Editor& editor, const Node& node, const Permutations& permutations);

// The elements of a constant in another order; elements are whole bytes.
Result<Tensor> transposed(const Tensor& tensor, const Perm& perm);
// Whether only dimensions of one element move, so that a Reshape does it.
bool moves_only_ones(const Shape& from, const Perm& perm);

}  // namespace pfrt
