// SPDX-License-Identifier: Apache-2.0
//
// Linear models: a product, intercepts, labels and scores. The first label wins among equal scores.
#include "core/op/defs/ml/ml.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

// Multiplies X [N, C] by rows of coefficients and adds intercepts: [N, rows] in the compute type.
Result<ValueId> linear_scores(Rewriter& rewriter, int64_t rows, pfrt_dtype dtype) {
  PFRT_TRY(ml_expect(rewriter,
                     {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_INT64, PFRT_DTYPE_INT32}));
  PFRT_ASSIGN(const std::vector<float> coefficients, ml_floats(rewriter, "coefficients"));
  PFRT_ASSIGN(const std::vector<float> intercepts, ml_floats(rewriter, "intercepts"));
  const auto count = static_cast<int64_t>(coefficients.size());
  if (count == 0) return rewriter.fail("attribute 'coefficients' is empty");
  if (rows < 1 || count % rows != 0)
    return rewriter.fail("attribute 'coefficients' has ", count, " elements for ", rows,
                         " rows; each row needs one a feature");
  if (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != rows)
    return rewriter.fail("attribute 'intercepts' has ", intercepts.size(), " elements, expected ",
                         rows);
  const int64_t columns = count / rows;
  if (rewriter.has_shape(0) && !rewriter.input(0).shape.empty() &&
      rewriter.input(0).shape.back().known() && rewriter.input(0).shape.back().value() != columns)
    return rewriter.fail("attribute 'coefficients' has ", columns, " elements a row, input 0 has ",
                         rewriter.input(0).shape.back().value(), " features");
  PFRT_ASSIGN(const ValueId cast,
              ml_cast(rewriter, rewriter.node().inputs[0], rewriter.input(0).dtype, dtype));
  PFRT_ASSIGN(const ValueId x, ml_matrix(rewriter, cast));
  PFRT_ASSIGN(const ValueId w, ml_constant(rewriter, dtype, {rows, columns},
                                           {coefficients.begin(), coefficients.end()}));
  std::vector<ValueId> inputs{x, w};
  if (!intercepts.empty()) {
    PFRT_ASSIGN(const ValueId b,
                ml_constant(rewriter, dtype, {rows}, {intercepts.begin(), intercepts.end()}));
    inputs.push_back(b);
  }
  return rewriter.before("Gemm", std::move(inputs),
                         {Attribute::of_float("alpha", 1), Attribute::of_float("beta", 1),
                          Attribute::of_int("transA", 0), Attribute::of_int("transB", 1)});
}

// The scores of both classes from that of the positive class, as in ONNX Runtime: logistic scores
// become -s and s, others 1 - s and s; only the logistic transform applies.
Result<ValueId> two_classes(Rewriter& rewriter, ValueId scores, pfrt_dtype dtype,
                            std::string_view post) {
  ValueId negative = kNoId;
  if (post == "LOGISTIC") {
    PFRT_ASSIGN(negative, rewriter.before("Neg", {scores}));
  } else {
    PFRT_ASSIGN(const ValueId one, ml_constant(rewriter, dtype, {}, {1}));
    PFRT_ASSIGN(negative, rewriter.before("Sub", {one, scores}));
  }
  PFRT_ASSIGN(const ValueId both,
              rewriter.before("Concat", {negative, scores}, {Attribute::of_int("axis", 1)}));
  const bool applies = post == "LOGISTIC" || post == "PROBIT";
  return applies ? ml_transformed(rewriter, both, dtype, post) : Result<ValueId>(both);
}

Result<ValueId> top_class(Rewriter& rewriter, ValueId scores, int64_t rows, pfrt_dtype dtype) {
  if (rows > 1)
    return rewriter.before("ArgMax", {scores},
                           {Attribute::of_int("axis", 1), Attribute::of_int("keepdims", 0),
                            Attribute::of_int("select_last_index", 0)});
  PFRT_ASSIGN(const ValueId list, rewriter.int64s("dims", {-1}));
  PFRT_ASSIGN(const ValueId flat,
              rewriter.before("Reshape", {scores, list}, {Attribute::of_int("allowzero", 0)}));
  PFRT_ASSIGN(const ValueId zero, ml_constant(rewriter, dtype, {}, {0}));
  PFRT_ASSIGN(const ValueId positive, rewriter.before("Greater", {flat, zero}));
  return ml_cast(rewriter, positive, PFRT_DTYPE_BOOL, PFRT_DTYPE_INT64);
}

}  // namespace

Status canonical_linear_regressor(Rewriter& rewriter) {
  PFRT_ASSIGN(const std::string post, ml_post_transform(rewriter));
  const pfrt_dtype dtype = ml_compute_type(rewriter.input(0).dtype);
  PFRT_ASSIGN(const ValueId scores,
              linear_scores(rewriter, rewriter.node().attr_int("targets", 1), dtype));
  PFRT_ASSIGN(const ValueId transformed, ml_transformed(rewriter, scores, dtype, post));
  PFRT_ASSIGN(const ValueId y, ml_cast(rewriter, transformed, dtype, kFloat));
  rewriter.replace_with({y});
  return {};
}

Status canonical_linear_classifier(Rewriter& rewriter) {
  PFRT_ASSIGN(const std::string post, ml_post_transform(rewriter));
  PFRT_ASSIGN(MlLabels labels, ml_labels(rewriter, "classlabels_ints", "classlabels_strings"));
  PFRT_ASSIGN(const std::vector<float> intercepts, ml_floats(rewriter, "intercepts"));
  const pfrt_dtype dtype = ml_compute_type(rewriter.input(0).dtype);
  // Without intercepts there is a row for each label.
  const auto rows = static_cast<int64_t>(intercepts.empty() ? labels.size() : intercepts.size());
  const bool binary = rows == 1 && labels.size() == 2;
  if (rows == 0)
    return rewriter.fail(
        "has neither 'intercepts' nor labels ('classlabels_ints' or "
        "'classlabels_strings'), so the number of classes is not known");
  if (rows == 1 && !binary) {
    // These are ONNX Runtime's names of the two sides of a single score.
    if (labels.strings.empty()) labels.ints = {0, 1};
    if (!labels.strings.empty()) labels.strings = {"0", "1"};
  } else if (!binary && static_cast<int64_t>(labels.size()) != rows) {
    return rewriter.fail("has ", labels.size(), " labels for ", rows, " rows of 'coefficients'");
  }
  PFRT_ASSIGN(const ValueId scores, linear_scores(rewriter, rows, dtype));
  PFRT_ASSIGN(const ValueId top, top_class(rewriter, scores, rows, dtype));
  PFRT_ASSIGN(const ValueId y, ml_label_of(rewriter, top, labels));
  PFRT_ASSIGN(const ValueId transformed, binary ? two_classes(rewriter, scores, dtype, post)
                                                : ml_transformed(rewriter, scores, dtype, post));
  PFRT_ASSIGN(const ValueId z, ml_cast(rewriter, transformed, dtype, kFloat));
  rewriter.replace_with({y, z});
  return {};
}

}  // namespace pfrt
