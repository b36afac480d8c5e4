// SPDX-License-Identifier: Apache-2.0
//
// Cutting and joining: what is cut and joined again stays whole, what is joined and cut again stays
// in pieces, two cuts or two joins are one; and questions about parts of a shape are one question.
#include <algorithm>

#include "core/pass/rules/moves.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

int64_t axis_of(const Node& node) { return node.attr_int("axis", 0); }

// One slice that is |first|, then |second|; nullopt where that depends on dimensions nobody knows.
std::optional<Slicing> joined(const Slicing& first, const Slicing& second, const Shape& dims) {
  Slicing out = first;
  for (size_t i = 0; i < second.axes.size(); ++i) {
    const auto same = std::ranges::find(out.axes, second.axes[i]);
    if (same == out.axes.end()) {
      out.axes.push_back(second.axes[i]);
      out.starts.push_back(second.starts[i]);
      out.ends.push_back(second.ends[i]);
      out.steps.push_back(second.steps[i]);
      continue;
    }
    const auto at = static_cast<size_t>(same - out.axes.begin());
    int64_t &start = out.starts[at], &end = out.ends[at];
    if (out.steps[at] != 1 || second.steps[i] != 1) return std::nullopt;
    const Dim& dim = dims[static_cast<size_t>(second.axes[i])];
    if (dim.known()) {
      const auto [begin, stop] = slice_range(start, end, dim.value());
      const auto [from, to] = slice_range(second.starts[i], second.ends[i], stop - begin);
      start = begin + from;
      end = begin + to;
    } else {
      if (start < 0 || end < 0 || second.starts[i] < 0 || second.ends[i] < 0) return std::nullopt;
      const int64_t from = std::min(start, kLargestDim);
      end = std::min(end, from + std::min(second.ends[i], kLargestDim));
      start = from + std::min(second.starts[i], kLargestDim);
    }
  }
  return out;
}

Result<bool> slice_of_slice(Editor& editor, Node& node, const RuleContext&) {
  const Node* first = editor.maker(node.inputs[0], "Slice");
  if (!first || !editor.only_used_by(node.inputs[0], node)) return false;
  const std::optional<Slicing> a = slicing(editor, *first), b = slicing(editor, node);
  if (!a || !b) return false;
  const ValueId source = first->inputs[0];
  const std::optional<Slicing> both = joined(*a, *b, editor.type(source).shape);
  if (!both) return false;
  std::vector<ValueId> inputs{source};
  for (const auto* list : {&both->starts, &both->ends, &both->axes, &both->steps}) {
    PFRT_ASSIGN(const ValueId value, editor.int64s("slice", *list));
    inputs.push_back(value);
  }
  PFRT_TRY(set_inputs(editor, node, std::move(inputs)));
  return true;
}

// The pieces of a Concat that nothing else needs stand in the larger one: the largest takes those
// of all at once.
Result<bool> concat_of_concat(Editor& editor, Node& node, const RuleContext&) {
  const auto like = [&](const Node* other) {
    return other && other->op == "Concat" && other->domain.empty() &&
           axis_of(*other) == axis_of(node);
  };
  if (like(editor.only_user(node.outputs[0]))) return false;
  std::vector<ValueId> inputs, open(node.inputs.rbegin(), node.inputs.rend());
  bool found = false;
  while (!open.empty()) {
    const ValueId in = open.back();
    open.pop_back();
    const Node* inner = editor.producer(in);
    if (like(inner) && editor.only_user(in)) {
      open.insert(open.end(), inner->inputs.rbegin(), inner->inputs.rend());
      found = true;
    } else {
      inputs.push_back(in);
    }
  }
  if (!found) return false;
  PFRT_TRY(set_inputs(editor, node, std::move(inputs)));
  return true;
}

Result<bool> concat_of_split(Editor& editor, Node& node, const RuleContext&) {
  const Node* cut = editor.producer(node.inputs[0]);
  if (!cut || cut->op != "Split" || !cut->domain.empty() || axis_of(*cut) != axis_of(node) ||
      cut->outputs != node.inputs || !editor.can_replace(node.outputs[0], cut->inputs[0]))
    return false;
  editor.replace(node.outputs[0], cut->inputs[0]);
  return true;
}

// Elements [begin, end) of the joined tensor when one piece has them all.
Result<bool> cut_of_piece(Editor& editor, Node& node, const Node& join, int64_t begin,
                          int64_t end) {
  const auto axis = static_cast<size_t>(axis_of(join));
  for (ValueId in : join.inputs) {
    const Type& type = editor.type(in);
    if (!type.has_shape || axis >= type.shape.size() || !type.shape[axis].known()) return false;
    const int64_t size = type.shape[axis].value();
    if (begin < size) {
      if (begin < 0 || end > size || begin >= end) return false;
      std::vector<ValueId> inputs{in};
      for (const int64_t number : {begin, end, axis_of(join)}) {
        PFRT_ASSIGN(const ValueId list, editor.int64s("slice", {number}));
        inputs.push_back(list);
      }
      PFRT_TRY(set_inputs(editor, node, std::move(inputs)));
      return true;
    }
    begin -= size;
    end -= size;
  }
  return false;
}

Result<bool> slice_of_concat(Editor& editor, Node& node, const RuleContext&) {
  const Node* join = editor.maker(node.inputs[0], "Concat");
  const std::optional<Slicing> cut = slicing(editor, node);
  if (!join || !cut || cut->axes.size() != 1 || cut->axes[0] != axis_of(*join) ||
      cut->steps[0] != 1)
    return false;
  const Dim& dim = editor.type(node.inputs[0]).shape[static_cast<size_t>(cut->axes[0])];
  int64_t begin = cut->starts[0], end = cut->ends[0];
  if (dim.known())
    std::tie(begin, end) = slice_range(begin, end, dim.value());
  else if (begin < 0 || end < 0)
    return false;
  if (const auto pieces = pieces_between(editor, *join, begin, end); pieces.size() == 1)
    return stand_in(editor, node, pieces[0]);
  return cut_of_piece(editor, node, *join, begin, end);
}

Result<bool> split_of_concat(Editor& editor, Node& node, const RuleContext&) {
  const Node* join = editor.maker(node.inputs[0], "Concat");
  if (!join || axis_of(*join) != axis_of(node) || node.outputs.size() != join->inputs.size())
    return false;
  const std::vector<ValueId> outputs = node.outputs, inputs = join->inputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kNoId) return false;
    if (!editor.same_type(outputs[i], inputs[i]) || !editor.can_replace(outputs[i], inputs[i]))
      return false;
    // A value can take one output's name.
    for (size_t k = 0; k < i; ++k)
      if (inputs[k] == inputs[i] && editor.is_output(outputs[k])) return false;
  }
  for (size_t i = 0; i < outputs.size(); ++i) editor.replace(outputs[i], inputs[i]);
  return true;
}

// Elements [begin, end) along an axis, which a Slice takes, or a Gather of one element.
struct Part {
  NodeId id;
  int64_t axis, begin, end;
  bool drops_axis;
};

std::optional<Part> part_of(const Editor& editor, const Node& node) {
  if (!node.domain.empty() || (node.op != "Slice" && node.op != "Gather")) return std::nullopt;
  const Type& type = editor.type(node.inputs[0]);
  if (!type.is_tensor() || !type.has_shape) return std::nullopt;
  const auto size_of = [&](int64_t axis) {
    const bool within = axis >= 0 && axis < static_cast<int64_t>(type.shape.size());
    return within ? type.shape[static_cast<size_t>(axis)] : Dim();
  };
  if (node.op == "Slice") {
    const std::optional<Slicing> cut = slicing(editor, node);
    if (!cut || cut->axes.size() != 1 || cut->steps[0] != 1) return std::nullopt;
    const Dim size = size_of(cut->axes[0]);
    if (!size.known()) return std::nullopt;
    const auto [begin, end] = slice_range(cut->starts[0], cut->ends[0], size.value());
    if (begin == end) return std::nullopt;
    return Part{node.id, cut->axes[0], begin, end, false};
  }
  const auto index = editor.numbers(node.inputs[1]);
  const Dim size = size_of(axis_of(node));
  if (!index || index->size() != 1 || editor.rank(node.inputs[1]) != 0u || !size.known())
    return std::nullopt;
  const int64_t at = index->front() < 0 ? index->front() + size.value() : index->front();
  if (at < 0 || at >= size.value()) return std::nullopt;
  return Part{node.id, axis_of(node), at, at + 1, true};
}

// The parts of |value| along |axis| when they are all of it, each element once.
std::vector<Part> all_parts(Editor& editor, ValueId value, int64_t axis) {
  std::vector<Part> parts;
  for (NodeId id : editor.users(value)) {
    const Node& user = *editor.node(id);
    if (user.inputs.empty() || user.inputs[0] != value) continue;
    const std::optional<Part> part = part_of(editor, user);
    if (part && part->axis == axis) parts.push_back(*part);
  }
  std::ranges::sort(parts, {}, &Part::begin);
  int64_t at = 0;
  for (const Part& part : parts) {
    if (part.begin != at) return {};
    at = part.end;
  }
  const Dim& size = editor.type(value).shape[static_cast<size_t>(axis)];
  return size.is(at) ? parts : std::vector<Part>();
}

bool has_epilogue(Editor& editor, const Node& node) {
  return std::ranges::any_of(editor.users(node.outputs[0]),
                             [&](NodeId id) { return editor.node(id)->epilogue_of == node.id; });
}

Result<bool> split_instead(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<Part> own = part_of(editor, node);
  const ValueId source = node.inputs[0];
  if (!own || editor.constant(source)) return false;
  const std::vector<Part> parts = all_parts(editor, source, own->axis);
  if (parts.size() < 2) return false;
  std::vector<int64_t> sizes;
  std::vector<ValueId> outputs;
  for (const Part& part : parts) {
    if (has_epilogue(editor, *editor.node(part.id))) return false;
    sizes.push_back(part.end - part.begin);
    outputs.push_back(editor.node(part.id)->outputs[0]);
  }
  PFRT_ASSIGN(const ValueId list, editor.int64s("split", sizes));
  Node split;
  split.op = "Split";
  split.inputs = {source, list};
  split.attrs = {Attribute::of_int("axis", own->axis)};
  PFRT_ASSIGN(std::vector<ValueId> made,
              editor.add_node(std::move(split), node.name, parts.size()));
  PFRT_ASSIGN(const ValueId axes, editor.int64s("axes", {own->axis}));
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].drops_axis) {
      PFRT_ASSIGN(made[i], editor.add("Squeeze", editor.node(parts[i].id)->name, {made[i], axes}));
    }
  for (size_t i = 0; i < parts.size(); ++i) editor.replace(outputs[i], made[i]);
  return true;
}

// Dimensions [start, end) of |of|, which a Shape asks for.
struct Asked {
  ValueId of = kNoId;
  int64_t start = 0, end = 0;
};

std::optional<Asked> asked(Editor& editor, ValueId value) {
  const Node* shape = editor.maker(value, "Shape");
  if (!shape) return std::nullopt;
  const std::optional<size_t> rank = editor.rank(shape->inputs[0]);
  if (!rank) return std::nullopt;
  const int64_t start = shape->attr_int("start", 0),
                end = shape->attr_int("end", static_cast<int64_t>(*rank));
  if (start < 0 || end < start || end > static_cast<int64_t>(*rank)) return std::nullopt;
  return Asked{shape->inputs[0], start, end};
}

Result<bool> ask(Editor& editor, const Node& node, ValueId of, int64_t start, int64_t end) {
  const ValueId out = node.outputs[0];
  const Node before = node;
  PFRT_ASSIGN(const ValueId made,
              editor.add("Shape", before.name, {of},
                         {Attribute::of_int("start", start), Attribute::of_int("end", end)}));
  if (!editor.same_type(out, made) || !editor.can_replace(out, made)) {
    editor.remove_unused(editor.graph().at(made).producer);
    return false;
  }
  editor.replace(out, made);
  return true;
}

// A list of consecutive dimensions.
Result<bool> gather_of_shape(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<Asked> shape = asked(editor, node.inputs[0]);
  const auto indices = editor.numbers(node.inputs[1]);
  if (!shape || !indices || indices->empty() || editor.rank(node.inputs[1]) != 1u) return false;
  const int64_t count = shape->end - shape->start;
  const int64_t first = indices->front() < 0 ? indices->front() + count : indices->front();
  for (size_t i = 0; i < indices->size(); ++i) {
    const int64_t at = (*indices)[i] < 0 ? (*indices)[i] + count : (*indices)[i];
    if (at < 0 || at >= count || at != first + static_cast<int64_t>(i)) return false;
  }
  const int64_t start = shape->start + first;
  return ask(editor, node, shape->of, start, start + static_cast<int64_t>(indices->size()));
}

Result<bool> slice_of_shape(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<Asked> shape = asked(editor, node.inputs[0]);
  const std::optional<Slicing> cut = slicing(editor, node);
  if (!shape || !cut || cut->axes.size() != 1 || cut->steps[0] != 1) return false;
  const auto [begin, end] = slice_range(cut->starts[0], cut->ends[0], shape->end - shape->start);
  return ask(editor, node, shape->of, shape->start + begin, shape->start + end);
}

// The only dimension asked for, as a list of one.
Result<bool> unsqueezed_dimension(Editor& editor, Node& node, const RuleContext&) {
  const Node* pick = editor.maker(node.inputs[0], "Gather");
  if (!pick || !node.has_input(1) || editor.rank(node.outputs[0]) != 1u) return false;
  const std::optional<Asked> shape = asked(editor, pick->inputs[0]);
  const auto index = editor.numbers(pick->inputs[1]);
  if (!shape || !index || index->size() != 1 || editor.rank(pick->inputs[1]) != 0u) return false;
  const int64_t count = shape->end - shape->start;
  const int64_t at = index->front() < 0 ? index->front() + count : index->front();
  if (at < 0 || at >= count) return false;
  return ask(editor, node, shape->of, shape->start + at, shape->start + at + 1);
}

// Neighbouring dimensions of the same tensor, asked for one by one.
Result<bool> concat_of_shapes(Editor& editor, Node& node, const RuleContext&) {
  std::vector<ValueId> inputs;
  std::vector<std::optional<Asked>> known;
  for (ValueId in : node.inputs) {
    const std::optional<Asked> next = asked(editor, in);
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

constexpr OptLevel kExtended = OptLevel::kExtended;
constexpr Rule kRules[] = {
    {"SliceOfSlice", "Slice", "Slice, Slice -> Slice", kExtended, true, slice_of_slice},
    {"SliceOfConcat", "Slice", "Concat, Slice within one piece -> that piece or its slice",
     kExtended, true, slice_of_concat},
    {"SliceOfShape", "Slice", "Shape, Slice -> Shape", kExtended, true, slice_of_shape},
    {"ConcatOfConcat", "Concat", "Concat, Concat -> Concat", kExtended, true, concat_of_concat},
    {"ConcatOfSplit", "Concat", "Split, Concat of all pieces -> what was split", kExtended, true,
     concat_of_split},
    {"ConcatOfShapes", "Concat", "Shape, Shape of neighbouring dimensions, Concat -> Shape",
     kExtended, true, concat_of_shapes},
    {"SplitOfConcat", "Split", "Concat, Split into the same pieces -> the pieces", kExtended, true,
     split_of_concat},
    {"GatherOfShape", "Gather", "Shape, Gather of neighbours -> Shape", kExtended, true,
     gather_of_shape},
    {"GatherOfShape", "Unsqueeze", "Shape, Gather of one, Unsqueeze -> Shape", kExtended, true,
     unsqueezed_dimension},
};

// After all patterns that know slices have had their turn.
constexpr Rule kLateRules[] = {
    {"SplitInstead", "Slice", "Slices and Gathers that together take everything -> Split",
     OptLevel::kAll, false, split_instead},
    {"SplitInstead", "Gather", "Slices and Gathers that together take everything -> Split",
     OptLevel::kAll, false, split_instead},
};

}  // namespace

std::span<const Rule> split_concat_rules() { return kRules; }
std::span<const Rule> late_split_concat_rules() { return kLateRules; }

}  // namespace pfrt
