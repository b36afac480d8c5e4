// SPDX-License-Identifier: Apache-2.0
//
// Parts of a Shape's output, which a Shape with attributes start and end gives directly.
#include <algorithm>

#include "core/pass/rules/moves.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Dimensions [start, end) of |of|.
struct ShapeRange {
  ValueId of = kNoId;
  int64_t start = 0, end = 0;
};

// The dimensions that |value| has, when a Shape makes it.
std::optional<ShapeRange> shape_range(Editor& editor, ValueId value) {
  const Node* shape = editor.maker(value, "Shape");
  if (!shape) return std::nullopt;
  const std::optional<size_t> rank = editor.rank(shape->inputs[0]);
  if (!rank) return std::nullopt;
  const int64_t start = shape->attr_int("start", 0),
                end = shape->attr_int("end", static_cast<int64_t>(*rank));
  if (start < 0 || end < start || end > static_cast<int64_t>(*rank)) return std::nullopt;
  return ShapeRange{shape->inputs[0], start, end};
}

// Makes the node's output 0 by a Shape, when that certainly has the same type.
Result<bool> replace_by_shape(Editor& editor, const Node& node, ShapeRange range) {
  const ValueId out = node.outputs[0];
  const Node before = node;
  PFRT_ASSIGN(const ValueId made, editor.add("Shape", before.name, {range.of},
                                             {Attribute::of_int("start", range.start),
                                              Attribute::of_int("end", range.end)}));
  if (!editor.same_type(out, made) || !editor.can_replace(out, made)) {
    editor.remove_unused(editor.graph().at(made).producer);
    return false;
  }
  editor.replace(out, made);
  return true;
}

// Replaces a Gather of consecutive dimensions, as a list.
Result<bool> gather_of_shape(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<ShapeRange> shape = shape_range(editor, node.inputs[0]);
  const auto indices = editor.numbers(node.inputs[1]);
  if (!shape || !indices || indices->empty() || editor.rank(node.inputs[1]) != 1u) return false;
  const int64_t count = shape->end - shape->start;
  const int64_t first = indices->front() < 0 ? indices->front() + count : indices->front();
  for (size_t i = 0; i < indices->size(); ++i) {
    const int64_t at = (*indices)[i] < 0 ? (*indices)[i] + count : (*indices)[i];
    if (at < 0 || at >= count || at != first + static_cast<int64_t>(i)) return false;
  }
  const int64_t start = shape->start + first;
  return replace_by_shape(editor, node,
                          {shape->of, start, start + static_cast<int64_t>(indices->size())});
}

Result<bool> slice_of_shape(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<ShapeRange> shape = shape_range(editor, node.inputs[0]);
  const std::optional<Slicing> slice = slicing(editor, node);
  if (!shape || !slice || slice->axes.size() != 1 || slice->steps[0] != 1) return false;
  const auto [begin, end] =
      slice_range(slice->starts[0], slice->ends[0], shape->end - shape->start);
  return replace_by_shape(editor, node, {shape->of, shape->start + begin, shape->start + end});
}

// Replaces an Unsqueeze of a single dimension, as a list of one.
Result<bool> unsqueezed_dimension(Editor& editor, Node& node, const RuleContext&) {
  const Node* pick = editor.maker(node.inputs[0], "Gather");
  if (!pick || !node.has_input(1) || editor.rank(node.outputs[0]) != 1u) return false;
  const std::optional<ShapeRange> shape = shape_range(editor, pick->inputs[0]);
  const auto index = editor.numbers(pick->inputs[1]);
  if (!shape || !index || index->size() != 1 || editor.rank(pick->inputs[1]) != 0u) return false;
  const int64_t count = shape->end - shape->start;
  const int64_t at = index->front() < 0 ? index->front() + count : index->front();
  if (at < 0 || at >= count) return false;
  return replace_by_shape(editor, node, {shape->of, shape->start + at, shape->start + at + 1});
}

// Joins Shapes of neighbouring dimensions of one tensor.
Result<bool> concat_of_shapes(Editor& editor, Node& node, const RuleContext&) {
  std::vector<ValueId> inputs;
  std::vector<std::optional<ShapeRange>> known;
  for (ValueId in : node.inputs) {
    const std::optional<ShapeRange> next = shape_range(editor, in);
    if (next && !known.empty() && known.back() && known.back()->of == next->of &&
        known.back()->end == next->start && editor.only_used_by(in, node) &&
        (inputs.back() == kNoId || editor.only_used_by(inputs.back(), node))) {
      known.back()->end = next->end;
      inputs.back() = kNoId;
    } else {
      known.push_back(next);
      inputs.push_back(in);
    }
  }
  if (inputs.size() == node.inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != kNoId) continue;
    PFRT_ASSIGN(inputs[i], editor.add("Shape", node.name, {known[i]->of},
                                      {Attribute::of_int("start", known[i]->start),
                                       Attribute::of_int("end", known[i]->end)}));
  }
  PFRT_TRY(set_inputs(editor, node, std::move(inputs)));
  return true;
}

constexpr Rule kShapeRangeRules[] = {
    {"SliceOfShape", "Slice", "Shape, Slice -> Shape", kExtended, true, slice_of_shape},
    {"ConcatOfShapes", "Concat", "Shape, Shape of neighbouring dimensions, Concat -> Shape",
     kExtended, true, concat_of_shapes},
    {"GatherOfShape", "Gather", "Shape, Gather of neighbours -> Shape", kExtended, true,
     gather_of_shape},
    {"GatherOfShape", "Unsqueeze", "Shape, Gather of one, Unsqueeze -> Shape", kExtended, true,
     unsqueezed_dimension},
};

}  // namespace

std::span<const Rule> shape_range_rules() { return kShapeRangeRules; }

}  // namespace pfrt
