// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/einsum.h"
#include "core/op/engine/contents.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr AttrDefault kReduceDefaults[] = {
    {"CumSum", "exclusive", PFRT_ATTR_INT, 0},  {"CumSum", "reverse", PFRT_ATTR_INT, 0},
    {"CumProd", "exclusive", PFRT_ATTR_INT, 0}, {"CumProd", "reverse", PFRT_ATTR_INT, 0},
    {"TopK", "largest", PFRT_ATTR_INT, 1},      {"TopK", "sorted", PFRT_ATTR_INT, 1},
};

// Makes axes an input; absent ones mean all, unless noop_with_empty_axes.
Status canonical_reduce(Rewriter& rewriter) {
  Node& node = rewriter.node();
  node.set_attr(Attribute::of_int("keepdims", node.attr_int("keepdims", 1)));
  node.set_attr(
      Attribute::of_int("noop_with_empty_axes", node.attr_int("noop_with_empty_axes", 0)));
  if (!rewriter.has_input(1)) PFRT_TRY(rewriter.attr_to_input("axes", 1));
  return canonical_axes(rewriter, 1);
}

Status canonical_arg(Rewriter& rewriter) {
  Node& node = rewriter.node();
  node.set_attr(Attribute::of_int("keepdims", node.attr_int("keepdims", 1)));
  node.set_attr(Attribute::of_int("select_last_index", node.attr_int("select_last_index", 0)));
  return canonical_axis(rewriter, "axis", 0);
}

Status canonical_softmax(Rewriter& rewriter) { return canonical_axis(rewriter, "axis", -1); }

// Before opset 13 the sum went over all dimensions from the axis on: along axis 1 of the matrix
// that Flatten makes.
Status canonical_legacy_softmax(Rewriter& rewriter) {
  PFRT_TRY(canonical_axis(rewriter, "axis", 1));
  Node& node = rewriter.node();
  const int64_t axis = node.attr_int("axis", 1);
  const Type type = rewriter.input(0);
  if (type.has_shape) {
    std::vector<int64_t> wide;
    for (size_t i = static_cast<size_t>(axis); i < type.shape.size(); ++i)
      if (!type.shape[i].is(1)) wide.push_back(static_cast<int64_t>(i));
    if (wide.size() <= 1) {
      node.set_attr(Attribute::of_int("axis", wide.empty() ? axis : wide.front()));
      return {};
    }
  } else if (axis == -1) {
    return {};  // only the last dimension, whatever the rank
  } else if (axis < 0) {
    return rewriter.unsupported("axis ", axis, " needs an input of known rank");
  }
  ValueId shape = kNoId;
  if (type.fixed()) {
    std::vector<int64_t> dims;
    dims.reserve(type.shape.size());
    for (const Dim& d : type.shape) dims.push_back(d.value());
    PFRT_ASSIGN(shape, rewriter.int64s("shape", dims));
  } else {
    PFRT_ASSIGN(shape, rewriter.before("Shape", {node.inputs[0]}, {Attribute::of_int("start", 0)}));
  }
  PFRT_ASSIGN(const ValueId flat,
              rewriter.before("Flatten", {node.inputs[0]}, {Attribute::of_int("axis", axis)}));
  rewriter.set_input(0, flat);
  node.set_attr(Attribute::of_int("axis", 1));
  return rewriter.after("Reshape", {shape}, {Attribute::of_int("allowzero", 1)});
}

// The axis is a scalar input.
Status canonical_cumulative(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kReduceDefaults));
  const Tensor* given = rewriter.constant(1);
  if (!given || !rewriter.has_shape(0)) return {};
  const std::vector<int64_t> axis = to_int64s(*given);
  const int64_t rank = static_cast<int64_t>(rewriter.rank(0));
  if (axis.size() != 1) return rewriter.fail("the axis has ", axis.size(), " elements, expected 1");
  if (axis[0] < -rank || axis[0] >= rank)
    return rewriter.fail("axis ", axis[0], " is not one of an input of rank ", rank);
  if (axis[0] >= 0 && given->dims.empty() && given->dtype == PFRT_DTYPE_INT64) return {};
  const int64_t found = axis[0] < 0 ? axis[0] + rank : axis[0];
  PFRT_ASSIGN(const ValueId value,
              rewriter.scalar("axis", PFRT_DTYPE_INT64, static_cast<double>(found)));
  rewriter.set_input(1, value);
  return {};
}

Status canonical_top_k(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kReduceDefaults));
  PFRT_TRY(canonical_axis(rewriter, "axis", -1));
  if (rewriter.has_input(1)) return {};
  if (!rewriter.node().attr("k")) return rewriter.fail("neither attribute nor input gives k");
  return rewriter.attr_to_input("k", 1);
}

Shape without(const Shape& shape, const std::vector<bool>& reduced, bool keep) {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!reduced[i])
      out.push_back(shape[i]);
    else if (keep)
      out.emplace_back(1);
  }
  return out;
}

Status infer_reduce(Inference& in) {
  const pfrt_dtype dtype = in.input(0).dtype;
  if (!in.has_shape(0)) {
    in.set_output_unknown_shape(0, dtype);
    return {};
  }
  const size_t rank = in.rank(0);
  const bool keep = in.node().attr_int("keepdims", 1) != 0;
  const bool one_list = in.has_shape(1) && in.rank(1) == 1 && in.shape(1)[0].known();
  const int64_t count = !in.has_input(1) ? 0 : one_list ? in.shape(1)[0].value() : -1;
  if (count > static_cast<int64_t>(rank))
    return in.fail(count, " axes are given for an input of rank ", rank);
  std::vector<bool> reduced(rank, count == 0 && in.node().attr_int("noop_with_empty_axes", 0) == 0);
  if (count != 0) {
    const auto axes = in.numbers(1);
    if (!axes) {
      if (keep)
        in.set_output(0, dtype, Shape(rank));
      else if (count > 0)
        in.set_output(0, dtype, Shape(rank - static_cast<size_t>(count)));
      else
        in.set_output_unknown_shape(0, dtype);
      return {};
    }
    for (int64_t given : *axes) {
      PFRT_ASSIGN(const int64_t axis, in.axis(given, rank));
      if (reduced[static_cast<size_t>(axis)]) return in.fail("axis ", axis, " is given twice");
      reduced[static_cast<size_t>(axis)] = true;
    }
  }
  in.set_output(0, dtype, without(in.shape(0), reduced, keep));
  return {};
}

Status infer_reduce_prod(Inference& in) {
  PFRT_TRY(infer_reduce(in));
  const std::optional<Shape> data = in.data(0);
  const Type& out = in.output(0);
  if (!data || !out.fixed() || in.rank(0) > 1) return {};
  const bool kept = data->size() != 1 && out.shape == in.shape(0);
  in.set_data(0, kept ? *data : Shape{narrow(out.dtype, in.symbols().product(*data))});
  return {};
}

Status infer_arg(Inference& in) {
  if (!in.has_shape(0)) {
    in.set_output_unknown_shape(0, PFRT_DTYPE_INT64);
    return {};
  }
  PFRT_ASSIGN(const int64_t axis, in.axis(in.node().attr_int("axis", 0), in.rank(0)));
  std::vector<bool> reduced(in.rank(0), false);
  reduced[static_cast<size_t>(axis)] = true;
  in.set_output(0, PFRT_DTYPE_INT64,
                without(in.shape(0), reduced, in.node().attr_int("keepdims", 1) != 0));
  return {};
}

Status infer_softmax(Inference& in) {
  if (in.has_shape(0)) {
    PFRT_ASSIGN(const int64_t axis, in.axis(in.node().attr_int("axis", -1), in.rank(0)));
    static_cast<void>(axis);
  }
  return infer_same(in);
}

Status infer_cumulative(Inference& in) {
  const auto axis = in.numbers(1);
  if (axis && axis->size() != 1)
    return in.fail("the axis has ", axis->size(), " elements, expected 1");
  if (axis && in.has_shape(0)) {
    PFRT_ASSIGN(const int64_t found, in.axis(axis->front(), in.rank(0)));
    static_cast<void>(found);
  }
  return infer_same(in);
}

Status infer_top_k(Inference& in) {
  const pfrt_dtype dtype = in.input(0).dtype;
  if (!in.has_shape(0)) {
    in.set_output_unknown_shape(0, dtype);
    in.set_output_unknown_shape(1, PFRT_DTYPE_INT64);
    return {};
  }
  PFRT_ASSIGN(const int64_t axis, in.axis(in.node().attr_int("axis", -1), in.rank(0)));
  Shape shape = in.shape(0);
  Dim& along = shape[static_cast<size_t>(axis)];
  const std::optional<Shape> k = in.data(1);
  if (k && k->size() != 1) return in.fail("k has ", k->size(), " elements, expected 1");
  const Dim taken = k ? k->front() : Dim();
  if (taken.known() && (taken.value() < 0 || (along.known() && taken.value() > along.value())))
    return in.fail("k is ", taken.value(), ", axis ", axis, " has ", in.symbols().text(along),
                   " elements");
  along = taken;
  in.set_output(0, dtype, shape);
  in.set_output(1, PFRT_DTYPE_INT64, std::move(shape));
  return {};
}

// Counts maximum, difference, exponential, sum and quotient.
double flops_of_softmax(const Inference& in) { return 5 * flops_of_input(in); }

constexpr auto kInput = flops_of_input;
constexpr uint32_t kSecond = 2;  // input 1 decides the shape

constexpr OperatorDef kReduceOperators[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {"", "ReduceSum", 1, 12, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceSum", 13, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceMean", 1, 17, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce,
     kInput},
    {"", "ReduceMean", 18, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce,
     kInput},
    {"", "ReduceMax", 1, 17, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceMax", 18, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceMin", 1, 17, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceMin", 18, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceProd", 1, 17, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce_prod,
     kInput},
    {"", "ReduceProd", 18, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce_prod,
     kInput},
    {"", "ReduceL1", 1, 17, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceL1", 18, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceL2", 1, 17, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceL2", 18, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce, kInput},
    {"", "ReduceLogSum", 1, 17, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce,
     kInput},
    {"", "ReduceLogSum", 18, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce,
     kInput},
    {"", "ReduceLogSumExp", 1, 17, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce,
     kInput},
    {"", "ReduceLogSumExp", 18, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce,
     kInput},
    {"", "ReduceSumSquare", 1, 17, 1, 1, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce,
     kInput},
    {"", "ReduceSumSquare", 18, 0, 1, 2, 1, 1, kOpPlain, kSecond, canonical_reduce, infer_reduce,
     kInput},

    {"", "ArgMax", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_arg, infer_arg, kInput},
    {"", "ArgMin", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_arg, infer_arg, kInput},
    {"", "Softmax", 1, 12, 1, 1, 1, 1, kOpPlain, 0, canonical_legacy_softmax, infer_softmax,
     flops_of_softmax},
    {"", "Softmax", 13, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_softmax, infer_softmax,
     flops_of_softmax},
    {"", "LogSoftmax", 1, 12, 1, 1, 1, 1, kOpPlain, 0, canonical_legacy_softmax, infer_softmax,
     flops_of_softmax},
    {"", "LogSoftmax", 13, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_softmax, infer_softmax,
     flops_of_softmax},
    {"", "Hardmax", 1, 12, 1, 1, 1, 1, kOpPlain, 0, canonical_legacy_softmax, infer_softmax,
     kInput},
    {"", "Hardmax", 13, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_softmax, infer_softmax, kInput},
    {"", "CumSum", 11, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_cumulative, infer_cumulative, nullptr},
    {"", "CumProd", 26, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_cumulative, infer_cumulative,
     nullptr},
    {"", "TopK", 1, 9, 1, 1, 2, 2, kOpPlain, kSecond, canonical_top_k, infer_top_k, kInput},
    {"", "TopK", 10, 0, 2, 2, 2, 2, kOpPlain, kSecond, canonical_top_k, infer_top_k, kInput},
    {"", "Einsum", 12, 0, 1, -1, 1, 1, kOpPlain, 0, canonical_einsum, infer_einsum,
     flops_of_einsum},
};

}  // namespace

std::span<const OperatorDef> reduce_operators() { return kReduceOperators; }

}  // namespace pfrt
