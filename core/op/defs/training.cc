// SPDX-License-Identifier: Apache-2.0
//
// Losses, and the steps of optimizers (ai.onnx.preview.training). These are forward formulas like
// others; Gradient, which differentiates a graph, is recognised and refused.
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr AttrDefault kTrainingDefaults[] = {
    {"Adagrad", "decay_factor", PFRT_ATTR_FLOAT, 0},
    {"Adagrad", "epsilon", PFRT_ATTR_FLOAT, 0},
    {"Adagrad", "norm_coefficient", PFRT_ATTR_FLOAT, 0},
    {"Adam", "alpha", PFRT_ATTR_FLOAT, 0.9},
    {"Adam", "beta", PFRT_ATTR_FLOAT, 0.999},
    {"Adam", "epsilon", PFRT_ATTR_FLOAT, 0},
    {"Adam", "norm_coefficient", PFRT_ATTR_FLOAT, 0},
    {"Adam", "norm_coefficient_post", PFRT_ATTR_FLOAT, 0},
};

// ------------------------------------------------------------------ losses

Status canonical_loss(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "reduction", "mean"));
  const std::string_view reduction = rewriter.node().attr_string("reduction", "");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return rewriter.fail("attribute 'reduction' is '", reduction, "', expected mean, sum or none");
  const Attribute* ignored = rewriter.node().attr("ignore_index");
  if (ignored && ignored->type != PFRT_ATTR_INT)
    return rewriter.fail("attribute 'ignore_index' has type ", ignored->type,
                         ", expected an integer");
  return {};
}

// Scores are [N, C, d...], labels [N, d...], weights [C].
Status infer_loss(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  const Type& scores = inference.input(0);
  Shape labels;
  if (scores.has_shape) {
    labels = scores.shape;
    labels.erase(labels.begin() + 1);
    PFRT_TRY(expect_shape(inference, 1, labels));
    PFRT_TRY(expect_shape(inference, 2, {scores.shape[1]}));
  } else if (inference.has_shape(1)) {
    labels = inference.shape(1);
  }
  inference.set_output(1, scores);
  if (inference.node().attr_string("reduction", "mean") != "none") {
    inference.set_output(0, scores.dtype, {});
  } else if (scores.has_shape || inference.has_shape(1)) {
    inference.set_output(0, scores.dtype, std::move(labels));
  } else {
    inference.set_output_unknown_shape(0, scores.dtype);
  }
  return {};
}

double loss_flops(const Inference& inference) { return 4 * flops_of_input(inference); }

// ------------------------------------------------------------------ optimizers

// Number of lists of tensors after the rate and the step count, all of one length. The output has
// all of them except the gradients.
size_t roles(const Node& node) { return node.op == "Adam" ? 4 : 3; }

Status canonical_optimizer(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kTrainingDefaults));
  Node& node = rewriter.node();
  if (node.op == "Momentum") {
    for (std::string_view name : {"alpha", "beta", "norm_coefficient"}) {
      const Attribute* given = node.attr(name);
      if (!given || given->type != PFRT_ATTR_FLOAT)
        return rewriter.fail("attribute '", name, "' is missing or not a float");
    }
    const std::string_view mode = node.attr_string("mode", "");
    if (mode != "standard" && mode != "nesterov")
      return rewriter.fail("attribute 'mode' is '", mode, "', expected standard or nesterov");
  }
  const size_t lists = roles(node), tensors = node.inputs.size() - 2, each = tensors / lists;
  if (tensors % lists != 0 || each == 0)
    return rewriter.fail(tensors, " tensors follow R and T, must be ", lists,
                         " for each tensor that is optimized");
  if (std::count(node.inputs.begin(), node.inputs.end(), kNoId) != 0)
    return rewriter.fail("an input is left out");
  if (node.outputs.size() != each * (lists - 1))
    return rewriter.fail("there are ", node.outputs.size(), " outputs, must be ",
                         each * (lists - 1));
  return {};
}

Status infer_optimizer(Inference& inference) {
  const size_t lists = roles(inference.node()), each = (inference.input_count() - 2) / lists;
  for (size_t i = 0; i < each; ++i) {
    const size_t x = 2 + i;
    for (size_t role = 1; role < lists; ++role)
      if (inference.has_shape(x))
        PFRT_TRY(expect_shape(inference, x + role * each, inference.shape(x)));
    inference.set_output(i, inference.input(x));
    // Momentum and squares keep their types.
    for (size_t role = 2; role < lists; ++role)
      inference.set_output(i + (role - 1) * each, inference.input(x + role * each));
  }
  return {};
}

Status refuse_gradient(Rewriter& rewriter) {
  return rewriter.unsupported(
      "differentiating a graph is part of training, which is not supported; "
      "export the model for inference");
}

constexpr std::string_view kTraining = "ai.onnx.preview.training";

constexpr OperatorDef kTrainingOperators[] = {
    {"", "NegativeLogLikelihoodLoss", 12, 0, 2, 3, 1, 1, kOpPlain, 0, canonical_loss, infer_loss,
     loss_flops},
    {"", "SoftmaxCrossEntropyLoss", 12, 0, 2, 3, 1, 2, kOpPlain, 0, canonical_loss, infer_loss,
     loss_flops},
    {kTraining, "Adagrad", 1, 0, 3, -1, 1, -1, kOpPlain, 0, canonical_optimizer, infer_optimizer,
     nullptr},
    {kTraining, "Adam", 1, 0, 3, -1, 1, -1, kOpPlain, 0, canonical_optimizer, infer_optimizer,
     nullptr},
    {kTraining, "Momentum", 1, 0, 3, -1, 1, -1, kOpPlain, 0, canonical_optimizer, infer_optimizer,
     nullptr},
    {kTraining, "Gradient", 1, 0, 1, -1, 1, -1, kOpRefused, 0, refuse_gradient, nullptr, nullptr},
};

}  // namespace

std::span<const OperatorDef> training_operators() { return kTrainingOperators; }

}  // namespace pfrt
