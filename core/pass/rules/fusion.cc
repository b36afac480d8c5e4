// SPDX-License-Identifier: Apache-2.0
//
// Joins several operators into one: by rules, and by epilogues that providers agreed to.
#include <algorithm>
#include <utility>

#include "core/pass/engine/passes.h"
#include "core/pass/rules/mark_epilogues.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

class FusionPass final : public Pass {
 public:
  FusionPass(FusionConfig config, OptLevel level) : config_(std::move(config)), level_(level) {}
  std::string_view name() const override { return "OperatorFusionPass"; }
  std::string_view description() const override {
    return "makes one operator of several, and one step of an operator and its epilogue";
  }
  OptLevel level() const override { return OptLevel::kExtended; }
  // These passes leave constant weights, and equal computations as one value with all users.
  std::span<const std::string_view> after() const override {
    static constexpr std::string_view kAfter[] = {"ConstantFoldingPass", "CSEPass"};
    return kAfter;
  }
  bool keeps_editors() const override { return true; }

  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) override {
    std::vector<const Rule*> rules = rules_of(RulePass::kFusion, level_);
    const std::pair<std::string_view, bool> switches[] = {
        {"FusedConvBN", config_.fuse_conv_bn},
        {"FoldBatchNorm", config_.fuse_conv_bn},
        {"FusedConvBNRelu", config_.fuse_conv_bn_activation},
        {"Gemm", config_.fuse_matmul_add},
    };
    std::erase_if(rules, [&](const Rule* rule) {
      return std::ranges::any_of(switches,
                                 [&](const auto& s) { return s.first == rule->name && !s.second; });
    });
    PFRT_TRY(run_rules(*graph, rules,
                       {context, config_.target_backend, config_.check_backend_support}, result));
    const bool again = std::exchange(marked_, true);
    return for_each_graph(*graph, context, [&](Editor& editor) {
      return mark_epilogues(editor, config_, again, context, result);
    });
  }

 private:
  const FusionConfig config_;
  const OptLevel level_;
  bool marked_ = false;
};

}  // namespace

std::unique_ptr<Pass> fusion_pass(FusionConfig config, OptLevel level) {
  return std::make_unique<FusionPass>(std::move(config), level);
}

}  // namespace pfrt
