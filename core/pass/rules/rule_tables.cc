// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/rule_tables.h"

namespace pfrt {

std::span<const RuleFamily> rule_families() {
  static constexpr RuleFamily kFamilies[] = {
      {RulePass::kFolding, "control", control_rules},
      {RulePass::kDeadCode, "identity", identity_rules},
      {RulePass::kDeadCode, "noop_elimination", noop_elimination_rules},
      {RulePass::kDeadCode, "algebra", algebra_rules},
      {RulePass::kFusion, "reshape", reshape_rules},
      {RulePass::kFusion, "split_concat", split_concat_rules},
      {RulePass::kFusion, "shape_range", shape_range_rules},
      {RulePass::kFusion, "transpose", transpose_chain_rules},
      {RulePass::kFusion, "scatter", scatter_rules},
      {RulePass::kFusion, "expand", expand_rules},
      {RulePass::kFusion, "einsum", einsum_rules},
      {RulePass::kFusion, "cast", cast_rules},
      {RulePass::kFusion, "widen", widen_rules},
      {RulePass::kFusion, "quantized_moves", quantized_move_rules},
      {RulePass::kFusion, "quantized_matmuls", quantized_matmul_rules},
      {RulePass::kFusion, "quantized_transposed", quantized_transposed_rules},
      {RulePass::kFusion, "quantized_pools", quantized_pool_rules},
      {RulePass::kFusion, "raise_norm", normalization_rules},
      {RulePass::kFusion, "normalization", normalization_parameter_rules},
      {RulePass::kFusion, "raise_activation", activation_rules},
      {RulePass::kFusion, "raise_softmax", softmax_rules},
      {RulePass::kFusion, "raise_attention", attention_rules},
      {RulePass::kFusion, "attention", attention_input_rules},
      {RulePass::kFusion, "merge_matmuls", merge_matmul_rules},
      {RulePass::kFusion, "conv", conv_rules},
      {RulePass::kFusion, "batch_norm", batch_norm_rules},
      {RulePass::kFusion, "taps", tap_rules},
      {RulePass::kFusion, "pool", pool_rules},
      {RulePass::kLayout, "transpose", transpose_rules},
      {RulePass::kLayout, "split_concat", late_split_concat_rules},
      {RulePass::kDataflow, "merge_matmuls", merged_product_rules},
  };
  return kFamilies;
}

std::vector<const Rule*> rules_of(RulePass pass, OptLevel level) {
  std::vector<const Rule*> out;
  for (const RuleFamily& family : rule_families())
    if (family.pass == pass)
      for (const Rule& rule : family.rules())
        if (rule.level <= level) out.push_back(&rule);
  return out;
}

const std::vector<KnownRule>& all_rules() {
  static const std::vector<KnownRule> all = [] {
    constexpr std::string_view kPasses[] = {
        "ConstantFoldingPass", "DeadCodeEliminationPass", "CSEPass",
        "OperatorFusionPass",  "LayoutOptimizationPass",  "DataflowPass"};
    std::vector<KnownRule> out{
        {kPasses[0], "FoldShape", "a shape that is known, and arithmetic on it -> a constant",
         OptLevel::kBasic},
        {kPasses[0], "FoldConstant", "nodes that take constants alone -> constants",
         OptLevel::kBasic},
        {kPasses[0], "ConstantIntoBody", "a constant that a body captures -> the body's own",
         OptLevel::kBasic},
        {kPasses[1], "RemoveUnused", "a node that no output depends on -> nothing",
         OptLevel::kBasic},
        {kPasses[2], "JoinConstants", "small constants of equal bytes -> one", OptLevel::kExtended},
        {kPasses[2], "JoinNodes", "nodes that compute the same from the same -> one",
         OptLevel::kExtended},
        {kPasses[2], "JoinSizes", "values computed from shapes that are the same numbers -> one",
         OptLevel::kExtended},
        {kPasses[3], "FusedConvRelu", "Conv, Relu -> one step", OptLevel::kExtended},
        {kPasses[3], "FusedAddRelu", "Add, Relu -> one step", OptLevel::kExtended},
        {kPasses[3], "FusedMulRelu", "Mul, Relu -> one step", OptLevel::kExtended},
        {kPasses[3], "FusedBNRelu", "BatchNormalization, Relu -> one step", OptLevel::kExtended},
        {kPasses[3], "FMA", "Mul, Add -> one step", OptLevel::kExtended},
        {kPasses[3], "FusedConvMaxPool", "Conv, MaxPool -> one step", OptLevel::kExtended},
        {kPasses[3], "FusedNormalization",
         "an operator, LayerNormalization or RMSNormalization of its rows -> one step",
         OptLevel::kExtended},
        {kPasses[3], "Epilogue", "an operator and the elementwise ones after it -> one step",
         OptLevel::kExtended},
        {kPasses[4], "ChannelsLast",
         "Conv, MaxPool -> NhwcConv, NhwcMaxPool, where they are preferred", OptLevel::kAll},
    };
    for (const RuleFamily& family : rule_families())
      for (const Rule& rule : family.rules())
        out.push_back(
            {kPasses[static_cast<size_t>(family.pass)], rule.name, rule.what,
             family.pass == RulePass::kDataflow ? std::nullopt : std::optional(rule.level)});
    return out;
  }();
  return all;
}

}  // namespace pfrt
