// SPDX-License-Identifier: Apache-2.0
//
// Removes whatever no output depends on, and nodes whose output is their input.
#include <algorithm>

#include "core/pass/engine/passes.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

Status sweep(Editor& editor, const DceConfig& config, PassContext& context, PassResult& result) {
  Graph& graph = editor.graph();
  PFRT_ASSIGN(const std::vector<NodeId> order, editor.topological_order());
  for (size_t i = order.size(); i-- > 0;) {
    PFRT_TRY(context.look());
    const Node* node = graph.node(order[i]);
    if (!node || !editor.unused(*node)) continue;
    std::string name;
    for (ValueId out : node->outputs)
      if (out != kNoId && name.empty()) name = graph.at(out).name;
    if (!context.gate.may("RemoveUnused", graph, name)) continue;
    editor.remove_unused(order[i]);
    context.gate.did("RemoveUnused", graph, name);
    ++result.stats.rules["RemoveUnused"];
    result.modified = true;
  }
  if (!config.remove_initializers) return {};
  for (ValueId id : graph.initializers()) {
    if (!editor.users(id).empty() || editor.is_output(id) || editor.is_input(id)) continue;
    editor.drop_constant(id);
    ++result.stats.initializers_removed;
    result.modified = true;
  }
  return {};
}

class DeadCodePass final : public Pass {
 public:
  explicit DeadCodePass(DceConfig config) : config_(config) {}
  std::string_view name() const override { return "DeadCodeEliminationPass"; }
  std::string_view description() const override {
    return "removes what no output depends on, and nodes that hand on what they take";
  }
  OptLevel level() const override { return OptLevel::kBasic; }
  // Folding leaves unused constants.
  std::span<const std::string_view> after() const override {
    static constexpr std::string_view kAfter[] = {"ConstantFoldingPass"};
    return kAfter;
  }
  bool keeps_editors() const override { return true; }

  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) override {
    std::vector<const Rule*> rules = rules_of(RulePass::kDeadCode, OptLevel::kAll);
    std::erase_if(rules, [&](const Rule* rule) {
      return (rule->op == "Identity" && !config_.remove_identity) ||
             (rule->op == "Dropout" && !config_.remove_dropout);
    });
    PFRT_TRY(run_rules(*graph, rules, {context, {}, true}, result));
    return for_each_graph(*graph, context, [&](Editor& editor) -> Status {
      const uint64_t removed = editor.nodes_removed();
      Status status = sweep(editor, config_, context, result);
      result.stats.nodes_removed += editor.nodes_removed() - removed;
      return status;
    });
  }

 private:
  const DceConfig config_;
};

}  // namespace

std::unique_ptr<Pass> dead_code_pass(DceConfig config) {
  return std::make_unique<DeadCodePass>(config);
}

}  // namespace pfrt
