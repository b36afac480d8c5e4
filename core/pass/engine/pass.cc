// SPDX-License-Identifier: Apache-2.0
#include "core/pass/engine/pass.h"

namespace pfrt {

void PassResult::add(const PassResult& other) {
  modified |= other.modified;
  stats.nodes_removed += other.stats.nodes_removed;
  stats.nodes_added += other.stats.nodes_added;
  stats.nodes_fused += other.stats.nodes_fused;
  stats.constants_folded += other.stats.constants_folded;
  stats.initializers_removed += other.stats.initializers_removed;
  for (const auto& [rule, count] : other.stats.rules) stats.rules[rule] += count;
  warnings.insert(warnings.end(), other.warnings.begin(), other.warnings.end());
}

Application Gate::application(std::string_view rule, const Graph& graph,
                              std::string_view at) const {
  std::string where(at);
  if (graph.depth > 0) where = message(graph.name, "/", where);
  return {pass_, std::string(rule), std::move(where)};
}

bool Gate::may(std::string_view rule, const Graph& graph, std::string_view at) const {
  if (done_.size() >= limit_) return false;
  return blocked_.empty() || !(blocked_.contains(application(rule, graph, at)) ||
                               blocked_.contains({pass_, std::string(rule), ""}));
}

bool Gate::blocks(std::string_view pass) const {
  return blocked_.contains({std::string(pass), "", ""});
}

void Gate::did(std::string_view rule, const Graph& graph, std::string_view at) {
  done_.push_back(application(rule, graph, at));
}

void Gate::begin(std::string_view pass, uint64_t limit) {
  pass_ = pass;
  limit_ = limit;
  done_.clear();
}

}  // namespace pfrt
