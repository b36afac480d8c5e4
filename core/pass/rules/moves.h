// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the rules about data movement: replacing a node by a value, the shape to give
// Reshape, axes and permutations. The functions change only the editor's graph.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "core/pass/engine/run_rules.h"

namespace pfrt {

template <typename List>
bool contains(const List& list, std::string_view op) {
  return std::ranges::find(list, op) != std::end(list);
}

// Replaces the node's output 0 by |value| when that certainly has the same type.
bool stand_in(Editor& editor, const Node& node, ValueId value);

// Numbers with which Reshape turns |from| into |to| (0 copies a dimension, one may be -1); nullopt
// when the dimensions of |to| do not follow from what is known, even if some are 0.
std::optional<std::vector<int64_t>> reshape_numbers(SymbolTable& symbols, const Shape& from,
                                                    const Shape& to);
// Adds a Reshape of |value| to the type of |like|; kNoId when reshape_numbers finds none.
Result<ValueId> reshape_like(Editor& editor, ValueId value, ValueId like, std::string_view stem);

// Whether it is Reshape, Flatten, Squeeze or Unsqueeze, which keep the elements in their order.
bool keeps_order(const Node& node);
// Whether it is elementwise, with any number of inputs that broadcast against each other.
bool broadcasts(const Node& node);

// The valid permutation of a Transpose; nullptr for another node or when it is unknown.
const std::vector<int64_t>* permutation(const Node& node);
bool is_identity(const std::vector<int64_t>& perm);
// The permutation |first| followed by |second|.
std::vector<int64_t> composed(const std::vector<int64_t>& first,
                              const std::vector<int64_t>& second);
std::vector<int64_t> inverse(const std::vector<int64_t>& perm);

// Constant axes at input |i|, all different and within |rank|; nullopt otherwise.
std::optional<std::vector<int64_t>> constant_axes(const Editor& editor, const Node& node, size_t i,
                                                  size_t rank);

// Known arguments of a Slice, with an entry for each axis.
struct Slicing {
  std::vector<int64_t> starts, ends, axes, steps;
};
std::optional<Slicing> slicing(const Editor& editor, const Node& node);
// The range that |start| and |end| select in a dimension of |dim| elements, with step 1.
std::pair<int64_t, int64_t> slice_range(int64_t start, int64_t end, int64_t dim);

// The inputs of |concat| that make up its elements [begin, end) along its axis; none when an input
// would have to be sliced, or sizes are unknown.
std::vector<ValueId> inputs_between(const Editor& editor, const Node& concat, int64_t begin,
                                    int64_t end);

// Exchanges all of the node's inputs.
Status set_inputs(Editor& editor, Node& node, std::vector<ValueId> inputs);

}  // namespace pfrt
