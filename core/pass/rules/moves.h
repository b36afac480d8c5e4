// SPDX-License-Identifier: Apache-2.0
//
// What rules about data movement share: standing in for a node, the shape to give Reshape, axes and
// permutations. Pure but for the editor.
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

// |value| takes the place of the node's output 0 when that has certainly the same type.
bool stand_in(Editor& editor, const Node& node, ValueId value);

// Numbers that make Reshape of |from| into |to| (0 copies a dimension, one may be -1); nullopt when
// the dimensions of |to| do not follow from what is known, be any of them 0.
std::optional<std::vector<int64_t>> reshape_numbers(SymbolTable& symbols, const Shape& from,
                                                    const Shape& to);
// A Reshape of |value| into the type of |like|; kNoId when reshape_numbers does not know one.
Result<ValueId> reshape_like(Editor& editor, ValueId value, ValueId like, std::string_view stem);

// Reshape, Flatten, Squeeze, Unsqueeze: the elements stay as they are, in their order.
bool keeps_order(const Node& node);
// Elementwise operators of any number of inputs that broadcast against each other.
bool broadcasts(const Node& node);

// The permutation of a Transpose, valid; nullptr for another node or when it is not known.
const std::vector<int64_t>* permutation(const Node& node);
bool is_identity(const std::vector<int64_t>& perm);
// The permutation that is |first|, then |second|.
std::vector<int64_t> composed(const std::vector<int64_t>& first,
                              const std::vector<int64_t>& second);
std::vector<int64_t> inverse(const std::vector<int64_t>& perm);

// Constant axes at input |i|, none twice and all within |rank|; nullopt otherwise.
std::optional<std::vector<int64_t>> constant_axes(const Editor& editor, const Node& node, size_t i,
                                                  size_t rank);

// Arguments of a Slice that are all known: one entry an axis.
struct Slicing {
  std::vector<int64_t> starts, ends, axes, steps;
};
std::optional<Slicing> slicing(const Editor& editor, const Node& node);
// What |start| and |end| mean in a dimension of |dim| elements, with step 1.
std::pair<int64_t, int64_t> slice_range(int64_t start, int64_t end, int64_t dim);

// The inputs of the Concat |concat| that are its elements [begin, end) along its axis; none when an
// input would have to be sliced, or sizes are not known.
std::vector<ValueId> inputs_between(const Editor& editor, const Node& concat, int64_t begin,
                                    int64_t end);

// Changes the node's inputs as a whole.
Status set_inputs(Editor& editor, Node& node, std::vector<ValueId> inputs);

}  // namespace pfrt
