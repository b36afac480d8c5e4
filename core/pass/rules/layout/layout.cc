// SPDX-License-Identifier: Apache-2.0
//
// Removes unnecessary transposes; where channels last are preferred, gives nodes that have such a
// form that form.
#include <algorithm>

#include "core/pass/engine/passes.h"
#include "core/pass/rules/layout/channels_last.h"
#include "core/pass/rules/rule_tables.h"

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
  // Fusion first merges nodes between transposes and convolutions into weights.
  std::span<const std::string_view> after() const override {
    static constexpr std::string_view kAfter[] = {"OperatorFusionPass"};
    return kAfter;
  }
  bool keeps_editors() const override { return true; }

  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) override {
    if (config_.conv_layout == Layout::kNhwc) {
      PFRT_TRY(for_each_graph(*graph, context, [&](Editor& editor) -> Status {
        const uint64_t added = editor.nodes_added(), removed = editor.nodes_removed();
        Status status = put_channels_last(editor, config_, context, result);
        result.stats.nodes_added += editor.nodes_added() - added;
        result.stats.nodes_removed += editor.nodes_removed() - removed;
        return status;
      }));
    } else if (config_.conv_layout == Layout::kNc4hw4) {
      return error(Code::kUNSUPPORTED,
                   "conv_layout NC4HW4: no operator takes tensors in blocks of four channels, so "
                   "that a graph cannot say it; leave NCHW, of which providers make blocks on "
                   "their own, or ask for NHWC");
    }
    std::vector<const Rule*> rules = rules_of(RulePass::kLayout, OptLevel::kAll);
    std::erase_if(rules, [&](const Rule* rule) {
      if (rule->name == "MoveTransposes")
        return !config_.propagate_layout || !config_.insert_transposes;
      return rule->name == "CancelTransposes" &&
             (!config_.propagate_layout || config_.insert_transposes);
    });
    return run_rules(*graph, rules, {context, config_.target_backend, true}, result);
  }

 private:
  const LayoutConfig config_;
};

}  // namespace

std::unique_ptr<Pass> layout_pass(LayoutConfig config) {
  return std::make_unique<LayoutPass>(std::move(config));
}

}  // namespace pfrt
