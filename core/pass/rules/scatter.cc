// SPDX-License-Identifier: Apache-2.0
//
// Assignments to slices, which exporters write as ScatterND with an index for every element.
#include <algorithm>

#include "core/pass/rules/moves.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Elements [begin, end) along one axis, and all elements along the others.
struct Slab {
  size_t axis;
  int64_t begin, end;
};

// The slab that the indices of a ScatterND name, if they name one in the order of its elements.
std::optional<Slab> slab_of(const Tensor& indices, const std::vector<int64_t>& dims) {
  if (indices.dtype != PFRT_DTYPE_INT64 || indices.dims.empty()) return std::nullopt;
  const auto depth = static_cast<size_t>(indices.dims.back());
  if (depth == 0 || depth > dims.size() || indices.count() <= 0) return std::nullopt;
  const auto* at = indices.as<int64_t>();
  const int64_t tuples = indices.count() / static_cast<int64_t>(depth);
  const int64_t* const last = at + (tuples - 1) * static_cast<int64_t>(depth);
  const auto element = [&](const int64_t* tuple, size_t d) {
    return tuple[d] < 0 ? tuple[d] + dims[d] : tuple[d];
  };
  Slab slab{0, 0, dims[0]};
  std::vector<int64_t> begin, count;
  for (size_t d = 0; d < depth; ++d) {
    const int64_t first = element(at, d), end = element(last, d);
    if (first < 0 || end < first || end >= dims[d]) return std::nullopt;
    begin.push_back(first);
    count.push_back(end - first + 1);
    if (count[d] == dims[d]) continue;
    if (slab.end - slab.begin != dims[slab.axis]) return std::nullopt;  // another axis is divided
    slab = {d, begin[d], begin[d] + count[d]};
  }
  if (element_count(count.data(), depth) != tuples) return std::nullopt;
  for (int64_t i = 0; i < tuples; ++i, at += depth) {
    int64_t left = i;
    for (size_t d = depth; d-- > 0; left /= count[d])
      if (element(at, d) != begin[d] + left % count[d]) return std::nullopt;
  }
  return slab;
}

// Adds the elements [begin, end) of |value| along |axis| to |parts|.
Status take(Editor& editor, const Node& node, ValueId value, const Slab& slab,
            std::vector<ValueId>& parts) {
  if (slab.begin == slab.end) return {};
  const auto axis = static_cast<int64_t>(slab.axis);
  const Node* concat = editor.maker(value, "Concat");
  if (concat && concat->attr_int("axis", 0) == axis) {
    const std::vector<ValueId> within = inputs_between(editor, *concat, slab.begin, slab.end);
    parts.insert(parts.end(), within.begin(), within.end());
    if (!within.empty()) return {};
  }
  std::vector<ValueId> inputs{value};
  for (const int64_t number : {slab.begin, slab.end, axis}) {
    PFRT_ASSIGN(const ValueId list, editor.int64s("slice", {number}));
    inputs.push_back(list);
  }
  const std::string stem = node.name;
  PFRT_ASSIGN(const ValueId part, editor.add("Slice", stem, std::move(inputs)));
  parts.push_back(part);
  return {};
}

Result<bool> assigned_slice(Editor& editor, Node& node, const RuleContext&) {
  const ValueId data = node.inputs[0], updates = node.inputs[2], out = node.outputs[0];
  const Tensor* indices = editor.constant(node.inputs[1]);
  const Type& type = editor.type(data);
  if (!indices || !type.has_shape || !type.fixed() || editor.constant(data) ||
      node.attr_string("reduction", "none") != "none")
    return false;
  std::vector<int64_t> dims;
  dims.reserve(type.shape.size());
  for (const Dim& dim : type.shape) dims.push_back(dim.value());
  if (dims.empty() || std::ranges::find(dims, 0) != dims.end()) return false;
  const std::optional<Slab> slab = slab_of(*indices, dims);
  if (!slab) return false;
  const Node whole = node;
  std::vector<int64_t> box = dims;
  box[slab->axis] = slab->end - slab->begin;
  PFRT_ASSIGN(const ValueId shape, editor.int64s("shape", box));
  PFRT_ASSIGN(const ValueId middle, editor.add("Reshape", whole.name, {updates, shape}));
  std::vector<ValueId> parts;
  PFRT_TRY(take(editor, whole, data, {slab->axis, 0, slab->begin}, parts));
  parts.push_back(middle);
  PFRT_TRY(take(editor, whole, data, {slab->axis, slab->end, dims[slab->axis]}, parts));
  ValueId made = middle;
  if (parts.size() > 1) {
    PFRT_ASSIGN(made, editor.add("Concat", whole.name, std::move(parts),
                                 {Attribute::of_int("axis", static_cast<int64_t>(slab->axis))}));
  }
  if (!editor.same_type(out, made) || !editor.can_replace(out, made)) return false;
  editor.replace(out, made);
  return true;
}

constexpr Rule kScatterRules[] = {
    {"AssignedSlice", "ScatterND",
     "ScatterND of a slice's elements in order -> Concat of the slice and what is beside it",
     OptLevel::kExtended, true, assigned_slice},
};

}  // namespace

std::span<const Rule> scatter_rules() { return kScatterRules; }

}  // namespace pfrt
