// SPDX-License-Identifier: Apache-2.0
//
// Rewrites that pay only on some providers, made where the provider says that they do.
#include <utility>

#include "core/pass/engine/passes.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

class DataflowPass final : public Pass {
 public:
  explicit DataflowPass(DataflowConfig config) : config_(std::move(config)) {}
  std::string_view name() const override { return "DataflowPass"; }
  std::string_view description() const override {
    return "joins operators where a provider says that they take less time together";
  }
  // Runs at any level that optimises, once it is asked for.
  OptLevel level() const override { return OptLevel::kBasic; }
  // These passes leave constant weights, each as a single value.
  std::span<const std::string_view> after() const override {
    static constexpr std::string_view kAfter[] = {"ConstantFoldingPass", "CSEPass"};
    return kAfter;
  }
  bool keeps_editors() const override { return true; }

  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) override {
    return run_rules(*graph, rules_of(RulePass::kDataflow, kAll), {context, config_.target_backend},
                     result);
  }

 private:
  const DataflowConfig config_;
};

}  // namespace

std::unique_ptr<Pass> dataflow_pass(DataflowConfig config) {
  return std::make_unique<DataflowPass>(std::move(config));
}

}  // namespace pfrt
