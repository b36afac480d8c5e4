// SPDX-License-Identifier: Apache-2.0
#include "core/pass/engine/run_rules.h"

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/pass/engine/editors.h"

namespace pfrt {
namespace {

// Number of nodes between two checks whether the caller has cancelled.
constexpr size_t kVisitsPerStop = 64;
// Limit that ends a set of rules that undo each other's work.
constexpr uint64_t kApplicationsPerNode = 32;

class Worklist {
 public:
  void push(NodeId id) {
    if (waiting_.size() <= id) waiting_.resize(id + 1);
    if (waiting_[id]) return;
    waiting_[id] = true;
    queue_.push_back(id);
  }
  bool empty() const { return queue_.empty(); }
  NodeId pop() {
    const NodeId id = queue_.front();
    queue_.pop_front();
    waiting_[id] = false;
    return id;
  }

 private:
  std::deque<NodeId> queue_;
  std::vector<bool> waiting_;
};

using RuleIndex = std::unordered_map<std::string_view, std::vector<const Rule*>>;  // by operator

ValueId first_output(const Node& node) {
  for (ValueId out : node.outputs)
    if (out != kNoId) return out;
  return kNoId;
}

class Driver {
 public:
  Driver(std::span<const Rule* const> rules, const RuleContext& context, PassResult& result)
      : context_(context), result_(result) {
    for (const Rule* rule : rules) index_[rule->op].push_back(rule);
  }

  Status run(Editor& editor) {
    PFRT_ASSIGN(const std::vector<NodeId> order, editor.topological_order());
    Worklist worklist;
    for (NodeId id : order) worklist.push(id);
    uint64_t left = kApplicationsPerNode * (order.size() + 32);
    size_t visited = 0;
    const uint64_t added = editor.nodes_added(), removed = editor.nodes_removed();
    while (!worklist.empty() && left > 0) {
      if (context_.pass.progress && ++visited % kVisitsPerStop == 0)
        PFRT_TRY(context_.pass.progress->stop());
      const NodeId id = worklist.pop();
      const Node* node = editor.node(id);
      if (!node) continue;
      const auto own = index_.find(std::string_view(node->op)), any = index_.find({});
      if (own == index_.end() && any == index_.end()) continue;
      const ValueId out = first_output(*node);
      // This is a copy, since a rewrite may move the name to another value.
      const std::string at = out == kNoId ? std::string() : editor.graph().at(out).name;
      const auto changed_by = [&](auto found) {
        return found != index_.end() && std::ranges::any_of(found->second, [&](const Rule* rule) {
                 return try_rule(editor, id, at, *rule);
               });
      };
      if (changed_by(own) || changed_by(any)) {
        --left;
        worklist.push(id);
      }
      for (NodeId touched : editor.take_touched()) worklist.push(touched);
    }
    if (left == 0)
      result_.warnings.push_back(message("graph '", editor.graph().name, "': stopped after ",
                                         kApplicationsPerNode,
                                         " rewrites a node; rules seem to undo each other"));
    result_.stats.nodes_added += editor.nodes_added() - added;
    result_.stats.nodes_removed += editor.nodes_removed() - removed;
    return {};
  }

 private:
  bool try_rule(Editor& editor, NodeId id, const std::string& name, const Rule& rule) {
    Node* node = editor.node(id);
    if (!node || (!rule.op.empty() && node->domain != rule.domain)) return false;
    if (failed_.contains({id, &rule})) return false;
    const Graph& graph = editor.graph();
    if (!context_.pass.gate.may(rule.name, graph, name)) return false;
    Result<bool> applied = rule.apply(editor, *node, context_);
    if (!applied.ok()) {
      failed_.emplace(id, &rule);
      result_.warnings.push_back(
          message(rule.name, " at '", name, "': ", applied.status().message()));
      return false;
    }
    if (!*applied) {
      // It has taken back what it tried, so that there is nothing to look at again.
      (void)editor.take_touched();
      return false;
    }
    context_.pass.gate.did(rule.name, graph, name);
    result_.modified = true;
    ++result_.stats.rules[std::string(rule.name)];
    result_.stats.nodes_fused += rule.fuses;
    return true;
  }

  const RuleContext& context_;
  PassResult& result_;
  RuleIndex index_;
  // Rules that failed at a node. A failed rewrite touches the neighbours of the nodes it made and
  // removed, and so this node again.
  std::set<std::pair<NodeId, const Rule*>> failed_;
};

}  // namespace

Status for_each_graph(Graph& graph, const PassContext& context,
                      const std::function<Status(Editor&)>& fn) {
  if (context.editors) return context.editors->visit(graph, fn);
  Editors editors;
  editors.watch(context.progress);
  return editors.visit(graph, fn);
}

Status run_rules(Graph& graph, std::span<const Rule* const> rules, const RuleContext& context,
                 PassResult& result) {
  Driver driver(rules, context, result);
  return for_each_graph(graph, context.pass, [&](Editor& editor) { return driver.run(editor); });
}

}  // namespace pfrt
