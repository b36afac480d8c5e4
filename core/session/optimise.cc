// SPDX-License-Identifier: Apache-2.0
#include "core/session/optimise.h"

#include <algorithm>

#include "core/base/provider_name.h"
#include "core/exec/device_copy.h"
#include "core/plan/snapshot.h"

namespace pfrt {
namespace {

// Some operators cannot say beforehand what they cost.
constexpr uint64_t kMostNsToFold = 5'000'000'000;

}  // namespace

PassContext PassServices::context() {
  PassContext context;
  context.evaluate = [this](std::shared_ptr<const Graph> graph) {
    return evaluate(std::move(graph));
  };
  context.refuses = [this](const Graph& graph, const Node& node,
                           std::span<const Node* const> epilogue, std::string_view target) {
    return refuses(graph, node, epilogue, target);
  };
  if (verifier_)
    context.difference = [this](const std::shared_ptr<const Graph>& before,
                                const std::shared_ptr<const Graph>& after) {
      return verifier_->difference(before, after);
    };
  context.progress = &services_.progress;
  return context;
}

Result<std::vector<ValuePtr>> PassServices::evaluate(std::shared_ptr<const Graph> graph) const {
  const size_t count = graph->outputs.size();
  CompileServices folding = services_;
  for (Candidate& c : folding.candidates)
    if (c.provider && !c.provider->folds()) c = {c.name, nullptr, c.name + " folds no constants"};
  PFRT_ASSIGN(const auto compiled,
              CompiledGraph::create(std::move(graph), folding, {.run_once = true}));
  RunControl control;
  control.cancelled = services_.progress.cancel_flag();
  control.deadline_ns = services_.progress.deadline_within(os::monotonic_ns() + kMostNsToFold);
  std::vector<ValuePtr> outputs;
  PFRT_TRY(run_whole(*compiled, {}, std::vector<OutputRequest>(count), control, outputs));
  return outputs;
}

const Candidate* PassServices::find(std::string_view target) const {
  const std::vector<Candidate>& all = services_.candidates;
  if (target.empty()) {
    const auto first = std::ranges::find_if(
        all, [](const Candidate& candidate) { return candidate.provider != nullptr; });
    return first == all.end() ? nullptr : &*first;
  }
  const size_t at = find_provider(
      all, target, [](const Candidate& c) -> auto& { return c.name; });
  return at == all.size() ? nullptr : &all[at];
}

std::string PassServices::refuses(const Graph& graph, const Node& node,
                                  std::span<const Node* const> epilogue,
                                  std::string_view target) const {
  const Candidate* candidate = find(target);
  if (!candidate) return message("no provider of the session answers to '", target, "'");
  if (!candidate->provider) return message(candidate->name, " is not in use");
  auto part = std::make_shared<Graph>("question");
  part->opsets = graph.opsets;
  part->symbols = graph.symbols;
  part->operators = graph.operators;
  std::vector<NodeId> order;
  const auto mirror = [&](ValueId value) {
    if (value == kNoId) return kNoId;
    const ValueId id = part->value(graph.at(value).name);
    part->at(id).type = graph.at(value).type;
    part->at(id).constant = graph.at(value).constant;
    return id;
  };
  const auto copy = [&](const Node& from) {
    Node made = from;
    made.epilogue_of = kNoId;
    for (ValueId& v : made.inputs) v = mirror(v);
    for (ValueId& v : made.outputs) v = mirror(v);
    auto id = part->add_node(std::move(made));
    if (id.ok()) order.push_back(*id);
  };
  copy(node);
  for (const Node* next : epilogue) copy(*next);
  if (order.size() != epilogue.size() + 1) return "the nodes are not a chain";
  std::vector<uint32_t> indices;
  for (uint32_t i = 1; i < order.size(); ++i) indices.push_back(i);
  const Snapshot snapshot(part, order, candidate->provider->takes_deferred());
  return candidate->provider->refuses(snapshot.get(), 0, indices);
}

}  // namespace pfrt
