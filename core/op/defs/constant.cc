// SPDX-License-Identifier: Apache-2.0
//
// Operators that make tensors out of attributes or small numbers.
#include <algorithm>
#include <cmath>

#include "core/base/half.h"
#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/contents.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"
#include "core/op/engine/sparse.h"

namespace pfrt {
namespace {

// Limit for Constants, since a model may name a shape of any size in a few bytes; real constants
// arrive as data.
constexpr int64_t kMostElements = int64_t{1} << 28;

Status check_count(Rewriter& rewriter, const Dims& dims) {
  const int64_t count = element_count(dims.data(), dims.size());
  if (count >= 0 && count <= kMostElements) return {};
  return rewriter.fail("its shape has a negative dimension or more than ", kMostElements,
                       " elements");
}

template <typename T>
Result<Tensor> filled(pfrt_dtype dtype, Dims dims, T value) {
  PFRT_ASSIGN(Tensor tensor, Tensor::allocate(dtype, std::move(dims)));
  std::fill_n(tensor.as<T>(), tensor.count(), value);
  return tensor;
}

Result<Tensor> strings_of(Dims dims, const std::vector<std::string>& texts) {
  PFRT_ASSIGN(Tensor tensor, Tensor::allocate(PFRT_DTYPE_STRING, std::move(dims)));
  for (size_t i = 0; i < texts.size(); ++i) PFRT_TRY(tensor.buffer->set_string(i, texts[i]));
  return tensor;
}

Result<Tensor> dense(Rewriter& rewriter, const Value& sparse) {
  PFRT_TRY(check_count(rewriter, sparse.dense_dims));
  auto made = dense_of(sparse);
  if (!made.ok()) return rewriter.fail(made.status().message());
  return made;
}

// Makes a tensor of attribute |value| of a plain type, with |dims| when the node has them: a number
// fills, a list is reshaped.
Result<Tensor> plain_constant(Rewriter& rewriter, const Attribute& value,
                              const std::vector<int64_t>* dims) {
  auto shape_or = [&](size_t length) { return dims ? *dims : Dims{static_cast<int64_t>(length)}; };
  auto fits = [&](size_t length) {
    return !dims || element_count(dims->data(), dims->size()) == static_cast<int64_t>(length);
  };
  const Dims scalar = dims ? *dims : Dims{};
  PFRT_TRY(check_count(rewriter, scalar));
  switch (value.type) {
    case PFRT_ATTR_FLOAT:
      return filled(PFRT_DTYPE_FLOAT32, scalar, value.f);
    case PFRT_ATTR_INT:
      return filled(PFRT_DTYPE_INT64, scalar, value.i);
    case PFRT_ATTR_STRING:
      return strings_of({}, {value.s});
    case PFRT_ATTR_FLOATS:
      if (fits(value.floats.size()))
        return Tensor::copy_of(PFRT_DTYPE_FLOAT32, shape_or(value.floats.size()),
                               value.floats.data());
      break;
    case PFRT_ATTR_INTS:
      if (fits(value.ints.size()))
        return Tensor::copy_of(PFRT_DTYPE_INT64, shape_or(value.ints.size()), value.ints.data());
      break;
    case PFRT_ATTR_STRINGS:
      if (fits(value.strings.size()))
        return strings_of(shape_or(value.strings.size()), value.strings);
      break;
    default:
      return rewriter.fail("attribute '", value.name, "' is of type ", value.type,
                           ", expected a tensor, numbers or strings");
  }
  return rewriter.fail("attribute '", value.name,
                       "' does not have as many elements as 'shape' says");
}

Status canonical_constant(Rewriter& rewriter) {
  const Node& node = rewriter.node();
  for (std::string_view name : {"value", "sparse_value", "value_float", "value_floats", "value_int",
                                "value_ints", "value_string", "value_strings"}) {
    const Attribute* value = node.attr(name);
    if (!value) continue;
    const bool held =
        (value->type == PFRT_ATTR_TENSOR || value->type == PFRT_ATTR_SPARSE) && value->tensor;
    if (held && value->tensor->kind == PFRT_VALUE_SPARSE) {
      PFRT_ASSIGN(Tensor tensor, dense(rewriter, *value->tensor));
      return rewriter.replace_with_constant(std::move(tensor));
    }
    if (held && value->tensor->kind == PFRT_VALUE_TENSOR)
      return rewriter.replace_with_constant(value->tensor->tensor);
    PFRT_ASSIGN(Tensor tensor, plain_constant(rewriter, *value, node.attr_ints("shape")));
    return rewriter.replace_with_constant(std::move(tensor));
  }
  const std::vector<int64_t>* dims = node.attr_ints("shape");
  if (!dims)
    return rewriter.fail(
        "needs one of the attributes 'value', 'value_*', 'sparse_value' or 'shape'");
  PFRT_TRY(check_count(rewriter, *dims));
  PFRT_ASSIGN(Tensor zeros, Tensor::allocate(PFRT_DTYPE_FLOAT32, *dims));
  return rewriter.replace_with_constant(std::move(zeros));
}

Status canonical_constant_of_shape(Rewriter& rewriter) {
  const Attribute* value = rewriter.node().attr("value");
  if (!value) {
    PFRT_ASSIGN(Tensor zero, Tensor::of_float({0}));
    rewriter.node().set_attr(Attribute::of_tensor("value", std::move(zero)));
    return {};
  }
  if (value->type != PFRT_ATTR_TENSOR || !value->tensor || value->tensor->tensor.count() != 1)
    return rewriter.fail("attribute 'value' must be a tensor of one element");
  return {};
}

Status infer_constant_of_shape(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 0, 1));
  PFRT_TRY(expect_dtype(inference, 0, PFRT_DTYPE_INT64));
  const Attribute* value = inference.node().attr("value");
  const Tensor* fill = value && value->tensor ? &value->tensor->tensor : nullptr;
  const pfrt_dtype dtype = fill ? fill->dtype : pfrt_dtype{PFRT_DTYPE_FLOAT32};
  std::optional<Shape> out = inference.data(0);
  if (!out) {
    const std::optional<int64_t> rank = list_length(inference, 0);
    if (rank) {
      inference.set_output(0, dtype, Shape(static_cast<size_t>(*rank)));
    } else {
      inference.set_output_unknown_shape(0, dtype);
    }
    return {};
  }
  for (const Dim& d : *out)
    if (d.known() && d.value() < 0)
      return inference.fail("the shape ", inference.symbols().text(*out),
                            " has a negative dimension");
  const Dim count = inference.symbols().product(*out);
  inference.set_output(0, dtype, std::move(*out));
  const std::optional<Shape> element = contents_of(fill);
  if (element && element->size() == 1 && count.known() &&
      count.value() <= static_cast<int64_t>(kMaxData))
    inference.set_data(0, Shape(static_cast<size_t>(count.value()), element->front()));
  return {};
}

Status canonical_eye_like(Rewriter& rewriter) { return fill_int(rewriter, "k", 0); }

Status infer_eye_like(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 0, 2));
  Type out = inference.input(0);
  out.kind = PFRT_VALUE_TENSOR;
  if (const Attribute* dtype = inference.node().attr("dtype")) {
    if (dtype->i <= 0 || dtype->i > UINT32_MAX || !dtype_known(static_cast<pfrt_dtype>(dtype->i)))
      return inference.fail("attribute 'dtype' is ", dtype->i, ", which is no element type");
    out.dtype = static_cast<pfrt_dtype>(dtype->i);
  }
  inference.set_output(0, std::move(out));
  return {};
}

// The number in a one-element constant of a real type.
std::optional<double> real_number(const Tensor* constant) {
  if (!constant || constant->count() != 1) return std::nullopt;
  switch (constant->dtype) {
    case PFRT_DTYPE_FLOAT32:
      return static_cast<double>(*constant->as<float>());
    case PFRT_DTYPE_FLOAT64:
      return *constant->as<double>();
    case PFRT_DTYPE_FLOAT16:
      return static_cast<double>(float16_to_float(*constant->as<uint16_t>()));
    case PFRT_DTYPE_BFLOAT16:
      return static_cast<double>(bfloat16_to_float(*constant->as<uint16_t>()));
    default:
      return std::nullopt;
  }
}

Status infer_real_range(Inference& inference, pfrt_dtype dtype) {
  const auto start = real_number(inference.constant(0)), limit = real_number(inference.constant(1)),
             delta = real_number(inference.constant(2));
  Dim count;
  if (start && limit && delta) {
    if (*delta == 0) return inference.fail("delta is 0");
    const double span =
        dtype == PFRT_DTYPE_FLOAT64
            ? *limit - *start
            : static_cast<double>(static_cast<float>(*limit) - static_cast<float>(*start));
    const double steps = std::ceil(span / *delta);
    if (!(steps < 4e18))
      return inference.fail("the range has no end: start, limit or delta is not finite");
    count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  }
  inference.set_output(0, dtype, {count});
  return {};
}

Status infer_range(Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, 3));
  const pfrt_dtype dtype = inference.input(0).dtype;
  if (dtype_is_float(dtype)) return infer_real_range(inference, dtype);
  Dim scalars[3];
  for (size_t i = 0; i < 3; ++i) {
    const std::optional<Shape> elements = inference.data(i);
    if (!elements) continue;
    if (elements->size() != 1)
      return inference.fail("input ", i, " has ", elements->size(), " elements, expected 1");
    scalars[i] = elements->front();
  }
  const auto [start, limit, delta] = scalars;
  if (delta.is(0)) return inference.fail("delta is 0");
  SymbolTable& symbols = inference.symbols();
  Dim count;
  if (delta.known() && delta.value() != INT64_MIN) {
    const bool up = delta.value() > 0;
    const Dim span = up ? symbols.sub(limit, start) : symbols.sub(start, limit);
    const Dim steps = symbols.ceil_div(span, up ? delta.value() : -delta.value());
    count = symbols.certainly_natural(steps) ? steps : symbols.max(steps, 0);
  }
  inference.set_output(0, dtype, {count});
  if (!count.known() || count.value() > static_cast<int64_t>(kMaxData)) return {};
  Shape elements;
  Dim next = start;
  for (int64_t i = 0; i < count.value(); ++i, next = symbols.add(next, delta))
    elements.push_back(next);
  inference.set_data(0, std::move(elements));
  return {};
}

Status canonical_one_hot(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "axis", -1));
  const int64_t axis = rewriter.node().attr_int("axis", -1);
  if (axis >= 0 || !rewriter.has_shape(0)) return {};
  const int64_t rank = static_cast<int64_t>(rewriter.rank(0)) + 1;
  if (axis < -rank) return rewriter.fail("axis ", axis, " is not one of an output of rank ", rank);
  rewriter.node().set_attr(Attribute::of_int("axis", axis + rank));
  return {};
}

// The depth may be of any numeric type.
Result<Dim> one_hot_depth(const Inference& inference) {
  Dim depth;
  if (const std::optional<Shape> elements = inference.data(1)) {
    if (elements->size() != 1)
      return inference.fail("depth has ", elements->size(), " elements, expected 1");
    depth = elements->front();
  } else if (const std::optional<double> real = real_number(inference.constant(1))) {
    if (!(*real >= 0 && *real < 4e18)) return inference.fail("depth is ", *real);
    depth = static_cast<int64_t>(*real);
  }
  if (depth.known() && depth.value() < 0) return inference.fail("depth is ", depth.value());
  return depth;
}

Status infer_one_hot(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 2, 1));
  PFRT_TRY(expect_shape(inference, 2, {2}));
  const pfrt_dtype dtype = inference.input(2).dtype;
  if (!inference.has_shape(0)) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  PFRT_ASSIGN(const Dim depth, one_hot_depth(inference));
  Shape out = inference.shape(0);
  PFRT_ASSIGN(const int64_t axis,
              inference.axis(inference.node().attr_int("axis", -1), out.size() + 1));
  out.insert(out.begin() + axis, depth);
  inference.set_output(0, dtype, std::move(out));
  return {};
}

Status infer_non_zero(Inference& inference) {
  const Dim rank = inference.has_shape(0) ? Dim(static_cast<int64_t>(inference.rank(0))) : Dim();
  inference.set_output(0, PFRT_DTYPE_INT64, {rank, Dim()});
  return {};
}

// Makes com.microsoft's product of a sparse constant and a dense matrix a MatMul of the dense
// constant.
Status canonical_sparse_matmul(Rewriter& rewriter) {
  const ValuePtr held = rewriter.graph().at(rewriter.node().inputs[0]).constant;
  if (held && held->kind == PFRT_VALUE_SPARSE) {
    PFRT_ASSIGN(Tensor tensor, dense(rewriter, *held));
    rewriter.set_input(0, rewriter.constant_value("dense", std::move(tensor)));
  } else if (!rewriter.constant(0)) {
    return rewriter.fail("the sparse matrix must be a constant of the model");
  }
  const double alpha = static_cast<double>(rewriter.node().attr_float("alpha", 1));
  for (size_t i : {0u, 1u}) {
    if (rewriter.node().attr_int(i == 0 ? "transA" : "transB", 0) == 0) continue;
    PFRT_ASSIGN(const ValueId turned, rewriter.before("Transpose", {rewriter.node().inputs[i]},
                                                      {Attribute::of_ints("perm", {1, 0})}));
    rewriter.set_input(i, turned);
  }
  if (alpha != 1) {
    PFRT_ASSIGN(const ValueId factor, rewriter.scalar("alpha", rewriter.input(1).dtype, alpha));
    PFRT_TRY(rewriter.after("Mul", {factor}));
  }
  Node& node = rewriter.node();
  node.domain.clear();
  node.op = "MatMul";
  node.attrs.clear();
  return {};
}

constexpr OperatorDef kConstantOperators[] = {
    {"", "Constant", 1, 0, 0, 0, 1, 1, kOpPlain, 0, canonical_constant, nullptr, nullptr},
    {"", "ConstantOfShape", 9, 0, 1, 1, 1, 1, kOpPlain, 1u << 0, canonical_constant_of_shape,
     infer_constant_of_shape, nullptr},
    {"", "EyeLike", 9, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_eye_like, infer_eye_like, nullptr},
    {"", "Range", 11, 0, 3, 3, 1, 1, kOpPlain, 7u, nullptr, infer_range, nullptr},
    {"", "OneHot", 9, 0, 3, 3, 1, 1, kOpPlain, 1u << 1, canonical_one_hot, infer_one_hot, nullptr},
    {"", "NonZero", 9, 0, 1, 1, 1, 1, kOpDataDependent, 0, nullptr, infer_non_zero, flops_of_input},
    {"com.microsoft", "SparseToDenseMatMul", 1, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_sparse_matmul,
     nullptr, nullptr},
};

}  // namespace

std::span<const OperatorDef> constant_operators() { return kConstantOperators; }

}  // namespace pfrt
