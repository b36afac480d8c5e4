// SPDX-License-Identifier: Apache-2.0
//
// Products and convolutions joined with an activation or sum in one operator, and their
// channels-last forms.
#include <algorithm>
#include <string>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/defs/contrib/forms.h"
#include "core/op/engine/infer.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

using contrib::drop;
using contrib::replace_with;

using contrib::Activation;

// Takes the node's activation from "activation" and "activation_params", and removes these.
Result<Activation> listed_activation(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "activation", ""));
  Activation found{std::string(rewriter.node().attr_string("activation", "")), {}, {}, {}};
  if (const Attribute* given = rewriter.node().attr("activation_params")) {
    if (given->type != PFRT_ATTR_FLOATS || given->floats.size() > 2)
      return rewriter.fail("attribute 'activation_params' must be a list of up to 2 floats");
    if (!given->floats.empty()) found.alpha = given->floats[0];
    if (given->floats.size() > 1) found.beta = given->floats[1];
  }
  drop(rewriter, {"activation", "activation_params"});
  return found;
}

// Takes the node's activation from "activation" and "activation_alpha" to "activation_gamma", and
// removes these.
Result<Activation> named_activation(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "activation", ""));
  Activation found{std::string(rewriter.node().attr_string("activation", "")), {}, {}, {}};
  const std::pair<std::string_view, std::optional<float>*> parameters[] = {
      {"activation_alpha", &found.alpha},
      {"activation_beta", &found.beta},
      {"activation_gamma", &found.gamma}};
  for (const auto& [name, value] : parameters) {
    const Attribute* given = rewriter.node().attr(name);
    if (!given) continue;
    if (given->type != PFRT_ATTR_FLOAT)
      return rewriter.fail("attribute '", name, "' has type ", given->type, ", expected a float");
    *value = given->f;
    rewriter.node().drop_attr(name);
  }
  drop(rewriter, {"activation"});
  return found;
}

// The rank of a convolution or pool, from its attributes or inputs.
Result<size_t> spatial_node_rank(Rewriter& rewriter, size_t weights) {
  const std::vector<int64_t>* kernel = rewriter.node().attr_ints("kernel_shape");
  size_t fallback = kernel ? kernel->size() + 2 : 0;
  if (!fallback && rewriter.has_shape(weights)) fallback = rewriter.rank(weights);
  PFRT_ASSIGN(const size_t rank, contrib::known_rank(rewriter, 0, fallback));
  if (rank < 3) return rewriter.fail("the input has rank ", rank, ", needs 3 or more");
  return rank;
}

// Makes the node |op| of ai.onnx on input 0, with its channels moved to dimension 1 and back.
Status to_channels_last(Rewriter& rewriter, std::string_view op, size_t weights) {
  PFRT_ASSIGN(const size_t rank, spatial_node_rank(rewriter, weights));
  PFRT_ASSIGN(const ValueId first, contrib::permuted(rewriter, contrib::input(rewriter, 0),
                                                     contrib::to_channels_first(rank)));
  rewriter.set_input(0, first);
  PFRT_TRY(replace_with(rewriter, op));
  return rewriter.after("Transpose", {},
                        {Attribute::of_ints("perm", contrib::to_channels_last(rank))});
}

// Computes Y = activation(Conv(X, W, B) + Z).
Status canonical_fused_conv(Rewriter& rewriter) {
  PFRT_ASSIGN(const Activation activation, listed_activation(rewriter));
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  const ValueId sum = contrib::input(rewriter, 3);
  if (rewriter.node().inputs.size() > 3) rewriter.node().inputs.resize(3);
  PFRT_TRY(replace_with(rewriter, "Conv"));
  if (sum != kNoId) PFRT_TRY(rewriter.after("Add", {sum}));
  return contrib::activate_after(rewriter, activation, dtype);
}

Status canonical_nhwc_fused_conv(Rewriter& rewriter) {
  PFRT_ASSIGN(const Activation activation, listed_activation(rewriter));
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  const ValueId sum = contrib::input(rewriter, 3);
  if (rewriter.node().inputs.size() > 3) rewriter.node().inputs.resize(3);
  PFRT_TRY(to_channels_last(rewriter, "Conv", 1));
  if (sum != kNoId) PFRT_TRY(rewriter.after("Add", {sum}));
  return contrib::activate_after(rewriter, activation, dtype);
}

Status canonical_nhwc_max_pool(Rewriter& rewriter) {
  return to_channels_last(rewriter, "MaxPool", SIZE_MAX);
}

// Canonical graphs have these operators for providers that support them
// (core/pass/rules/layout/channels_last.h); in graphs that are read they are decomposed. Shapes are
// inferred with channels first, and moved.
Status infer_channels_last(Inference& inference) {
  const Type& in = inference.input(0);
  if (!in.is_tensor() || !in.has_shape || in.shape.size() < 3) {
    inference.set_output_unknown_shape(0, in.dtype);
    return {};
  }
  Graph moved("channels first");
  moved.symbols = inference.graph().symbols;
  InferState state;
  Node node = inference.node();
  node.op = node.op == "NhwcConv" ? "Conv" : "MaxPool";
  node.domain.clear();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoId) continue;
    node.inputs[i] = moved.fresh("in");
    state.types.resize(moved.value_count());
    state.types[node.inputs[i]] = inference.input(i);
  }
  Shape& first = state.types[node.inputs[0]].shape;
  std::rotate(first.begin() + 1, first.end() - 1, first.end());
  node.outputs = {moved.fresh("out")};
  state.types.resize(moved.value_count());
  state.data.resize(moved.value_count());
  PFRT_TRY(infer_node(moved, node, state));
  Type out = state.types[node.outputs[0]];
  if (out.has_shape && out.shape.size() > 2)
    std::rotate(out.shape.begin() + 1, out.shape.begin() + 2, out.shape.end());
  inference.set_output(0, std::move(out));
  return {};
}

Status canonical_qlinear_conv(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "channels_last", 0));
  const bool last = rewriter.node().attr_int("channels_last", 0) != 0;
  drop(rewriter, {"channels_last"});
  return last ? to_channels_last(rewriter, "QLinearConv", 3)
              : replace_with(rewriter, "QLinearConv");
}

Status canonical_fused_gemm(Rewriter& rewriter) {
  PFRT_ASSIGN(const Activation activation, named_activation(rewriter));
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  PFRT_TRY(replace_with(rewriter, "Gemm"));
  return contrib::activate_after(rewriter, activation, dtype);
}

// Permutation of the dimensions of a factor of FusedMatMul: |batch| puts the first one before the
// last, then |matrix| swaps the last two.
std::vector<int64_t> factor_order(size_t rank, bool matrix, bool batch) {
  std::vector<int64_t> perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
  if (batch && rank > 2) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix) std::swap(perm[rank - 2], perm[rank - 1]);
  return perm;
}

// Puts input |i| in the order that its attributes ask for; a vector stays as it is.
Status order_factor(Rewriter& rewriter, size_t i, bool matrix, bool batch) {
  if (!matrix && !batch) return {};
  PFRT_ASSIGN(const size_t rank, contrib::known_rank(rewriter, i));
  if (rank < 2) return {};
  PFRT_ASSIGN(const ValueId ordered, contrib::permuted(rewriter, rewriter.node().inputs[i],
                                                       factor_order(rank, matrix, batch)));
  rewriter.set_input(i, ordered);
  return {};
}

constexpr AttrDefault kMatMulDefaults[] = {
    {"FusedMatMul", "alpha", PFRT_ATTR_FLOAT, 1},
    {"FusedMatMul", "transA", PFRT_ATTR_INT, 0},
    {"FusedMatMul", "transB", PFRT_ATTR_INT, 0},
    {"FusedMatMul", "transBatchA", PFRT_ATTR_INT, 0},
    {"FusedMatMul", "transBatchB", PFRT_ATTR_INT, 0},
};

// Two matrices become a Gemm, which transposes and scales while it reads; otherwise the factors are
// transposed first and the product is scaled afterwards.
Status to_matmul(Rewriter& rewriter, pfrt_dtype dtype) {
  Node& node = rewriter.node();
  node.op = "FusedMatMul";  // TransposeMatMul is its first name
  PFRT_TRY(fill_defaults(rewriter, kMatMulDefaults));
  const bool matrices = rewriter.has_shape(0) && rewriter.rank(0) == 2 && rewriter.has_shape(1) &&
                        rewriter.rank(1) == 2;
  const bool a = node.attr_int("transA", 0) != 0, b = node.attr_int("transB", 0) != 0;
  const bool batch_a = node.attr_int("transBatchA", 0) != 0,
             batch_b = node.attr_int("transBatchB", 0) != 0;
  const float alpha = node.attr_float("alpha", 1);
  drop(rewriter, {"transBatchA", "transBatchB"});
  if (matrices && (a || b || alpha != 1)) return replace_with(rewriter, "Gemm");
  drop(rewriter, {"transA", "transB", "alpha"});
  PFRT_TRY(order_factor(rewriter, 0, a, batch_a));
  PFRT_TRY(order_factor(rewriter, 1, b, batch_b));
  PFRT_TRY(replace_with(rewriter, "MatMul"));
  if (alpha == 1) return {};
  PFRT_ASSIGN(const ValueId factor, rewriter.scalar("alpha", dtype, static_cast<double>(alpha)));
  return rewriter.after("Mul", {factor});
}

Status canonical_fused_matmul(Rewriter& rewriter) {
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  return to_matmul(rewriter, dtype);
}

Status canonical_fused_matmul_activation(Rewriter& rewriter) {
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  PFRT_TRY(fill_int(rewriter, "activation_axis", -1));
  const int64_t axis = rewriter.node().attr_int("activation_axis", -1);
  drop(rewriter, {"activation_axis"});
  PFRT_ASSIGN(const Activation activation, named_activation(rewriter));
  PFRT_TRY(to_matmul(rewriter, dtype));
  if (activation.name != "Softmax") return contrib::activate_after(rewriter, activation, dtype);
  return rewriter.after("Softmax", {}, {Attribute::of_int("axis", axis)});
}

constexpr std::string_view kDomain = "com.microsoft";

constexpr OperatorDef kRows[] = {
    {kDomain, "FusedConv", 1, 0, 2, 4, 1, 1, kOpPlain, 0, canonical_fused_conv, nullptr, nullptr},
    {kDomain, "NhwcFusedConv", 1, 0, 2, 4, 1, 1, kOpPlain, 0, canonical_nhwc_fused_conv, nullptr,
     nullptr},
    {kDomain, "NhwcConv", 1, 0, 2, 3, 1, 1, kOpPlain, 0, canonical_nhwc_fused_conv,
     infer_channels_last, nullptr},
    {kDomain, "NhwcMaxPool", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_nhwc_max_pool,
     infer_channels_last, nullptr},
    {kDomain, "QLinearConv", 1, 0, 8, 9, 1, 1, kOpPlain, 0, canonical_qlinear_conv, nullptr,
     nullptr},
    {kDomain, "FusedGemm", 1, 0, 2, 3, 1, 1, kOpPlain, 0, canonical_fused_gemm, nullptr, nullptr},
    {kDomain, "FusedMatMul", 1, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_fused_matmul, nullptr,
     nullptr},
    {kDomain, "TransposeMatMul", 1, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_fused_matmul, nullptr,
     nullptr},
    {kDomain, "FusedMatMulActivation", 1, 0, 2, 2, 1, 1, kOpPlain, 0,
     canonical_fused_matmul_activation, nullptr, nullptr},
};

}  // namespace

std::span<const OperatorDef> contrib_fused_operators() { return kRows; }

}  // namespace pfrt
