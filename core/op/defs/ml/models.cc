// SPDX-License-Identifier: Apache-2.0
//
// Trees and support vectors: sizes and labels. The provider that packs a model reads and checks its
// nodes or vectors. Labels that are strings become a LabelEncoder behind the model, which then
// gives their positions.
#include <algorithm>

#include "core/op/defs/common/helpers.h"
#include "core/op/defs/ml/ml.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

Status expect_rows(Rewriter& rewriter) {
  if (!rewriter.has_shape(0)) return {};
  const size_t rank = rewriter.rank(0);
  if (rank == 1 || rank == 2) return {};
  return rewriter.fail("input 0 has rank ", rank, ", expected [N, C] or [C]");
}

// Makes labels numbers: strings become their positions, with the encoder behind the model.
Status settle_labels(Rewriter& rewriter, const MlLabels& labels, std::string_view ints,
                     std::string_view strings) {
  if (labels.strings.empty()) {
    rewriter.node().drop_attr(strings);
    return {};
  }
  Node model;
  model.domain = rewriter.node().domain;
  model.op = rewriter.node().op;
  model.inputs = rewriter.node().inputs;
  model.attrs = rewriter.node().attrs;
  model.drop_attr(strings);
  std::vector<int64_t> positions(labels.size());
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
  model.set_attr(Attribute::of_ints(std::string(ints), std::move(positions)));
  MlLabels names = labels;
  // A single label is the positive side of one score; ONNX Runtime names the sides 0 and 1.
  if (names.strings.size() == 1) names.strings = {"0", "1"};
  PFRT_ASSIGN(std::vector<ValueId> out, rewriter.put_before(std::move(model), 2));
  PFRT_ASSIGN(out[0], ml_label_of(rewriter, out[0], names));
  rewriter.replace_with(out);
  return {};
}

// Checks an integer attribute, which must be in [0, count).
Status expect_below(Rewriter& rewriter, std::string_view name, int64_t fallback, int64_t count) {
  const int64_t value = rewriter.node().attr_int(name, fallback);
  if (value < 0 || value >= count)
    return rewriter.fail("attribute '", name, "' is ", value, ", expected 0 to ", count - 1);
  rewriter.node().set_attr(Attribute::of_int(std::string(name), value));
  return {};
}

Status expect_targets(Rewriter& rewriter) {
  const int64_t targets = rewriter.node().attr_int("n_targets", 0);
  if (targets < 1 || targets > INT32_MAX)
    return rewriter.fail("attribute 'n_targets' is ", targets, ", expected 1 to ", INT32_MAX);
  return {};
}

// Checks a word attribute, whose default is the first of |words|, and writes it on the node.
Status settle_word(Rewriter& rewriter, const char* name,
                   const std::vector<std::string_view>& words) {
  PFRT_ASSIGN(std::string word, ml_word(rewriter, name, words));
  rewriter.node().set_attr(Attribute::of_string(name, std::move(word)));
  return {};
}

Status settle_post_transform(Rewriter& rewriter) {
  PFRT_ASSIGN(std::string post, ml_post_transform(rewriter));
  rewriter.node().set_attr(Attribute::of_string("post_transform", std::move(post)));
  return {};
}

// The number of rows of the input, [features] or [rows, features].
Result<Dim> batch(const Inference& in) {
  if (!in.has_shape(0)) return Dim();
  if (in.rank(0) < 1 || in.rank(0) > 2)
    return in.fail("the input has rank ", in.rank(0), ", needs 1 (features) or 2 (rows, features)");
  return in.rank(0) == 1 ? Dim(1) : in.shape(0)[0];
}

size_t length(const Node& node, std::string_view name) {
  const Attribute* attr = node.attr(name);
  if (!attr) return 0;
  return std::max(attr->ints.size(), attr->floats.size());
}

// Columns of the scores of support vectors: probabilities or linear scores for each class, else one
// for each pair of classes; two classes have it with both signs.
int64_t svm_columns(const Node& node) {
  const auto classes = static_cast<int64_t>(length(node, "classlabels_ints"));
  const bool linear = length(node, "vectors_per_class") == 0;
  if (linear || length(node, "prob_a") > 0 || classes <= 2) return classes;
  return classes * (classes - 1) / 2;
}

}  // namespace

Status canonical_tree_classifier(Rewriter& rewriter) {
  PFRT_TRY(ml_expect_number(rewriter));
  PFRT_TRY(expect_rows(rewriter));
  PFRT_TRY(settle_post_transform(rewriter));
  PFRT_ASSIGN(const MlLabels labels,
              ml_labels(rewriter, "classlabels_int64s", "classlabels_strings"));
  if (labels.size() == 0)
    return rewriter.fail("needs labels in attribute 'classlabels_int64s' or 'classlabels_strings'");
  return settle_labels(rewriter, labels, "classlabels_int64s", "classlabels_strings");
}

Status canonical_tree_regressor(Rewriter& rewriter) {
  PFRT_TRY(ml_expect_number(rewriter));
  PFRT_TRY(expect_rows(rewriter));
  PFRT_TRY(expect_targets(rewriter));
  PFRT_TRY(settle_post_transform(rewriter));
  PFRT_TRY(settle_word(rewriter, "aggregate_function", {"SUM", "AVERAGE", "MIN", "MAX"}));
  return {};
}

Status canonical_tree_ensemble(Rewriter& rewriter) {
  PFRT_TRY(ml_expect(rewriter, {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_FLOAT16}));
  PFRT_TRY(expect_rows(rewriter));
  PFRT_TRY(expect_targets(rewriter));
  PFRT_TRY(expect_below(rewriter, "post_transform", 0, 5));
  return expect_below(rewriter, "aggregate_function", 1, 4);
}

Status canonical_svm_classifier(Rewriter& rewriter) {
  PFRT_TRY(ml_expect_number(rewriter));
  PFRT_TRY(expect_rows(rewriter));
  PFRT_TRY(settle_post_transform(rewriter));
  PFRT_TRY(settle_word(rewriter, "kernel_type", {"LINEAR", "POLY", "RBF", "SIGMOID"}));
  PFRT_ASSIGN(const MlLabels labels,
              ml_labels(rewriter, "classlabels_ints", "classlabels_strings"));
  if (labels.size() == 0 || labels.size() > UINT16_MAX)
    return rewriter.fail("has ", labels.size(), " labels in 'classlabels_ints' and ",
                         "'classlabels_strings', expected 1 to ", UINT16_MAX);
  return settle_labels(rewriter, labels, "classlabels_ints", "classlabels_strings");
}

Status canonical_svm_regressor(Rewriter& rewriter) {
  PFRT_TRY(ml_expect_number(rewriter));
  PFRT_TRY(expect_rows(rewriter));
  PFRT_TRY(settle_post_transform(rewriter));
  PFRT_TRY(settle_word(rewriter, "kernel_type", {"LINEAR", "POLY", "RBF", "SIGMOID"}));
  return {};
}

Status infer_classifier(Inference& in) {
  const Node& node = in.node();
  const Dim columns = node.op == "SVMClassifier"
                          ? svm_columns(node)
                          : static_cast<int64_t>(length(node, "classlabels_int64s"));
  PFRT_ASSIGN(const Dim rows, batch(in));
  in.set_output(0, PFRT_DTYPE_INT64, {rows});
  in.set_output(1, PFRT_DTYPE_FLOAT32, {rows, columns});
  return {};
}

Status infer_regressor(Inference& in) {
  const Node& node = in.node();
  const bool same = node.op == "TreeEnsemble";
  PFRT_ASSIGN(const Dim rows, batch(in));
  in.set_output(0, same ? in.input(0).dtype : pfrt_dtype{PFRT_DTYPE_FLOAT32},
                {rows, Dim(node.attr_int("n_targets", 1))});
  return {};
}

}  // namespace pfrt
