// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/moves.h"

#include <algorithm>
#include <array>

#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"

namespace pfrt {

bool stand_in(Editor& editor, const Node& node, ValueId value) {
  if (node.outputs.empty()) return false;
  const ValueId out = node.outputs[0];
  if (!editor.can_replace(out, value) || !editor.same_type(out, value)) return false;
  editor.replace(out, value);
  return true;
}

std::optional<std::vector<int64_t>> reshape_numbers(SymbolTable& symbols, const Shape& from,
                                                    const Shape& to) {
  std::vector<int64_t> out;
  std::optional<size_t> rest;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].known() && !to[i].is(0)) {
      out.push_back(to[i].value());
    } else if (i < from.size() && from[i] == to[i]) {
      out.push_back(0);
    } else if (!to[i].known() && !rest) {
      rest = i;
      out.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  if (!rest || std::ranges::find(out, 0) == out.end()) return out;
  // If a copied dimension is 0, the number of elements does not determine the -1: it has to follow
  // from the input.
  const RestOfShape found = rest_of_shape(symbols, from, to, *rest);
  if (found.open || found.uneven || !(found.dim == to[*rest])) return std::nullopt;
  return out;
}

Result<ValueId> reshape_like(Editor& editor, ValueId value, ValueId like, std::string_view stem) {
  const Type &from = editor.type(value), &to = editor.type(like);
  if (!from.is_tensor() || !to.is_tensor() || !from.has_shape || !to.has_shape) return kNoId;
  const auto numbers = reshape_numbers(*editor.graph().symbols, from.shape, to.shape);
  if (!numbers) return kNoId;
  PFRT_ASSIGN(const ValueId shape, editor.int64s(message(stem, "/shape"), *numbers));
  return editor.add("Reshape", stem, {value, shape}, {Attribute::of_int("allowzero", 0)});
}

bool keeps_order(const Node& node) {
  constexpr std::array<std::string_view, 4> kOps{"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
  return node.domain.empty() && contains(kOps, node.op);
}

bool broadcasts(const Node& node) {
  constexpr std::array<std::string_view, 23> kOps{
      "Add",        "And",   "BitShift",    "BitwiseAnd", "BitwiseOr",
      "BitwiseXor", "Div",   "Equal",       "Greater",    "GreaterOrEqual",
      "Less",       "Max",   "Mean",        "Min",        "Mod",
      "Mul",        "Or",    "LessOrEqual", "Pow",        "Sub",
      "Sum",        "Where", "Xor"};
  return node.domain.empty() && contains(kOps, node.op);
}

const std::vector<int64_t>* permutation(const Node& node) {
  if (node.op != "Transpose" || !node.domain.empty()) return nullptr;
  const std::vector<int64_t>* perm = node.attr_ints("perm");
  if (!perm) return nullptr;
  std::vector<bool> seen(perm->size());
  for (int64_t p : *perm) {
    if (p < 0 || p >= static_cast<int64_t>(perm->size()) || seen[static_cast<size_t>(p)])
      return nullptr;
    seen[static_cast<size_t>(p)] = true;
  }
  return perm;
}

bool is_identity(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::vector<int64_t> composed(const std::vector<int64_t>& first,
                              const std::vector<int64_t>& second) {
  std::vector<int64_t> out;
  out.reserve(second.size());
  for (int64_t p : second) out.push_back(first[static_cast<size_t>(p)]);
  return out;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    out[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return out;
}

std::optional<std::vector<int64_t>> constant_axes(const Editor& editor, const Node& node, size_t i,
                                                  size_t rank) {
  if (!node.has_input(i)) return std::nullopt;
  auto axes = editor.numbers(node.inputs[i]);
  if (!axes) return std::nullopt;
  std::vector<bool> seen(rank);
  for (int64_t& axis : *axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || seen[static_cast<size_t>(axis)])
      return std::nullopt;
    seen[static_cast<size_t>(axis)] = true;
  }
  return axes;
}

std::optional<Slicing> slicing(const Editor& editor, const Node& node) {
  if (node.op != "Slice" || !node.domain.empty() || !node.has_input(1) || !node.has_input(2))
    return std::nullopt;
  const auto starts = editor.numbers(node.inputs[1]), ends = editor.numbers(node.inputs[2]);
  const std::optional<size_t> rank = editor.rank(node.inputs[0]);
  if (!starts || !ends || !rank || starts->size() != ends->size()) return std::nullopt;
  Slicing out{*starts, *ends, {}, std::vector<int64_t>(starts->size(), 1)};
  if (node.has_input(3)) {
    const auto axes = constant_axes(editor, node, 3, *rank);
    if (!axes) return std::nullopt;
    out.axes = *axes;
  } else {
    for (size_t i = 0; i < starts->size(); ++i) out.axes.push_back(static_cast<int64_t>(i));
  }
  if (node.has_input(4)) {
    const auto steps = editor.numbers(node.inputs[4]);
    if (!steps) return std::nullopt;
    out.steps = *steps;
  }
  if (out.axes.size() != starts->size() || out.steps.size() != starts->size() ||
      starts->size() > *rank)
    return std::nullopt;
  return out;
}

std::pair<int64_t, int64_t> slice_range(int64_t start, int64_t end, int64_t dim) {
  const auto place = [dim](int64_t at) {
    return at < 0 ? std::max(at, -dim) + dim : std::min(at, dim);
  };
  const int64_t begin = place(start);
  return {begin, std::max(begin, place(end))};
}

std::vector<ValueId> inputs_between(const Editor& editor, const Node& concat, int64_t begin,
                                    int64_t end) {
  std::vector<ValueId> out;
  int64_t at = 0;
  for (ValueId in : concat.inputs) {
    if (at >= end) break;
    const Type& type = editor.type(in);
    const int64_t axis = concat.attr_int("axis", 0);
    if (!type.has_shape || axis < 0 || axis >= static_cast<int64_t>(type.shape.size())) return {};
    const Dim& dim = type.shape[static_cast<size_t>(axis)];
    if (!dim.known()) return {};
    if (at >= begin) out.push_back(in);
    const int64_t next = at + dim.value();
    if ((at < begin && next > begin) || next > end) return {};
    at = next;
  }
  return at == end ? out : std::vector<ValueId>();
}

Status set_inputs(Editor& editor, Node& node, std::vector<ValueId> inputs) {
  // New inputs are set first, one by one, so that no value in both lists is removed in between.
  const size_t before = node.inputs.size(), after = inputs.size();
  for (size_t i = 0; i < after; ++i) editor.set_input(node, before + i, inputs[i]);
  const std::vector<ValueId> used = editor.graph().used_by(node);
  node.inputs = std::move(inputs);
  editor.forget_uses(node, used);
  return editor.changed(node);
}

}  // namespace pfrt
