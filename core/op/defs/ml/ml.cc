// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/ml/ml.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr pfrt_dtype kDouble = PFRT_DTYPE_FLOAT64;
constexpr pfrt_dtype kInt64 = PFRT_DTYPE_INT64;

struct NamedType {
  std::string_view name;
  pfrt_attr_type type;
};

// Attributes whose names have one type in all operators; lists are checked where they are read.
constexpr NamedType kTypes[] = {
    {"threshold", PFRT_ATTR_FLOAT},
    {"replaced_value_float", PFRT_ATTR_FLOAT},
    {"replaced_value_int64", PFRT_ATTR_INT},
    {"default_int64", PFRT_ATTR_INT},
    {"default_float", PFRT_ATTR_FLOAT},
    {"default_string", PFRT_ATTR_STRING},
    {"max_map", PFRT_ATTR_INT},
    {"targets", PFRT_ATTR_INT},
    {"multi_class", PFRT_ATTR_INT},
    {"zeros", PFRT_ATTR_INT},
    {"n_supports", PFRT_ATTR_INT},
    {"one_class", PFRT_ATTR_INT},
    {"n_targets", PFRT_ATTR_INT},
    {"coefficients", PFRT_ATTR_FLOATS},
    {"rho", PFRT_ATTR_FLOATS},
    {"prob_a", PFRT_ATTR_FLOATS},
    {"prob_b", PFRT_ATTR_FLOATS},
    {"support_vectors", PFRT_ATTR_FLOATS},
    {"kernel_params", PFRT_ATTR_FLOATS},
    {"vectors_per_class", PFRT_ATTR_INTS},
};

// Applies a row's canonical form after checking the types of attributes.
template <Status (*kForm)(Rewriter&)>
Status typed(Rewriter& rewriter) {
  for (const Attribute& attr : rewriter.node().attrs) {
    const auto* known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                     [&](const NamedType& t) { return t.name == attr.name; });
    if (known != std::end(kTypes) && known->type != attr.type)
      return rewriter.fail("attribute '", attr.name, "' has type ", attr.type, ", expected ",
                           known->type, " (in ONNX's numbering of attribute types)");
  }
  return kForm(rewriter);
}

// Checks that |count| values are one for all features, or one for each.
Status expect_features(Rewriter& rewriter, std::string_view name, size_t count) {
  if (count == 1 || !rewriter.has_shape(0) || rewriter.rank(0) == 0) return {};
  const Dim features = rewriter.input(0).shape.back();
  if (!features.known() || features.value() == static_cast<int64_t>(count)) return {};
  return rewriter.fail("attribute '", name, "' has ", count, " elements, expected 1 or ",
                       features.value(), ", one a feature");
}

// Takes the features at |Y| of the last axis; of a vector, as a row. Strings are left to the host.
Status canonical_array_feature_extractor(Rewriter& rewriter) {
  const pfrt_dtype dtype = rewriter.input(0).dtype;
  if (dtype == PFRT_DTYPE_UNSET || dtype == PFRT_DTYPE_STRING || !rewriter.has_shape(0) ||
      rewriter.rank(0) == 0)
    return {};
  PFRT_ASSIGN(const ValueId list, rewriter.int64s("dims", {-1}));
  PFRT_ASSIGN(const ValueId indices, rewriter.before("Reshape", {rewriter.node().inputs[1], list},
                                                     {Attribute::of_int("allowzero", 0)}));
  const auto axis = static_cast<int64_t>(rewriter.rank(0)) - 1;
  PFRT_ASSIGN(ValueId taken, rewriter.before("Gather", {rewriter.node().inputs[0], indices},
                                             {Attribute::of_int("axis", axis)}));
  if (axis == 0) {
    PFRT_ASSIGN(const ValueId row, rewriter.int64s("axes", {0}));
    PFRT_ASSIGN(taken, rewriter.before("Unsqueeze", {taken, row}));
  }
  rewriter.replace_with({taken});
  return {};
}

Status infer_array_feature_extractor(Inference& in) {
  Type type = in.input(0);
  if (type.has_shape) {
    if (type.shape.empty()) return in.fail("input 0 is a scalar, it has no features to extract");
    if (type.shape.size() == 1) type.shape.insert(type.shape.begin(), Dim(1));
    Dim count = 1;
    if (in.has_shape(1))
      for (const Dim& d : in.shape(1)) count = in.symbols().mul(count, d);
    type.shape.back() = in.has_shape(1) ? count : Dim();
  }
  in.set_output(0, std::move(type));
  return {};
}

// Computes x > threshold as 0 and 1 of the same type.
Status canonical_binarizer(Rewriter& rewriter) {
  PFRT_TRY(ml_expect_number(rewriter));
  const pfrt_dtype dtype = rewriter.input(0).dtype;
  const double threshold = static_cast<double>(rewriter.node().attr_float("threshold", 0));
  const ValueId x = rewriter.node().inputs[0];
  ValueId above = kNoId;
  if (dtype == kFloat || dtype == kDouble) {
    PFRT_ASSIGN(const ValueId bound, ml_constant(rewriter, dtype, {}, {threshold}));
    PFRT_ASSIGN(above, rewriter.before("Greater", {x, bound}));
  } else {
    // An integer is above t if it is above t rounded down; beyond the range of integers none or all
    // are.
    const bool none = !(threshold < 0x1p63), all = threshold < -0x1p63;
    PFRT_ASSIGN(const ValueId wide, ml_cast(rewriter, x, dtype, PFRT_DTYPE_INT64));
    PFRT_ASSIGN(Tensor bound,
                Tensor::scalar_int64(none  ? INT64_MAX
                                     : all ? INT64_MIN
                                           : static_cast<int64_t>(std::floor(threshold))));
    PFRT_ASSIGN(above, rewriter.before(all ? "GreaterOrEqual" : "Greater",
                                       {wide, rewriter.constant_value("bound", std::move(bound))}));
  }
  PFRT_ASSIGN(const ValueId y, ml_cast(rewriter, above, PFRT_DTYPE_BOOL, dtype));
  rewriter.replace_with({y});
  return {};
}

// Puts inputs side by side as floats, each cut or filled with zeros to its dimension.
Status canonical_feature_vectorizer(Rewriter& rewriter) {
  PFRT_TRY(ml_expect_number(rewriter));
  PFRT_ASSIGN(const std::vector<int64_t> sizes, ml_ints(rewriter, "inputdimensions"));
  const std::vector<ValueId> inputs = rewriter.node().inputs;
  if (!sizes.empty() && sizes.size() != inputs.size())
    return rewriter.fail("attribute 'inputdimensions' has ", sizes.size(), " elements for ",
                         inputs.size(), " inputs");
  std::vector<ValueId> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t size = sizes.empty() ? -1 : sizes[i];
    if (!rewriter.has_shape(i) || rewriter.rank(i) < 1 || rewriter.rank(i) > 2)
      return rewriter.unsupported("input ", i, " must be known to be [C] or [N, C]");
    if (!sizes.empty() && size < 0)
      return rewriter.fail("attribute 'inputdimensions' has ", size, " for input ", i);
    const Dim columns = rewriter.input(i).shape.back();
    PFRT_ASSIGN(ValueId part, ml_cast(rewriter, inputs[i], rewriter.input(i).dtype, kFloat));
    if (rewriter.rank(i) == 1) {
      PFRT_ASSIGN(const ValueId row, rewriter.int64s("axes", {0}));
      PFRT_ASSIGN(part, rewriter.before("Unsqueeze", {part, row}));
    }
    if (size >= 0 && !(columns.known() && columns.value() >= size)) {
      const int64_t missing = columns.known() ? size - columns.value() : size;
      PFRT_ASSIGN(const ValueId pads, rewriter.int64s("pads", {0, 0, 0, missing}));
      PFRT_ASSIGN(part,
                  rewriter.before("Pad", {part, pads}, {Attribute::of_string("mode", "constant")}));
    }
    if (size >= 0 && !(columns.known() && columns.value() <= size)) {
      PFRT_ASSIGN(const ValueId start, rewriter.int64s("starts", {0}));
      PFRT_ASSIGN(const ValueId end, rewriter.int64s("ends", {size}));
      PFRT_ASSIGN(const ValueId axis, rewriter.int64s("axes", {1}));
      PFRT_ASSIGN(const ValueId step, rewriter.int64s("steps", {1}));
      PFRT_ASSIGN(part, rewriter.before("Slice", {part, start, end, axis, step}));
    }
    parts.push_back(part);
  }
  PFRT_ASSIGN(const ValueId y,
              rewriter.before("Concat", std::move(parts), {Attribute::of_int("axis", 1)}));
  rewriter.replace_with({y});
  return {};
}

// Replaces the value that marks a missing one; NaN marks every NaN.
Status canonical_imputer(Rewriter& rewriter) {
  PFRT_TRY(ml_expect_number(rewriter));
  const pfrt_dtype dtype = rewriter.input(0).dtype;
  const bool floats = dtype == kFloat || dtype == kDouble;
  const ValueId x = rewriter.node().inputs[0];
  const std::string_view list = floats ? "imputed_value_floats" : "imputed_value_int64s";
  Result<Tensor> imputed = Tensor(), replaced = Tensor();
  bool nan = false;
  if (floats) {
    PFRT_ASSIGN(const std::vector<float> values, ml_floats(rewriter, list));
    const float old = rewriter.node().attr_float("replaced_value_float", 0);
    nan = std::isnan(old);
    imputed = Tensor::of_float(values);
    replaced = Tensor::copy_of(kFloat, {}, &old);
  } else {
    PFRT_ASSIGN(const std::vector<int64_t> values, ml_ints(rewriter, list));
    imputed = Tensor::of_int64(values);
    replaced = Tensor::scalar_int64(rewriter.node().attr_int("replaced_value_int64", 0));
  }
  if (!imputed.ok()) return imputed.take_status();
  if (!replaced.ok()) return replaced.take_status();
  if (imputed->count() == 0)
    return rewriter.fail("attribute '", list, "' is empty or absent, and input 0 holds ",
                         dtype_name(dtype));
  PFRT_TRY(expect_features(rewriter, list, static_cast<size_t>(imputed->count())));
  // Values are compared and replaced in the wider type of both.
  const pfrt_dtype wide = floats ? dtype : kInt64;
  const pfrt_dtype held = floats ? kFloat : kInt64;
  PFRT_ASSIGN(const ValueId from, ml_cast(rewriter, x, dtype, wide));
  const ValueId values = rewriter.constant_value("imputed", imputed.take());
  PFRT_ASSIGN(const ValueId to, ml_cast(rewriter, values, held, wide));
  ValueId missing = kNoId;
  if (nan) {
    PFRT_ASSIGN(missing, rewriter.before("IsNaN", {from}));
  } else {
    const ValueId old = rewriter.constant_value("replaced", replaced.take());
    PFRT_ASSIGN(const ValueId same, ml_cast(rewriter, old, held, wide));
    PFRT_ASSIGN(missing, rewriter.before("Equal", {from, same}));
  }
  PFRT_ASSIGN(const ValueId filled, rewriter.before("Where", {missing, to, from}));
  PFRT_ASSIGN(const ValueId y, ml_cast(rewriter, filled, wide, dtype));
  rewriter.replace_with({y});
  return {};
}

// Divides rows by their greatest element, the sum of their magnitudes, or their Euclidean length; a
// zero divisor leaves the row.
Status canonical_normalizer(Rewriter& rewriter) {
  PFRT_TRY(ml_expect_number(rewriter));
  PFRT_ASSIGN(const std::string norm, ml_word(rewriter, "norm", {"MAX", "L1", "L2"}));
  if (!rewriter.has_shape(0) || rewriter.rank(0) < 1 || rewriter.rank(0) > 2)
    return rewriter.unsupported("input 0 must be known to be [C] or [N, C]");
  const pfrt_dtype dtype = ml_compute_type(rewriter.input(0).dtype);
  PFRT_ASSIGN(const ValueId x,
              ml_cast(rewriter, rewriter.node().inputs[0], rewriter.input(0).dtype, dtype));
  PFRT_ASSIGN(const ValueId axes,
              rewriter.int64s("axes", {static_cast<int64_t>(rewriter.rank(0)) - 1}));
  PFRT_ASSIGN(const ValueId size, rewriter.before(norm == "MAX"  ? "ReduceMax"
                                                  : norm == "L1" ? "ReduceL1"
                                                                 : "ReduceL2",
                                                  {x, axes},
                                                  {Attribute::of_int("keepdims", 1),
                                                   Attribute::of_int("noop_with_empty_axes", 0)}));
  PFRT_ASSIGN(const ValueId zero, ml_constant(rewriter, dtype, {}, {0}));
  PFRT_ASSIGN(const ValueId one, ml_constant(rewriter, dtype, {}, {1}));
  PFRT_ASSIGN(const ValueId none, rewriter.before("Equal", {size, zero}));
  PFRT_ASSIGN(const ValueId divisor, rewriter.before("Where", {none, one, size}));
  PFRT_ASSIGN(const ValueId scaled, rewriter.before("Div", {x, divisor}));
  PFRT_ASSIGN(const ValueId y, ml_cast(rewriter, scaled, dtype, kFloat));
  rewriter.replace_with({y});
  return {};
}

// Computes (x - offset) * scale.
Status canonical_scaler(Rewriter& rewriter) {
  PFRT_TRY(ml_expect_number(rewriter));
  PFRT_ASSIGN(const std::vector<float> offset, ml_floats(rewriter, "offset"));
  PFRT_ASSIGN(const std::vector<float> scale, ml_floats(rewriter, "scale"));
  if (!offset.empty() && !scale.empty() && offset.size() != scale.size())
    return rewriter.fail("attributes 'offset' and 'scale' have ", offset.size(), " and ",
                         scale.size(), " elements; they must be as long");
  const pfrt_dtype from = rewriter.input(0).dtype, dtype = ml_compute_type(from);
  PFRT_ASSIGN(ValueId y, ml_cast(rewriter, rewriter.node().inputs[0], from, dtype));
  for (const auto& [name, op, values] :
       {std::tuple("offset", "Sub", &offset), std::tuple("scale", "Mul", &scale)}) {
    if (values->empty()) continue;
    PFRT_TRY(expect_features(rewriter, name, values->size()));
    PFRT_ASSIGN(const ValueId constant,
                ml_constant(rewriter, dtype, {static_cast<int64_t>(values->size())},
                            {values->begin(), values->end()}));
    PFRT_ASSIGN(y, rewriter.before(op, {y, constant}));
  }
  PFRT_ASSIGN(y, ml_cast(rewriter, y, dtype, kFloat));
  if (y == rewriter.node().inputs[0]) {
    PFRT_ASSIGN(y, rewriter.before("Identity", {y}));
  }
  rewriter.replace_with({y});
  return {};
}

constexpr OperatorDef kMlOperators[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {kMl, "ArrayFeatureExtractor", 1, 0, 2, 2, 1, 1, kOpHost, 0,
     typed<canonical_array_feature_extractor>, infer_array_feature_extractor, nullptr},
    {kMl, "Binarizer", 1, 0, 1, 1, 1, 1, kOpPlain, 0, typed<canonical_binarizer>, nullptr, nullptr},
    {kMl, "CastMap", 1, 0, 1, 1, 1, 1, kOpHost, 0, typed<canonical_cast_map>, infer_cast_map,
     nullptr},
    {kMl, "CategoryMapper", 1, 0, 1, 1, 1, 1, kOpHostStrings, 0, typed<canonical_category_mapper>,
     nullptr, nullptr},
    {kMl, "DictVectorizer", 1, 0, 1, 1, 1, 1, kOpHost, 0, typed<canonical_dict_vectorizer>,
     infer_dict_vectorizer, nullptr},
    {kMl, "FeatureVectorizer", 1, 0, 1, -1, 1, 1, kOpPlain, 0, typed<canonical_feature_vectorizer>,
     nullptr, nullptr},
    {kMl, "Imputer", 1, 0, 1, 1, 1, 1, kOpPlain, 0, typed<canonical_imputer>, nullptr, nullptr},
    {kMl, "LabelEncoder", 1, 1, 1, 1, 1, 1, kOpHostStrings, 0, typed<canonical_label_encoder_1>,
     infer_label_encoder, nullptr},
    {kMl, "LabelEncoder", 2, 0, 1, 1, 1, 1, kOpHostStrings, 0, typed<canonical_label_encoder>,
     infer_label_encoder, nullptr},
    {kMl, "LinearClassifier", 1, 0, 1, 1, 1, 2, kOpPlain, 0, typed<canonical_linear_classifier>,
     nullptr, nullptr},
    {kMl, "LinearRegressor", 1, 0, 1, 1, 1, 1, kOpPlain, 0, typed<canonical_linear_regressor>,
     nullptr, nullptr},
    {kMl, "Normalizer", 1, 0, 1, 1, 1, 1, kOpPlain, 0, typed<canonical_normalizer>, nullptr,
     nullptr},
    {kMl, "OneHotEncoder", 1, 0, 1, 1, 1, 1, kOpHostStrings, 0, typed<canonical_one_hot_encoder>,
     infer_one_hot_encoder, nullptr},
    {kMl, "SVMClassifier", 1, 0, 1, 1, 1, 2, kOpPlain, 0, typed<canonical_svm_classifier>,
     infer_classifier, nullptr},
    {kMl, "SVMRegressor", 1, 0, 1, 1, 1, 1, kOpPlain, 0, typed<canonical_svm_regressor>,
     infer_regressor, nullptr},
    {kMl, "Scaler", 1, 0, 1, 1, 1, 1, kOpPlain, 0, typed<canonical_scaler>, nullptr, nullptr},
    {kMl, "TreeEnsemble", 5, 0, 1, 1, 1, 1, kOpPlain, 0, typed<canonical_tree_ensemble>,
     infer_regressor, nullptr},
    {kMl, "TreeEnsembleClassifier", 1, 0, 1, 1, 1, 2, kOpPlain, 0, typed<canonical_tree_classifier>,
     infer_classifier, nullptr},
    {kMl, "TreeEnsembleRegressor", 1, 0, 1, 1, 1, 1, kOpPlain, 0, typed<canonical_tree_regressor>,
     infer_regressor, nullptr},
    {kMl, "ZipMap", 1, 0, 1, 1, 1, 1, kOpHost, 0, typed<canonical_zip_map>, infer_zip_map, nullptr},
};

}  // namespace

std::span<const OperatorDef> ml_operators() { return kMlOperators; }

}  // namespace pfrt
