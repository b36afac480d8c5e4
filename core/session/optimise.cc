// SPDX-License-Identifier: Apache-2.0
#include "core/session/optimise.h"

#include <algorithm>

#include "core/base/provider_name.h"
#include "core/exec/device_copy.h"
#include "core/provider/snapshot.h"

namespace pfrt {
namespace {

// A limit is needed because some operators cannot tell their cost in advance.
constexpr uint64_t kMostNsToFold = 5'000'000'000;

// Some nodes of a graph as a separate graph, for questions to providers.
struct Part {
  std::shared_ptr<Graph> graph;
  std::vector<NodeId> order;  // fewer than were asked for where two make the same value
};

Part part_of(const Graph& graph, std::span<const Node* const> nodes) {
  Part out{std::make_shared<Graph>("question"), {}};
  Graph& part = *out.graph;
  part.opsets = graph.opsets;
  part.symbols = graph.symbols;
  part.operators = graph.operators;
  const auto mirror = [&](ValueId value) {
    if (value == kNoId) return kNoId;
    const ValueId id = part.value(graph.at(value).name);
    part.at(id).type = graph.at(value).type;
    part.at(id).constant = graph.at(value).constant;
    return id;
  };
  for (const Node* from : nodes) {
    Node made = *from;
    made.epilogue_of = kNoId;
    for (ValueId& v : made.inputs) v = mirror(v);
    for (ValueId& v : made.outputs) v = mirror(v);
    auto id = part.add_node(std::move(made));
    if (id.ok()) out.order.push_back(*id);
  }
  return out;
}

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
  context.stopped = [this] { return stopped_; };
  context.cost = [this](const Graph& graph, std::span<const Node* const> nodes,
                        std::string_view target) { return cost(graph, nodes, target); };
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
  PFRT_TRY(run_and_copy_back(*compiled, {}, std::vector<OutputRequest>(count), control, outputs));
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
                                  std::span<const Node* const> epilogue, std::string_view target) {
  if (!stopped_.ok()) return stopped_.message();
  const Candidate* candidate = find(target);
  if (!candidate) return message("no provider of the session answers to '", target, "'");
  if (!candidate->provider) return message(candidate->name, " is not in use");
  std::vector<const Node*> nodes{&node};
  nodes.insert(nodes.end(), epilogue.begin(), epilogue.end());
  const Part part = part_of(graph, nodes);
  if (part.order.size() != nodes.size()) return "the nodes are not a chain";
  std::vector<uint32_t> indices;
  for (uint32_t i = 1; i < part.order.size(); ++i) indices.push_back(i);
  const Snapshot snapshot(part.graph, part.order, candidate->provider->takes_deferred());
  auto reason = candidate->provider->refuses(snapshot.get(), 0, indices,
                                             [this] { return services_.progress.stop(); });
  if (reason.ok()) return reason.take();
  stopped_ = reason.take_status();
  return stopped_.message();
}

Result<std::optional<double>> PassServices::cost(const Graph& graph,
                                                 std::span<const Node* const> nodes,
                                                 std::string_view target) const {
  const Candidate* candidate = find(target);
  if (!candidate || !candidate->provider) return std::optional<double>();
  Provider& provider = *candidate->provider;
  const Part part = part_of(graph, nodes);
  if (part.order.size() != nodes.size()) return std::optional<double>();
  const Snapshot snapshot(part.graph, part.order, provider.takes_deferred());
  const Progress& progress = services_.progress;
  PFRT_ASSIGN(const Claims claims,
              provider.claim(snapshot.get(), [&progress] { return progress.stop(); }));
  double ns = 0;
  for (const Claim& claim : claims.nodes) {
    if (!claim.accepted) return std::optional<double>();
    ns += claim.est_ns;
  }
  return std::optional<double>(ns);
}

}  // namespace pfrt
