// SPDX-License-Identifier: Apache-2.0
//
// Removes nodes that move nothing: their output has the type and the elements of their input.
#include <algorithm>

#include "core/pass/rules/moves.h"
#include "core/pass/rules/numbers.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

bool hand_on(Editor& editor, const Node& node, ValueId value) {
  if (!editor.can_replace(node.outputs[0], value)) return false;
  editor.replace(node.outputs[0], value);
  return true;
}

bool all_are(const std::optional<std::vector<int64_t>>& numbers, int64_t value) {
  return numbers && std::ranges::all_of(*numbers, [&](int64_t n) { return n == value; });
}

// Removes an operator that keeps elements and their order, if the dimensions stay the same too.
Result<bool> same_shape(Editor& editor, Node& node, const RuleContext&) {
  return stand_in(editor, node, node.inputs[0]);
}

Result<bool> same_order(Editor& editor, Node& node, const RuleContext&) {
  const std::vector<int64_t>* perm = permutation(node);
  return perm && is_identity(*perm) && hand_on(editor, node, node.inputs[0]);
}

Result<bool> expand(Editor& editor, Node& node, const RuleContext&) {
  const auto shape = editor.numbers(node.inputs[1]);
  const std::optional<size_t> rank = editor.rank(node.inputs[0]);
  if (all_are(shape, 1) && rank && shape->size() <= *rank)
    return hand_on(editor, node, node.inputs[0]);
  return stand_in(editor, node, node.inputs[0]);
}

Result<bool> tile(Editor& editor, Node& node, const RuleContext&) {
  if (node.inputs.size() != 2 || !all_are(editor.numbers(node.inputs[1]), 1)) return false;
  return hand_on(editor, node, node.inputs[0]);
}

Result<bool> slice(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<Slicing> all = slicing(editor, node);
  if (!all) return false;
  const ValueId in = node.inputs[0];
  const Shape& dims = editor.type(in).shape;
  bool whole = true, forward = true;
  for (size_t i = 0; i < all->axes.size(); ++i) {
    const Dim& dim = dims[static_cast<size_t>(all->axes[i])];
    const bool one = dim.is(0) || dim.is(1);
    forward &= all->steps[i] == 1 || one;
    whole &= all->steps[i] == 1 && all->starts[i] == 0 && all->ends[i] >= kLargestDim;
  }
  if (whole) return hand_on(editor, node, in);
  return forward && stand_in(editor, node, in);
}

Result<bool> pad(Editor& editor, Node& node, const RuleContext&) {
  if (!node.has_input(1) || !all_are(editor.numbers(node.inputs[1]), 0)) return false;
  return hand_on(editor, node, node.inputs[0]);
}

// Removes a Concat of one input, and inputs that have no elements.
Result<bool> concat(Editor& editor, Node& node, const RuleContext&) {
  if (node.inputs.size() == 1) return hand_on(editor, node, node.inputs[0]);
  const int64_t axis = node.attr_int("axis", 0);
  std::vector<ValueId> kept;
  for (ValueId in : node.inputs) {
    const Type& type = editor.type(in);
    const bool empty = type.has_shape && axis >= 0 &&
                       axis < static_cast<int64_t>(type.shape.size()) &&
                       type.shape[static_cast<size_t>(axis)].is(0);
    if (!empty) kept.push_back(in);
  }
  if (kept.size() == node.inputs.size() || kept.empty()) return false;
  PFRT_TRY(set_inputs(editor, node, std::move(kept)));
  return true;
}

// Removes a Split with one output. Sizes that may not sum to the dimension stay: only a run can
// tell, and refuses them.
Result<bool> split(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<size_t> rank = editor.rank(node.inputs[0]);
  const int64_t axis = node.attr_int("axis", 0);
  if (node.outputs.size() != 1 || !rank || axis < 0 || axis >= static_cast<int64_t>(*rank))
    return false;
  if (node.has_input(1)) {
    const auto sizes = editor.numbers(node.inputs[1]);
    const Dim& whole = editor.type(node.inputs[0]).shape[static_cast<size_t>(axis)];
    if (!sizes || sizes->size() != 1 || !whole.is(sizes->front())) return false;
  }
  return hand_on(editor, node, node.inputs[0]);
}

// Removes a Gather that takes all elements in order, whatever the shape of the indices.
Result<bool> gather(Editor& editor, Node& node, const RuleContext&) {
  const ValueId in = node.inputs[0], out = node.outputs[0];
  const auto indices = editor.numbers(node.inputs[1]);
  const std::optional<size_t> rank = editor.rank(in), wanted = editor.rank(node.inputs[1]);
  const int64_t axis = node.attr_int("axis", 0);
  if (!indices || !rank || !wanted || axis < 0 || axis >= static_cast<int64_t>(*rank)) return false;
  const auto count = static_cast<int64_t>(indices->size());
  if (!editor.type(in).shape[static_cast<size_t>(axis)].is(count)) return false;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = (*indices)[static_cast<size_t>(i)];
    if (index != i && index != i - count) return false;
  }
  if (*wanted == 1) return stand_in(editor, node, in);
  ValueId made = kNoId;
  if (*wanted == 0) {
    PFRT_ASSIGN(const ValueId axes, editor.int64s("axes", {axis}));
    PFRT_ASSIGN(made, editor.add("Squeeze", node.name, {in, axes}));
  } else {
    PFRT_ASSIGN(made, reshape_like(editor, in, out, node.name));
  }
  if (made == kNoId) return false;
  editor.replace(out, made);
  return true;
}

Result<bool> cast(Editor& editor, Node& node, const RuleContext&) {
  const Type& type = editor.type(node.inputs[0]);
  if (!type.is_tensor() || !type.dtype || node.attr_int("to", 0) != type.dtype) return false;
  return hand_on(editor, node, node.inputs[0]);
}

// Removes a reduction over no axes, or over dimensions of one element.
Result<bool> reduce(Editor& editor, Node& node, const RuleContext&) {
  const ValueId in = node.inputs[0], out = node.outputs[0];
  const std::optional<size_t> rank = editor.rank(in);
  if (!rank) return false;
  std::vector<int64_t> axes;
  if (node.has_input(1)) {
    const auto given = constant_axes(editor, node, 1, *rank);
    if (!given) return false;
    axes = *given;
  }
  if (axes.empty()) {
    if (node.attr_int("noop_with_empty_axes", 0) != 0) return hand_on(editor, node, in);
    for (size_t i = 0; i < *rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  const Shape& dims = editor.type(in).shape;
  const bool ones =
      std::ranges::all_of(axes, [&](int64_t a) { return dims[static_cast<size_t>(a)].is(1); });
  if (!ones) return false;
  if (node.attr_int("keepdims", 1) != 0 || axes.empty()) return hand_on(editor, node, in);
  PFRT_ASSIGN(const ValueId list, editor.int64s("axes", axes));
  PFRT_ASSIGN(const ValueId made, editor.add("Squeeze", node.name, {in, list}));
  editor.replace(out, made);
  return true;
}

// Removes a Resize to the input's own size.
Result<bool> resize(Editor& editor, Node& node, const RuleContext&) {
  if (!editor.same_type(node.outputs[0], node.inputs[0])) return false;
  if (node.attr_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    return false;
  if (node.has_input(2)) {
    const auto scales = to_doubles(editor.constant(node.inputs[2]));
    if (!scales || std::ranges::any_of(*scales, [](double s) { return s != 1; })) return false;
  }
  return hand_on(editor, node, node.inputs[0]);
}

Result<bool> blocks(Editor& editor, Node& node, const RuleContext&) {
  return node.attr_int("blocksize", 0) == 1 && editor.rank(node.inputs[0]) == 4u &&
         hand_on(editor, node, node.inputs[0]);
}

constexpr Rule kNoopEliminationRules[] = {
    {"SameShape", "Reshape", "Reshape to the same shape -> its input", kBasic, false, same_shape},
    {"SameShape", "Flatten", "Flatten of a matrix -> its input", kBasic, false, same_shape},
    {"SameShape", "Squeeze", "Squeeze of nothing -> its input", kBasic, false, same_shape},
    {"SameShape", "Unsqueeze", "Unsqueeze of nothing -> its input", kBasic, false, same_shape},
    {"SameShape", "Expand", "Expand to the same shape -> its input", kBasic, false, expand},
    {"SameOrder", "Transpose", "Transpose that keeps the order -> its input", kBasic, false,
     same_order},
    {"OneCopy", "Tile", "Tile once -> its input", kBasic, false, tile},
    {"WholeSlice", "Slice", "Slice of everything -> its input", kBasic, false, slice},
    {"NoPads", "Pad", "Pad by nothing -> its input", kBasic, false, pad},
    {"OnlyPiece", "Concat", "Concat of one; Concat with empty tensors -> without them", kBasic,
     false, concat},
    {"OnlyPiece", "Split", "Split into one -> its input", kBasic, false, split},
    {"GatherAll", "Gather", "Gather of everything in order -> its input, Squeeze or Reshape",
     kBasic, false, gather},
    {"SameElementType", "Cast", "Cast to the same type -> its input", kBasic, false, cast},
    {"ReduceOfOne", "ReduceSum", "ReduceSum over no axes, or dimensions of 1 -> its input, Squeeze",
     kBasic, false, reduce},
    {"ReduceOfOne", "ReduceMean",
     "ReduceMean over no axes, or dimensions of 1 -> its input, Squeeze", kBasic, false, reduce},
    {"ReduceOfOne", "ReduceMax", "ReduceMax over no axes, or dimensions of 1 -> its input, Squeeze",
     kBasic, false, reduce},
    {"ReduceOfOne", "ReduceMin", "ReduceMin over no axes, or dimensions of 1 -> its input, Squeeze",
     kBasic, false, reduce},
    {"ReduceOfOne", "ReduceProd",
     "ReduceProd over no axes, or dimensions of 1 -> its input, Squeeze", kBasic, false, reduce},
    {"SameSize", "Resize", "Resize to the same size -> its input", kBasic, false, resize},
    {"BlocksOfOne", "DepthToSpace", "DepthToSpace by 1 -> its input", kBasic, false, blocks},
    {"BlocksOfOne", "SpaceToDepth", "SpaceToDepth by 1 -> its input", kBasic, false, blocks},
};

}  // namespace

std::span<const Rule> noop_elimination_rules() { return kNoopEliminationRules; }

}  // namespace pfrt
