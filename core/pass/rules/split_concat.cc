// SPDX-License-Identifier: Apache-2.0
//
// Slice, Split and Concat in a row: two of a kind become one, and one that undoes another is
// removed with it.
#include <algorithm>

#include "core/pass/rules/moves.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

int64_t axis_of(const Node& node) { return node.attr_int("axis", 0); }

// A Slice that does |first|, then |second|; nullopt where that depends on unknown dimensions.
std::optional<Slicing> combined(const Slicing& first, const Slicing& second, const Shape& dims) {
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
  const std::optional<Slicing> both = combined(*a, *b, editor.type(source).shape);
  if (!both) return false;
  std::vector<ValueId> inputs{source};
  for (const auto* list : {&both->starts, &both->ends, &both->axes, &both->steps}) {
    PFRT_ASSIGN(const ValueId value, editor.int64s("slice", *list));
    inputs.push_back(value);
  }
  PFRT_TRY(set_inputs(editor, node, std::move(inputs)));
  return true;
}

// Gives the inputs of a Concat whose only user is a Concat along the same axis to that user. The
// last one of a chain takes all inputs at once, since long chains would take quadratic time
// otherwise.
Result<bool> concat_of_concat(Editor& editor, Node& node, const RuleContext&) {
  const auto same_axis = [&](const Node* other) {
    return other && other->op == "Concat" && other->domain.empty() &&
           axis_of(*other) == axis_of(node);
  };
  if (same_axis(editor.only_user(node.outputs[0]))) return false;
  std::vector<ValueId> inputs, open(node.inputs.rbegin(), node.inputs.rend());
  bool found = false;
  while (!open.empty()) {
    const ValueId in = open.back();
    open.pop_back();
    const Node* inner = editor.producer(in);
    if (same_axis(inner) && editor.only_user(in)) {
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
  const Node* split = editor.maker(node.inputs[0], "Split");
  if (!split || axis_of(*split) != axis_of(node) || split->outputs != node.inputs ||
      !editor.can_replace(node.outputs[0], split->inputs[0]))
    return false;
  editor.replace(node.outputs[0], split->inputs[0]);
  return true;
}

// Replaces the node, which takes elements [begin, end) of the output of |concat|, if these all come
// from one input.
Result<bool> slice_of_input(Editor& editor, Node& node, const Node& concat, int64_t begin,
                            int64_t end) {
  const auto axis = static_cast<size_t>(axis_of(concat));
  for (ValueId in : concat.inputs) {
    const Type& type = editor.type(in);
    if (!type.has_shape || axis >= type.shape.size() || !type.shape[axis].known()) return false;
    const int64_t size = type.shape[axis].value();
    if (begin < size) {
      if (begin < 0 || end > size || begin >= end) return false;
      std::vector<ValueId> inputs{in};
      for (const int64_t number : {begin, end, axis_of(concat)}) {
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
  const Node* concat = editor.maker(node.inputs[0], "Concat");
  const std::optional<Slicing> slice = slicing(editor, node);
  if (!concat || !slice || slice->axes.size() != 1 || slice->axes[0] != axis_of(*concat) ||
      slice->steps[0] != 1)
    return false;
  const Dim& dim = editor.type(node.inputs[0]).shape[static_cast<size_t>(slice->axes[0])];
  int64_t begin = slice->starts[0], end = slice->ends[0];
  if (dim.known())
    std::tie(begin, end) = slice_range(begin, end, dim.value());
  else if (begin < 0 || end < 0)
    return false;
  if (const auto inputs = inputs_between(editor, *concat, begin, end); inputs.size() == 1)
    return stand_in(editor, node, inputs[0]);
  return slice_of_input(editor, node, *concat, begin, end);
}

Result<bool> split_of_concat(Editor& editor, Node& node, const RuleContext&) {
  const Node* concat = editor.maker(node.inputs[0], "Concat");
  if (!concat || axis_of(*concat) != axis_of(node) || node.outputs.size() != concat->inputs.size())
    return false;
  const std::vector<ValueId> outputs = node.outputs, inputs = concat->inputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kNoId) return false;
    if (!editor.same_type(outputs[i], inputs[i]) || !editor.can_replace(outputs[i], inputs[i]))
      return false;
    // A value that serves as two inputs can take the name of only one graph output.
    for (size_t k = 0; k < i; ++k)
      if (inputs[k] == inputs[i] && editor.is_output(outputs[k])) return false;
  }
  for (size_t i = 0; i < outputs.size(); ++i) editor.replace(outputs[i], inputs[i]);
  return true;
}

// Elements [begin, end) of an axis, taken by a Slice, or by a Gather of one element, which drops
// the axis.
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
    const std::optional<Slicing> slice = slicing(editor, node);
    if (!slice || slice->axes.size() != 1 || slice->steps[0] != 1) return std::nullopt;
    const Dim size = size_of(slice->axes[0]);
    if (!size.known()) return std::nullopt;
    const auto [begin, end] = slice_range(slice->starts[0], slice->ends[0], size.value());
    if (begin == end) return std::nullopt;
    return Part{node.id, slice->axes[0], begin, end, false};
  }
  const auto index = editor.numbers(node.inputs[1]);
  const Dim size = size_of(axis_of(node));
  if (!index || index->size() != 1 || editor.rank(node.inputs[1]) != 0u || !size.known())
    return std::nullopt;
  const int64_t at = index->front() < 0 ? index->front() + size.value() : index->front();
  if (at < 0 || at >= size.value()) return std::nullopt;
  return Part{node.id, axis_of(node), at, at + 1, true};
}

// The parts of |value| along |axis|, in order, if together they have each element once; else none.
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

// Makes Slices and Gathers of one value that together take each element once a Split.
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

constexpr Rule kSplitConcatRules[] = {
    {"SliceOfSlice", "Slice", "Slice, Slice -> Slice", kExtended, true, slice_of_slice},
    {"SliceOfConcat", "Slice", "Concat, Slice within one input -> that input or its Slice",
     kExtended, true, slice_of_concat},
    {"ConcatOfConcat", "Concat", "Concat, Concat -> Concat", kExtended, true, concat_of_concat},
    {"ConcatOfSplit", "Concat", "Split, Concat of all its outputs -> its input", kExtended, true,
     concat_of_split},
    {"SplitOfConcat", "Split", "Concat, Split into its inputs -> those inputs", kExtended, true,
     split_of_concat},
};

// These run after all patterns that look for Slices.
constexpr Rule kLateRules[] = {
    {"SplitInstead", "Slice", "Slices and Gathers that together take each element once -> Split",
     OptLevel::kAll, false, split_instead},
    {"SplitInstead", "Gather", "Slices and Gathers that together take each element once -> Split",
     OptLevel::kAll, false, split_instead},
};

}  // namespace

std::span<const Rule> split_concat_rules() { return kSplitConcatRules; }
std::span<const Rule> late_split_concat_rules() { return kLateRules; }

}  // namespace pfrt
