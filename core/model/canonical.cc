// SPDX-License-Identifier: Apache-2.0
#include "core/model/canonical.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/lock.h"
#include "core/ir/verify.h"
#include "core/op/engine/check_operators.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"

namespace pfrt {
namespace {

// The canonical form of a larger graph is made again for the next session rather than kept.
constexpr size_t kKeptNodes = 100'000;

// Declared types stay where inference knows nothing.
void copy_type(const Type& from, Type& to, const SymbolTable& symbols) {
  const Type declared = std::exchange(to, from);
  if (!declared.has_shape || declared.kind != from.kind) return;
  if (!to.has_shape) {
    to.has_shape = true;
    to.shape = declared.shape;
  }
  if (declared.shape.size() != to.shape.size()) return;
  for (size_t i = 0; i < to.shape.size(); ++i)
    if (to.shape[i].unknown() || (declared.shape[i].symbolic() &&
                                  symbols.given_name(to.shape[i]).empty() && !to.shape[i].known()))
      to.shape[i] = declared.shape[i];
}

bool is_word(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
  };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == ' ' || c == ':';
  });
}

std::string text_of(const Contradicted& contradicted) {
  if (contradicted.count == 1)
    return "a declared type is not what the graph makes and is ignored: " + contradicted.first;
  return message(contradicted.count,
                 " declared types are not what the graph makes and are ignored; the first: ",
                 contradicted.first);
}

}  // namespace

void copy_types(const Graph& from, Graph& to) {
  const std::unordered_set<ValueId> inputs(to.inputs.begin(), to.inputs.end());
  for (ValueId id = 0; id < to.value_count(); ++id) {
    const ValueId other = from.find(to.at(id).name);
    if (other != kNoId && from.at(other).type.kind != PFRT_VALUE_UNSET && !to.at(id).constant &&
        !inputs.count(id))
      copy_type(from.at(other).type, to.at(id).type, *to.symbols);
  }
}

void default_opsets(Graph& graph) {
  std::map<std::string, int64_t> missing;  // by domain
  for (NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    const std::string domain = node.domain == "ai.onnx" ? "" : node.domain;
    int64_t opset = newest_opset(domain);
    if (opset == 0 && graph.operators) opset = graph.operators->newest(domain, node.op);
    if (graph.opset(domain) == 0 && opset > 0) missing[domain] = std::max(missing[domain], opset);
    for (const Attribute& a : node.attrs) {
      if (a.graph) default_opsets(*a.graph);
      for (const auto& g : a.graphs) default_opsets(*g);
    }
  }
  for (const auto& [domain, opset] : missing) graph.opsets[domain] = opset;
  if (graph.opsets.empty()) graph.opsets[""] = newest_opset("");
}

// A name that is no word, such as "4" or "a+b", is quoted, since texts of expressions consist of
// such signs: an input named "N+1" need not be one longer than N.
void number_dims(Graph& graph) {
  for (ValueId id : graph.inputs)
    for (Dim& dim : graph.at(id).type.shape) {
      if (dim.unknown()) dim = graph.symbols->fresh();
      if (dim.known()) continue;
      const std::string name = graph.symbols->name(dim.symbol());
      if (is_word(name) || graph.symbols->settled(dim)) continue;
      const bool quotable = name.find_first_of("?'(") == name.npos;
      dim = quotable ? graph.symbols->quoted(name) : graph.symbols->fresh();
    }
}

Result<std::shared_ptr<const Graph>> make_canonical(std::shared_ptr<Graph> graph,
                                                    const OperatorSet::Ptr& operators,
                                                    const Progress* progress,
                                                    Contradicted* contradicted) {
  use_operators(*graph, operators);
  PFRT_TRY(check_operators(*graph));
  number_dims(*graph);
  CanonicaliseWatch watch;
  watch.progress = progress;
  watch.contradicted = contradicted;
  PFRT_TRY(canonicalise(*graph, watch));
  return std::shared_ptr<const Graph>(std::move(graph));
}

Result<std::shared_ptr<const Graph>> CanonicalGraph::get(const Graph& graph,
                                                         const OperatorSet::Ptr& operators,
                                                         bool keep, const Progress& progress) {
  const auto lock = lock_unless(mutex_, [&] { return progress.stopped(); });
  if (!lock.owns_lock()) return progress.stop();
  if (!tried_ || operators_ != operators) {
    Contradicted contradicted;
    auto made = make_canonical(graph.clone(), operators, &progress, &contradicted);
    if (!made.ok() && progress.stopped()) return made.take_status();
    tried_ = true;
    operators_ = operators;
    graph_.reset();
    contradicted_ = contradicted.count ? text_of(contradicted) : std::string();
    if (made.ok()) {
      graph_ = made.take();
    } else {
      status_ = made.take_status();
    }
  }
  if (!graph_) return status_;
  if (keep || graph_->node_count() <= kKeptNodes) return graph_;
  tried_ = false;
  return std::exchange(graph_, nullptr);
}

Status infer_types(Graph& graph) {
  default_opsets(graph);
  PFRT_TRY(graph.bind_captures());
  PFRT_TRY(verify(graph));
  PFRT_ASSIGN(auto canonical, make_canonical(graph.clone(), graph.operators));
  copy_types(*canonical, graph);
  return {};
}

Status validate_all(Graph& graph) {
  PFRT_TRY(graph.bind_captures());
  std::vector<Status> faults;
  const auto take = [&](Status status) {
    for (const Status& child : status.children()) faults.push_back(child);
    return status.ok() || !status.children().empty() ? Status() : std::move(status);
  };
  PFRT_TRY(take(verify(graph)));
  std::shared_ptr<Graph> copy = graph.clone();
  default_opsets(*copy);
  PFRT_TRY(take(check_operators(*copy)));
  for (Status& fault : attribute_faults(*copy)) faults.push_back(std::move(fault));
  if (copy->topological_order().ok()) {
    CanonicaliseWatch watch;
    watch.faults = &faults;
    PFRT_TRY(canonicalise(*copy, watch));
  }
  if (faults.empty()) return {};
  Status all =
      error(Code::kVALIDATION, "validating graph '", graph.name, "': ", faults.size(),
            faults.size() == 1 ? " fault: " : " faults, the first: ", faults.front().message());
  for (Status& fault : faults) all.add_child(std::move(fault));
  return all;
}

}  // namespace pfrt
