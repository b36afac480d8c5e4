// SPDX-License-Identifier: Apache-2.0
//
// Encoders and maps. All of LabelEncoder's versions, and CategoryMapper, become its newest form
// with the attributes keys_tensor, values_tensor and default_tensor. The last value of a repeated
// key counts.
#include <algorithm>
#include <optional>

#include "core/op/defs/common/helpers.h"
#include "core/op/defs/ml/ml.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr std::string_view kListSuffixes[] = {"_floats", "_int64s", "_strings", "_tensor"};

bool is_label_type(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_STRING:
    case PFRT_DTYPE_INT64:
    case PFRT_DTYPE_INT32:
    case PFRT_DTYPE_INT16:
    case PFRT_DTYPE_FLOAT32:
    case PFRT_DTYPE_FLOAT64:
      return true;
    default:
      return false;
  }
}

Result<Tensor> texts(const std::vector<std::string>& list) {
  PFRT_ASSIGN(Tensor out,
              Tensor::allocate(PFRT_DTYPE_STRING, Dims{static_cast<int64_t>(list.size())}));
  for (size_t i = 0; i < list.size(); ++i) PFRT_TRY(out.buffer->set_string(i, list[i]));
  return out;
}

// The only list among |stem|_floats, _int64s, _strings and _tensor, flat.
Result<Tensor> the_list(Rewriter& rewriter, const std::string& stem) {
  std::optional<std::string> found;
  for (std::string_view suffix : kListSuffixes) {
    const std::string name = stem + std::string(suffix);
    if (!rewriter.node().attr(name)) continue;
    if (found)
      return rewriter.fail("has both attributes '", *found, "' and '", name,
                           "'; one list is allowed");
    found = name;
  }
  if (!found)
    return rewriter.fail("needs one of the attributes '", stem, "_floats', '", stem, "_int64s', '",
                         stem, "_strings' and '", stem, "_tensor'");
  if (found->ends_with("_floats")) {
    PFRT_ASSIGN(const std::vector<float> list, ml_floats(rewriter, *found));
    return Tensor::of_float(list);
  }
  if (found->ends_with("_int64s")) {
    PFRT_ASSIGN(const std::vector<int64_t> list, ml_ints(rewriter, *found));
    return Tensor::of_int64(list);
  }
  if (found->ends_with("_strings")) {
    PFRT_ASSIGN(const std::vector<std::string> list, ml_strings(rewriter, *found));
    return texts(list);
  }
  const Attribute& attr = *rewriter.node().attr(*found);
  if (attr.type != PFRT_ATTR_TENSOR || !attr.tensor || !is_label_type(attr.tensor->tensor.dtype))
    return rewriter.fail("attribute '", *found,
                         "' must be a tensor of strings, integers or floats");
  Tensor out = attr.tensor->tensor;
  out.dims = {out.count()};
  return out;
}

// The value for a missing key: the attribute for the values' type, or its default.
Result<Tensor> the_default(Rewriter& rewriter, pfrt_dtype dtype) {
  const Node& node = rewriter.node();
  if (const Attribute* given = node.attr("default_tensor")) {
    if (given->type != PFRT_ATTR_TENSOR || !given->tensor || given->tensor->tensor.dtype != dtype ||
        given->tensor->tensor.count() != 1)
      return rewriter.fail("attribute 'default_tensor' must be one element of ", dtype_name(dtype),
                           ", the type of the values");
    Tensor out = given->tensor->tensor;
    out.dims = {1};
    return out;
  }
  if (dtype == PFRT_DTYPE_STRING)
    return texts({std::string(node.attr_string("default_string", "_Unused"))});
  PFRT_ASSIGN(Tensor out, Tensor::allocate(dtype, Dims{1}));
  const int64_t whole = node.attr_int("default_int64", -1);
  const float real = node.attr_float("default_float", -0.0f);
  if (dtype == PFRT_DTYPE_INT64) *out.as<int64_t>() = whole;
  if (dtype == PFRT_DTYPE_INT32) *out.as<int32_t>() = -1;
  if (dtype == PFRT_DTYPE_INT16) *out.as<int16_t>() = -1;
  if (dtype == PFRT_DTYPE_FLOAT32) *out.as<float>() = real;
  if (dtype == PFRT_DTYPE_FLOAT64) *out.as<double>() = static_cast<double>(real);
  return out;
}

Status to_encoder(Rewriter& rewriter, Tensor keys, Tensor values) {
  if (keys.count() != values.count())
    return rewriter.fail("has ", keys.count(), " keys and ", values.count(),
                         " values; each key needs a value");
  const pfrt_dtype dtype = rewriter.input(0).dtype;
  if (dtype != PFRT_DTYPE_UNSET && dtype != keys.dtype)
    return error(Code::kDTYPE_MISMATCH, describe(rewriter.graph(), rewriter.node()),
                 ": input 0 has type ", dtype_name(dtype), ", the keys are ",
                 dtype_name(keys.dtype));
  PFRT_ASSIGN(Tensor fallback, the_default(rewriter, values.dtype));
  Node& node = rewriter.node();
  node.op = "LabelEncoder";
  node.attrs = {Attribute::of_tensor("keys_tensor", std::move(keys)),
                Attribute::of_tensor("values_tensor", std::move(values)),
                Attribute::of_tensor("default_tensor", std::move(fallback))};
  return {};
}

// Maps between integers and texts, by the input's type.
Status to_mapper(Rewriter& rewriter, const std::vector<int64_t>& numbers,
                 const std::vector<std::string>& names) {
  PFRT_TRY(ml_expect(rewriter, {PFRT_DTYPE_STRING, PFRT_DTYPE_INT64}));
  PFRT_ASSIGN(Tensor integers, Tensor::of_int64(numbers));
  PFRT_ASSIGN(Tensor strings, texts(names));
  return rewriter.input(0).dtype == PFRT_DTYPE_STRING
             ? to_encoder(rewriter, std::move(strings), std::move(integers))
             : to_encoder(rewriter, std::move(integers), std::move(strings));
}

Type map_type(pfrt_value_kind kind, pfrt_dtype key, pfrt_dtype value) {
  Type type;
  type.kind = kind;
  type.key_dtype = key;
  type.dtype = value;
  return type;
}

Status expect_map(Rewriter& rewriter) {
  const pfrt_value_kind kind = rewriter.input(0).kind;
  if (kind == PFRT_VALUE_MAP || kind == PFRT_VALUE_UNSET) return {};
  return rewriter.fail("input 0 must be a map");
}

}  // namespace

Status canonical_label_encoder_1(Rewriter& rewriter) {
  PFRT_ASSIGN(const std::vector<std::string> names, ml_strings(rewriter, "classes_strings"));
  std::vector<int64_t> numbers(names.size());
  for (size_t i = 0; i < names.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  return to_mapper(rewriter, numbers, names);
}

Status canonical_category_mapper(Rewriter& rewriter) {
  PFRT_ASSIGN(const std::vector<std::string> names, ml_strings(rewriter, "cats_strings"));
  PFRT_ASSIGN(const std::vector<int64_t> numbers, ml_ints(rewriter, "cats_int64s"));
  return to_mapper(rewriter, numbers, names);
}

Status canonical_label_encoder(Rewriter& rewriter) {
  PFRT_ASSIGN(Tensor keys, the_list(rewriter, "keys"));
  PFRT_ASSIGN(Tensor values, the_list(rewriter, "values"));
  return to_encoder(rewriter, std::move(keys), std::move(values));
}

Status infer_label_encoder(Inference& in) {
  Type type = in.input(0);
  type.kind = PFRT_VALUE_TENSOR;
  const Attribute* values = in.node().attr("values_tensor");
  type.dtype =
      values && values->tensor ? values->tensor->tensor.dtype : pfrt_dtype{PFRT_DTYPE_UNSET};
  in.set_output(0, std::move(type));
  return {};
}

Status canonical_one_hot_encoder(Rewriter& rewriter) {
  PFRT_TRY(ml_expect(rewriter, {PFRT_DTYPE_STRING, PFRT_DTYPE_INT64, PFRT_DTYPE_INT32,
                                PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64}));
  PFRT_ASSIGN(const MlLabels cats, ml_labels(rewriter, "cats_int64s", "cats_strings"));
  const bool strings = rewriter.input(0).dtype == PFRT_DTYPE_STRING;
  if (strings ? cats.strings.empty() : cats.ints.empty())
    return rewriter.fail("attribute '", strings ? "cats_strings" : "cats_int64s",
                         "' is empty or absent, and input 0 holds ",
                         dtype_name(rewriter.input(0).dtype));
  rewriter.node().set_attr(
      Attribute::of_int("zeros", rewriter.node().attr_int("zeros", 1) != 0 ? 1 : 0));
  return {};
}

Status infer_one_hot_encoder(Inference& in) {
  Type type = in.input(0);
  type.kind = PFRT_VALUE_TENSOR;
  type.dtype = PFRT_DTYPE_FLOAT32;
  const Attribute* ints = in.node().attr("cats_int64s");
  const Attribute* strings = in.node().attr("cats_strings");
  if (type.has_shape)
    type.shape.push_back(static_cast<int64_t>(ints      ? ints->ints.size()
                                              : strings ? strings->strings.size()
                                                        : 0));
  in.set_output(0, std::move(type));
  return {};
}

Status canonical_zip_map(Rewriter& rewriter) {
  PFRT_ASSIGN(const MlLabels labels,
              ml_labels(rewriter, "classlabels_int64s", "classlabels_strings"));
  if (labels.size() == 0)
    return rewriter.fail("needs keys in attribute 'classlabels_int64s' or 'classlabels_strings'");
  if (!rewriter.has_shape(0)) return {};
  const Shape& shape = rewriter.input(0).shape;
  if (shape.empty() || shape.size() > 2)
    return rewriter.fail("input 0 has rank ", shape.size(), ", expected [C] or [N, C]");
  if (shape.back().known() && shape.back().value() != static_cast<int64_t>(labels.size()))
    return rewriter.fail("has ", labels.size(), " keys for ", shape.back().value(), " columns");
  return {};
}

Status infer_zip_map(Inference& in) {
  if (in.input(0).dtype != PFRT_DTYPE_UNSET && in.input(0).dtype != PFRT_DTYPE_FLOAT32)
    return wrong_dtype(in, 0, PFRT_DTYPE_FLOAT32);
  const Attribute* strings = in.node().attr("classlabels_strings");
  in.set_output(
      0, map_type(PFRT_VALUE_SEQUENCE,
                  strings && !strings->strings.empty() ? PFRT_DTYPE_STRING : PFRT_DTYPE_INT64,
                  PFRT_DTYPE_FLOAT32));
  return {};
}

Status canonical_cast_map(Rewriter& rewriter) {
  PFRT_TRY(expect_map(rewriter));
  PFRT_ASSIGN(std::string to, ml_word(rewriter, "cast_to", {"TO_FLOAT", "TO_STRING", "TO_INT64"}));
  PFRT_ASSIGN(std::string form, ml_word(rewriter, "map_form", {"DENSE", "SPARSE"}));
  const int64_t length = rewriter.node().attr_int("max_map", 1);
  if (form == "SPARSE" && length < 1)
    return rewriter.fail("attribute 'max_map' is ", length, ", needs 1 or more");
  rewriter.node().set_attr(Attribute::of_string("cast_to", std::move(to)));
  rewriter.node().set_attr(Attribute::of_string("map_form", std::move(form)));
  rewriter.node().set_attr(Attribute::of_int("max_map", length));
  return {};
}

Status infer_cast_map(Inference& in) {
  const std::string_view to = in.node().attr_string("cast_to", "TO_FLOAT");
  const bool sparse = in.node().attr_string("map_form", "DENSE") == "SPARSE";
  in.set_output(0,
                to == "TO_STRING"  ? PFRT_DTYPE_STRING
                : to == "TO_INT64" ? PFRT_DTYPE_INT64
                                   : PFRT_DTYPE_FLOAT32,
                {Dim(1), sparse ? Dim(in.node().attr_int("max_map", 1)) : Dim()});
  return {};
}

Status canonical_dict_vectorizer(Rewriter& rewriter) {
  PFRT_TRY(expect_map(rewriter));
  PFRT_ASSIGN(const MlLabels keys, ml_labels(rewriter, "int64_vocabulary", "string_vocabulary"));
  if (keys.size() == 0)
    return rewriter.fail("needs attribute 'int64_vocabulary' or 'string_vocabulary'");
  const pfrt_dtype key = keys.strings.empty() ? PFRT_DTYPE_INT64 : PFRT_DTYPE_STRING;
  const pfrt_dtype found = rewriter.input(0).key_dtype;
  if (found != PFRT_DTYPE_UNSET && found != key)
    return rewriter.fail("input 0 has keys of ", dtype_name(found), ", the vocabulary is ",
                         dtype_name(key));
  return {};
}

// The result is a row, as in ONNX Runtime, so that models can follow.
Status infer_dict_vectorizer(Inference& in) {
  const Attribute* ints = in.node().attr("int64_vocabulary");
  const Attribute* strings = in.node().attr("string_vocabulary");
  const size_t length = ints && !ints->ints.empty() ? ints->ints.size()
                        : strings                   ? strings->strings.size()
                                                    : 0;
  in.set_output(0, in.input(0).dtype, {Dim(1), Dim(static_cast<int64_t>(length))});
  return {};
}

}  // namespace pfrt
