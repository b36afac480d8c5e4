// SPDX-License-Identifier: Apache-2.0
//
// Normalisations.
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr AttrDefault kNormDefaults[] = {
    {"BatchNormalization", "epsilon", PFRT_ATTR_FLOAT, 1e-5},
    {"InstanceNormalization", "epsilon", PFRT_ATTR_FLOAT, 1e-5},
    {"LayerNormalization", "epsilon", PFRT_ATTR_FLOAT, 1e-5},
    {"LayerNormalization", "stash_type", PFRT_ATTR_INT, PFRT_DTYPE_FLOAT32},
    {"RMSNormalization", "epsilon", PFRT_ATTR_FLOAT, 1e-5},
    {"RMSNormalization", "stash_type", PFRT_ATTR_INT, PFRT_DTYPE_FLOAT32},
    {"GroupNormalization", "epsilon", PFRT_ATTR_FLOAT, 1e-5},
    {"GroupNormalization", "stash_type", PFRT_ATTR_INT, PFRT_DTYPE_FLOAT32},
    {"LpNormalization", "p", PFRT_ATTR_INT, 2},
    {"LRN", "alpha", PFRT_ATTR_FLOAT, 1e-4},
    {"LRN", "beta", PFRT_ATTR_FLOAT, 0.75},
    {"LRN", "bias", PFRT_ATTR_FLOAT, 1},
};

// Opset 1 to 8 had a form with statistics over all elements of an image: over [N, C * spatial...].
Status flatten_images(Rewriter& rewriter) {
  PFRT_ASSIGN(const ValueId list, rewriter.int64s("list", {-1}));
  PFRT_ASSIGN(const ValueId shape, rewriter.before("Shape", {rewriter.node().inputs[0]},
                                                   {Attribute::of_int("start", 0)}));
  PFRT_ASSIGN(const ValueId flat, rewriter.before("Flatten", {rewriter.node().inputs[0]},
                                                  {Attribute::of_int("axis", 1)}));
  rewriter.set_input(0, flat);
  for (size_t i = 1; i < 5; ++i) {
    PFRT_ASSIGN(const ValueId column, rewriter.before("Reshape", {rewriter.node().inputs[i], list},
                                                      {Attribute::of_int("allowzero", 0)}));
    rewriter.set_input(i, column);
  }
  return rewriter.after("Reshape", {shape}, {Attribute::of_int("allowzero", 0)});
}

// The statistics are those of the batch where training_mode says so or, before opset 14, where an
// output that only training has is used. Then the outputs are Y, the running mean and variance, and
// (until opset 13) those of the batch.
Status canonical_batch_normalization(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kNormDefaults));
  Graph& graph = rewriter.graph();
  if (rewriter.node().inputs.size() != 5 ||
      std::count(rewriter.node().inputs.begin(), rewriter.node().inputs.end(), kNoId))
    return rewriter.fail("needs the five inputs X, scale, B, mean and var");
  bool trains = rewriter.opset() >= 14 && rewriter.node().attr_int("training_mode", 0) != 0;
  for (size_t i = 1; i < rewriter.node().outputs.size(); ++i) {
    const ValueId out = rewriter.node().outputs[i];
    if (out == kNoId || trains) continue;
    if (!rewriter.is_used(out)) {
      graph.at(out).producer = kNoId;
      rewriter.node().outputs[i] = kNoId;
    } else if (rewriter.opset() >= 14) {
      return rewriter.fail("output ", i, " ('", graph.at(out).name,
                           "') exists in training only and is used; set training_mode");
    } else {
      trains = true;
    }
  }
  const bool flattens = rewriter.opset() < 9 && rewriter.node().attr_int("spatial", 1) == 0;
  if (flattens && rewriter.node().outputs.size() > 1 && trains)
    return rewriter.unsupported(
        "spatial = 0 (statistics of every element) is not supported in training");
  if (flattens) PFRT_TRY(flatten_images(rewriter));
  Node& node = rewriter.node();
  for (std::string_view name : {"training_mode", "spatial", "is_test"}) node.drop_attr(name);
  if (trains) {
    node.set_attr(Attribute::of_int("training_mode", 1));
    return fill_float(rewriter, "momentum", 0.9f);
  }
  node.drop_attr("momentum");
  node.outputs.resize(std::min<size_t>(node.outputs.size(), 1));
  return {};
}

// Inputs [1, last] have one value for each channel.
Status check_channel_inputs(const Inference& inference, size_t last) {
  const Dim channels = inference.has_shape(0) ? inference.shape(0)[1] : Dim();
  for (size_t i = 1; i <= last; ++i) PFRT_TRY(expect_shape(inference, i, {channels}));
  return {};
}

Status infer_batch_normalization(Inference& inference) {
  // A tensor of rank 1 is [N], with one channel.
  PFRT_TRY(expect_rank_at_least(inference, 0, 1));
  if (inference.has_shape(0) && inference.rank(0) > 1) PFRT_TRY(check_channel_inputs(inference, 4));
  for (size_t i = 1; i < 5; ++i) inference.set_output(i, inference.input(i % 2 == 1 ? 3 : 4));
  return infer_same(inference);
}

Status canonical_with_epsilon(Rewriter& rewriter) { return fill_defaults(rewriter, kNormDefaults); }

Status infer_instance_normalization(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  PFRT_TRY(check_channel_inputs(inference, 2));
  return infer_same(inference);
}

// ONNX Runtime's LayerNormalization of older opsets, and RMSNormalization of any, allow another
// type for scale, bias and Y than for X.
Status canonical_layer_normalization(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kNormDefaults));
  PFRT_TRY(canonical_axis(rewriter, "axis", -1));
  constexpr int64_t kStandard = 17;
  const bool one_type = rewriter.node().op == "LayerNormalization" && rewriter.opset() >= kStandard;
  return one_type ? Status() : join_norm_types(rewriter);
}

// Scale and bias are broadcast to X, along any of its dimensions.
Status check_row_inputs(const Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, 3));
  for (const size_t i : {1u, 2u}) {
    if (!inference.has_shape(0) || !inference.has_shape(i)) continue;
    const Shape &x = inference.shape(0), &given = inference.shape(i);
    size_t from_right = 0;
    for (auto dim = given.rbegin(); dim != given.rend(); ++dim, ++from_right) {
      const Dim to = from_right < x.size() ? x[x.size() - 1 - from_right] : Dim(1);
      if (!dim->known() || dim->is(1) || !to.known() || *dim == to) continue;
      return inference.fail("input ", i, " of shape ", inference.symbols().text(given),
                            " does not broadcast to X of shape ", inference.symbols().text(x));
    }
  }
  return {};
}

Status infer_rms_normalization(Inference& inference) {
  PFRT_TRY(check_row_inputs(inference));
  return infer_same(inference);
}

Status infer_layer_normalization(Inference& inference) {
  PFRT_TRY(check_row_inputs(inference));
  PFRT_TRY(infer_same(inference));
  const pfrt_dtype stash =
      static_cast<pfrt_dtype>(inference.node().attr_int("stash_type", PFRT_DTYPE_FLOAT32));
  if (!inference.has_shape(0)) {
    inference.set_output_unknown_shape(1, stash);
    inference.set_output_unknown_shape(2, stash);
    return {};
  }
  PFRT_ASSIGN(const int64_t axis,
              inference.axis(inference.node().attr_int("axis", -1), inference.rank(0)));
  Shape reduced = inference.shape(0);
  std::fill(reduced.begin() + axis, reduced.end(), Dim(1));
  inference.set_output(1, stash, reduced);
  inference.set_output(2, stash, std::move(reduced));
  return {};
}

// Before opset 21 scale and bias had one element for each group; from then on one for each channel.
Status scale_groups_to_channels(Rewriter& rewriter, size_t input, int64_t groups,
                                int64_t channels) {
  const int64_t repeats = channels / groups;
  PFRT_ASSIGN(const ValueId column, rewriter.int64s("column", {groups, 1}));
  PFRT_ASSIGN(const ValueId table, rewriter.int64s("table", {groups, repeats}));
  PFRT_ASSIGN(const ValueId list, rewriter.int64s("list", {channels}));
  PFRT_ASSIGN(const ValueId tall,
              rewriter.before("Reshape", {rewriter.node().inputs[input], column},
                              {Attribute::of_int("allowzero", 0)}));
  PFRT_ASSIGN(const ValueId wide, rewriter.before("Expand", {tall, table}));
  PFRT_ASSIGN(const ValueId flat,
              rewriter.before("Reshape", {wide, list}, {Attribute::of_int("allowzero", 0)}));
  rewriter.set_input(input, flat);
  return {};
}

// Does without the channels of a group, where only a run knows their number: each group becomes a
// channel of [N, groups, rest].
Status groups_as_instances(Rewriter& rewriter, int64_t groups) {
  PFRT_ASSIGN(const ValueId dims, rewriter.int64s("groups", {0, groups, -1}));
  PFRT_ASSIGN(const ValueId shape, rewriter.before("Shape", {rewriter.node().inputs[0]},
                                                   {Attribute::of_int("start", 0)}));
  PFRT_ASSIGN(const ValueId grouped, rewriter.before("Reshape", {rewriter.node().inputs[0], dims},
                                                     {Attribute::of_int("allowzero", 0)}));
  Node& node = rewriter.node();
  node.op = "InstanceNormalization";
  node.inputs[0] = grouped;
  for (std::string_view name : {"num_groups", "stash_type"}) node.drop_attr(name);
  return rewriter.after("Reshape", {shape}, {Attribute::of_int("allowzero", 0)});
}

Status canonical_group_normalization(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kNormDefaults));
  const int64_t groups = rewriter.node().attr_int("num_groups", 0);
  if (groups < 1) return rewriter.fail("attribute 'num_groups' is ", groups, ", needs 1 or more");
  if (rewriter.opset() >= 21) return {};
  const Dim channels =
      rewriter.has_shape(0) && rewriter.rank(0) > 1 ? rewriter.input(0).shape[1] : Dim();
  if (!channels.known()) return groups_as_instances(rewriter, groups);
  if (channels.value() % groups != 0)
    return rewriter.fail("the number of channels must be a multiple of ", groups, " groups");
  if (!rewriter.has_input(1) || !rewriter.has_input(2))
    return rewriter.fail("needs the inputs X, scale and bias");
  PFRT_TRY(scale_groups_to_channels(rewriter, 1, groups, channels.value()));
  return scale_groups_to_channels(rewriter, 2, groups, channels.value());
}

Status infer_group_normalization(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  const int64_t groups = inference.node().attr_int("num_groups", 0);
  if (groups < 1) return inference.fail("num_groups is ", groups, ", needs 1 or more");
  if (inference.has_shape(0)) {
    const Dim channels = inference.shape(0)[1];
    if (channels.known() && channels.value() % groups != 0)
      return inference.fail(channels.value(), " channels do not divide into ", groups, " groups");
  }
  PFRT_TRY(check_channel_inputs(inference, 2));
  return infer_same(inference);
}

Status canonical_lp_normalization(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kNormDefaults));
  return canonical_axis(rewriter, "axis", -1);
}

Status canonical_mean_variance(Rewriter& rewriter) {
  Node& node = rewriter.node();
  if (node.attr_int("normalize_variance", 1) == 0)
    return rewriter.unsupported(
        "normalize_variance = 0 is not supported; subtract ReduceMean instead");
  const bool across = node.attr_int("across_channels", 0) != 0;
  node.drop_attr("normalize_variance");
  node.drop_attr("across_channels");
  PFRT_TRY(fill_ints(rewriter, "axes",
                     across ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0, 2, 3}));
  if (!rewriter.has_shape(0)) return {};
  const int64_t rank = static_cast<int64_t>(rewriter.rank(0));
  std::vector<int64_t> axes = *node.attr_ints("axes");
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      return rewriter.fail("axis ", axis, " is not one of an input of rank ", rank);
    if (axis < 0) axis += rank;
  }
  node.set_attr(Attribute::of_ints("axes", std::move(axes)));
  return {};
}

Status canonical_lrn(Rewriter& rewriter) {
  if (rewriter.node().attr_int("size", 0) < 1)
    return rewriter.fail("attribute 'size' must be 1 or more");
  return fill_defaults(rewriter, kNormDefaults);
}

Status infer_lrn(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  return infer_same(inference);
}

// Counts a scale and a shift for each element; statistics take about four passes more.
double scale_flops(const Inference& inference) { return 2 * flops_of_input(inference); }
double norm_flops(const Inference& inference) { return 6 * flops_of_input(inference); }
double lrn_flops(const Inference& inference) {
  return flops_of_input(inference) *
         static_cast<double>(2 * inference.node().attr_int("size", 1) + 4);
}

constexpr OperatorDef kNormOperators[] = {
    {"", "BatchNormalization", 1, 0, 5, 5, 1, 5, kOpPlain, 0, canonical_batch_normalization,
     infer_batch_normalization, scale_flops},
    {"", "InstanceNormalization", 1, 0, 3, 3, 1, 1, kOpPlain, 0, canonical_with_epsilon,
     infer_instance_normalization, norm_flops},
    // The standard has it from opset 17; ONNX Runtime's optimiser writes it at older ones with the
    // same meaning.
    {"", "LayerNormalization", 1, 0, 2, 3, 1, 3, kOpPlain, 0, canonical_layer_normalization,
     infer_layer_normalization, norm_flops},
    {"", "GroupNormalization", 18, 0, 3, 3, 1, 1, kOpPlain, 0, canonical_group_normalization,
     infer_group_normalization, norm_flops},
    {"", "RMSNormalization", 23, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_layer_normalization,
     infer_rms_normalization, norm_flops},
    {"", "LpNormalization", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_lp_normalization, infer_same,
     norm_flops},
    {"", "MeanVarianceNormalization", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_mean_variance,
     infer_same, norm_flops},
    {"", "LRN", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_lrn, infer_lrn, lrn_flops},
};

}  // namespace

std::span<const OperatorDef> norm_operators() { return kNormOperators; }

}  // namespace pfrt
