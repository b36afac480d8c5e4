// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the ai.onnx.ml family: typed attributes, constants, scores, and the functions
// behind the rows of ml.cc. Most operators of that domain are small formulas and become operators
// of ai.onnx; models (trees, support vectors), encoders and maps stay. The functions change only
// the Rewriter or Inference they are given; thread-safe on different graphs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

inline constexpr std::string_view kMl = "ai.onnx.ml";
inline constexpr pfrt_dtype kFloat = PFRT_DTYPE_FLOAT32;

// ------------------------------------------------------------------ attributes
// Lists of one type, empty when the attribute is absent; another type is a fault.
Result<std::vector<float>> ml_floats(Rewriter& rewriter, std::string_view name);
Result<std::vector<int64_t>> ml_ints(Rewriter& rewriter, std::string_view name);
Result<std::vector<std::string>> ml_strings(Rewriter& rewriter, std::string_view name);
// An attribute's text, which must be one of |words|; the first word when it is absent.
Result<std::string> ml_word(Rewriter& rewriter, std::string_view name,
                            const std::vector<std::string_view>& words);
// Returns NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT.
Result<std::string> ml_post_transform(Rewriter& rewriter);

// The labels of a classifier: one of the two lists, or neither.
struct MlLabels {
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  size_t size() const { return ints.empty() ? strings.size() : ints.size(); }
};
Result<MlLabels> ml_labels(Rewriter& rewriter, std::string_view ints, std::string_view strings);

// ------------------------------------------------------------------ formulas
// Makes a constant of numbers as |dtype|, a float or integer type that holds them.
Result<ValueId> ml_constant(Rewriter& rewriter, pfrt_dtype dtype, std::vector<int64_t> dims,
                            const std::vector<double>& values);
Result<ValueId> ml_cast(Rewriter& rewriter, ValueId value, pfrt_dtype from, pfrt_dtype to);
// |value| as [N, C] where it may be [C].
Result<ValueId> ml_matrix(Rewriter& rewriter, ValueId value);
// Scores [N, E] after |post|. A single score per row is transformed like several.
Result<ValueId> ml_transformed(Rewriter& rewriter, ValueId scores, pfrt_dtype dtype,
                               std::string_view post);
// The label in |labels| at each of |indices|.
Result<ValueId> ml_label_of(Rewriter& rewriter, ValueId indices, const MlLabels& labels);

// The type in which the formula of a numeric input is computed: double for double, else float.
pfrt_dtype ml_compute_type(pfrt_dtype dtype);
// Fails unless the type of input 0 is one of |dtypes|, or unknown.
Status ml_expect(Rewriter& rewriter, const std::vector<pfrt_dtype>& dtypes);
inline Status ml_expect_number(Rewriter& rewriter) {
  return ml_expect(rewriter,
                   {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_INT64, PFRT_DTYPE_INT32});
}

// ------------------------------------------------------------------ rows
// ml_linear.cc
Status canonical_linear_regressor(Rewriter& rewriter);
Status canonical_linear_classifier(Rewriter& rewriter);
// ml_labels.cc
Status canonical_label_encoder_1(Rewriter& rewriter);
Status canonical_label_encoder(Rewriter& rewriter);
Status canonical_category_mapper(Rewriter& rewriter);
Status infer_label_encoder(Inference& in);
Status canonical_one_hot_encoder(Rewriter& rewriter);
Status infer_one_hot_encoder(Inference& in);
Status canonical_zip_map(Rewriter& rewriter);
Status infer_zip_map(Inference& in);
Status canonical_cast_map(Rewriter& rewriter);
Status infer_cast_map(Inference& in);
Status canonical_dict_vectorizer(Rewriter& rewriter);
Status infer_dict_vectorizer(Inference& in);
// ml_models.cc
Status canonical_tree_classifier(Rewriter& rewriter);
Status canonical_tree_regressor(Rewriter& rewriter);
Status canonical_tree_ensemble(Rewriter& rewriter);
Status canonical_svm_classifier(Rewriter& rewriter);
Status canonical_svm_regressor(Rewriter& rewriter);
Status infer_classifier(Inference& in);
Status infer_regressor(Inference& in);

}  // namespace pfrt
