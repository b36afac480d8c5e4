// SPDX-License-Identifier: Apache-2.0
#include "core/pass/passes.h"
#include "core/pass/rule_tables.h"

namespace pfrt {
namespace {

class LayoutPass final : public Pass {
 public:
  explicit LayoutPass(LayoutConfig config) : config_(std::move(config)) {}
  std::string_view name() const override { return "LayoutOptimizationPass"; }
  std::string_view description() const override {
    return "takes transposes away that undo each other or need not be there";
  }
  OptLevel level() const override { return OptLevel::kAll; }

  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) override {
    return run_rules(*graph, rules_of(RulePass::kLayout, OptLevel::kAll),
                     {context, config_.target_backend, true}, result);
  }

 private:
  const LayoutConfig config_;
};

}  // namespace

std::unique_ptr<Pass> layout_pass(LayoutConfig config) {
  return std::make_unique<LayoutPass>(std::move(config));
}

}  // namespace pfrt
