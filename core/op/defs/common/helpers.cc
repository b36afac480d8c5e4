// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/common/helpers.h"

#include <algorithm>

#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

Status fill_defaults(Rewriter& rewriter, std::span<const AttrDefault> defaults) {
  Node& node = rewriter.node();
  node.drop_attr("consumed_inputs");
  for (const AttrDefault& d : defaults) {
    if (d.op != node.op) continue;
    if (const Attribute* given = node.attr(d.name)) {
      if (given->type != d.type)
        return rewriter.fail("attribute '", d.name, "' has type ", given->type, ", expected ",
                             d.type, d.type == PFRT_ATTR_INT ? " (an integer)" : " (a float)");
      continue;
    }
    std::string name(d.name);
    node.set_attr(d.type == PFRT_ATTR_INT
                      ? Attribute::of_int(std::move(name), static_cast<int64_t>(d.value))
                      : Attribute::of_float(std::move(name), static_cast<float>(d.value)));
  }
  return {};
}

Status canonical_axis(Rewriter& rewriter, std::string_view name, int64_t fallback) {
  Node& node = rewriter.node();
  const Attribute* given = node.attr(name);
  if (given && given->type != PFRT_ATTR_INT)
    return rewriter.fail("attribute '", name, "' has type ", given->type, ", expected an integer");
  int64_t axis = given ? given->i : fallback;
  if (rewriter.has_shape(0)) {
    const int64_t rank = static_cast<int64_t>(rewriter.rank(0));
    if (axis < -rank || axis >= rank)
      return rewriter.fail("axis ", axis, " is not one of an input of rank ", rank);
    if (axis < 0) axis += rank;
  }
  node.set_attr(Attribute::of_int(std::string(name), axis));
  return {};
}

Status canonical_axes(Rewriter& rewriter, size_t i) {
  const Tensor* given = rewriter.constant(i);
  if (!given || !rewriter.has_shape(0)) return {};
  const int64_t rank = static_cast<int64_t>(rewriter.rank(0));
  if (given->count() > rank)
    return rewriter.fail(given->count(), " axes are given for an input of rank ", rank);
  const std::vector<int64_t> found = to_int64s(*given);
  if (static_cast<int64_t>(found.size()) != given->count())
    return rewriter.fail("axes have type ", dtype_name(given->dtype), ", expected int64");
  std::vector<int64_t> axes = found;
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      return rewriter.fail("axis ", axis, " is not one of an input of rank ", rank);
    if (axis < 0) axis += rank;
  }
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
  if (repeated != sorted.end()) return rewriter.fail("axis ", *repeated, " is given twice");
  if (axes == found && given->dtype == PFRT_DTYPE_INT64 && given->dims.size() == 1) return {};
  PFRT_ASSIGN(const ValueId value, rewriter.int64s("axes", axes));
  rewriter.set_input(i, value);
  return {};
}

Status join_norm_types(Rewriter& rewriter) {
  const pfrt_dtype x = rewriter.input(0).dtype, y = rewriter.input(1).dtype;
  if (x == y || !dtype_is_float(x) || !dtype_is_float(y)) return {};
  const bool wide = x == PFRT_DTYPE_FLOAT64 || y == PFRT_DTYPE_FLOAT64;
  const pfrt_dtype joint = wide ? PFRT_DTYPE_FLOAT64 : PFRT_DTYPE_FLOAT32;
  const auto cast = [](pfrt_dtype to) {
    return std::vector<Attribute>{Attribute::of_int("to", to), Attribute::of_int("saturate", 1)};
  };
  for (size_t i = 0; i < rewriter.node().inputs.size(); ++i) {
    if (!rewriter.has_input(i) || rewriter.input(i).dtype == joint) continue;
    PFRT_ASSIGN(const ValueId value,
                rewriter.before("Cast", {rewriter.node().inputs[i]}, cast(joint)));
    rewriter.set_input(i, value);
  }
  return y == joint ? Status() : rewriter.after("Cast", {}, cast(y));
}

Status wrong_dtype(const Inference& inference, size_t input, pfrt_dtype expected) {
  return error(Code::kDTYPE_MISMATCH, describe(inference.graph(), inference.node()), ": input ",
               input, " has type ", dtype_name(inference.input(input).dtype), ", expected ",
               dtype_name(expected), "; a Cast before it would convert it");
}

Status expect_dtype(const Inference& inference, size_t i, pfrt_dtype dtype) {
  const pfrt_dtype found = inference.input(i).dtype;
  return found == PFRT_DTYPE_UNSET || found == dtype ? Status() : wrong_dtype(inference, i, dtype);
}

Status same_dtypes(const Inference& inference, size_t begin, size_t end) {
  pfrt_dtype first = PFRT_DTYPE_UNSET;
  for (size_t i = begin; i < std::min(end, inference.input_count()); ++i) {
    const pfrt_dtype dtype = inference.input(i).dtype;
    if (dtype == PFRT_DTYPE_UNSET) continue;
    if (first == PFRT_DTYPE_UNSET) first = dtype;
    if (dtype != first) return wrong_dtype(inference, i, first);
  }
  return {};
}

Status infer_same(Inference& inference) {
  inference.set_output(0, inference.input(0));
  return {};
}

double flops_of_input(const Inference& inference) {
  if (!inference.input(0).fixed()) return 0;
  double count = 1;
  for (const Dim& d : inference.shape(0)) count *= static_cast<double>(d.value());
  return count;
}

}  // namespace pfrt
