// SPDX-License-Identifier: Apache-2.0
//
// Operators that give the same elements another shape: chains become one, and a shape that the
// graph computes becomes a constant where only its meaning, not its numbers, matters.
#include <algorithm>

#include "core/pass/rules/moves.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// For each dimension of the result, the dimension of |node|'s input that it is, or -1 for a new
// one; nullopt unless the node is a Squeeze or Unsqueeze by constant axes.
std::optional<std::vector<int64_t>> origins(const Editor& editor, const Node& node) {
  const std::optional<size_t> rank = editor.rank(node.inputs[0]);
  if (!rank || !node.has_input(1)) return std::nullopt;
  const bool fewer = node.op == "Squeeze";
  if (!fewer && node.op != "Unsqueeze") return std::nullopt;
  const auto list = editor.numbers(node.inputs[1]);
  if (!list) return std::nullopt;
  const size_t wide = fewer ? *rank : *rank + list->size();
  const auto axes = constant_axes(editor, node, 1, wide);
  if (!axes) return std::nullopt;
  std::vector<int64_t> out;
  int64_t from = 0;
  for (size_t i = 0; i < wide; ++i) {
    const bool listed = std::ranges::find(*axes, static_cast<int64_t>(i)) != axes->end();
    if (fewer && listed)
      ++from;
    else
      out.push_back(listed ? -1 : from++);
  }
  return out;
}

// Whether the second removes the dimensions that the first inserts, or inserts those it removes.
bool undoes(const Editor& editor, const Node& first, const Node& second) {
  const auto a = origins(editor, first), b = origins(editor, second);
  if (!a || !b || first.op == second.op) return false;
  for (size_t i = 0; i < b->size(); ++i) {
    const int64_t middle = (*b)[i];
    // A dimension that the first removes and the second inserts is 1 both times.
    const int64_t from = middle < 0 ? -1 : (*a)[static_cast<size_t>(middle)];
    if (from >= 0 && from != static_cast<int64_t>(i)) return false;
    if (from < 0 &&
        (first.op != "Squeeze" || std::ranges::find(*a, static_cast<int64_t>(i)) != a->end()))
      return false;
  }
  return b->size() == editor.rank(first.inputs[0]).value_or(SIZE_MAX);
}

Result<bool> reshape_of_reshape(Editor& editor, Node& node, const RuleContext&) {
  const Node* first = editor.producer(node.inputs[0]);
  if (!first || !keeps_order(*first) || first->outputs[0] != node.inputs[0]) return false;
  const ValueId source = first->inputs[0], out = node.outputs[0];
  if (undoes(editor, *first, node) && editor.can_replace(out, source)) {
    editor.replace(out, source);
    return true;
  }
  if (stand_in(editor, node, source)) return true;
  // A new Reshape between equal dimensions would change nothing.
  if (editor.same_type(out, source)) return false;
  PFRT_ASSIGN(const ValueId made, reshape_like(editor, source, out, node.name));
  if (made == kNoId) return false;
  editor.replace(out, made);
  return true;
}

// Makes a computed shape constant: its numbers follow from where the input's dimensions go.
Result<bool> constant_shape(Editor& editor, Node& node, const RuleContext&) {
  if (!node.has_input(1) || editor.constant(node.inputs[1])) return false;
  const Type &from = editor.type(node.inputs[0]), &to = editor.type(node.outputs[0]);
  if (!from.has_shape || !to.has_shape) return false;
  const auto numbers = reshape_numbers(*editor.graph().symbols, from.shape, to.shape);
  if (!numbers) return false;
  PFRT_ASSIGN(const ValueId shape, editor.int64s(message(node.name, "/shape"), *numbers));
  node.set_attr(Attribute::of_int("allowzero", 0));
  editor.set_input(node, 1, shape);
  PFRT_TRY(editor.changed(node));
  return true;
}

constexpr Rule kReshapeRules[] = {
    {"ReshapeOfReshape", "Reshape", "Reshape, Flatten, Squeeze, Unsqueeze, then Reshape -> Reshape",
     kExtended, true, reshape_of_reshape},
    {"ReshapeOfReshape", "Flatten", "Reshape, Flatten, Squeeze, Unsqueeze, then Flatten -> Reshape",
     kExtended, true, reshape_of_reshape},
    {"ReshapeOfReshape", "Squeeze", "Reshape, Flatten, Squeeze, Unsqueeze, then Squeeze -> Reshape",
     kExtended, true, reshape_of_reshape},
    {"ReshapeOfReshape", "Unsqueeze",
     "Reshape, Flatten, Squeeze, Unsqueeze, then Unsqueeze -> Reshape", kExtended, true,
     reshape_of_reshape},
    {"ConstantReshape", "Reshape", "Shape, arithmetic, Reshape -> Reshape by constants", kExtended,
     true, constant_shape},
};

}  // namespace

std::span<const Rule> reshape_rules() { return kReshapeRules; }

}  // namespace pfrt
