// SPDX-License-Identifier: Apache-2.0
#include "core/plan/stages.h"

#include <algorithm>

#include "core/ir/verify.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"
#include "core/op/engine/static_facts.h"

namespace pfrt {
namespace {

bool runs_in_host(const Graph& graph, const Node& node) {
  const OperatorDef* def = find_canonical(graph, node);
  if (def && (def->flags & kOpHost) != 0) return true;
  if (!def || (def->flags & kOpHostStrings) == 0) return false;
  const auto numbers = [&](ValueId id) {
    if (id == kNoId) return true;
    const Type& type = graph.at(id).type;
    return type.is_tensor() && type.dtype != PFRT_DTYPE_STRING;
  };
  return !std::all_of(node.inputs.begin(), node.inputs.end(), numbers) ||
         !std::all_of(node.outputs.begin(), node.outputs.end(), numbers);
}

bool data_dependent(const Graph& graph, const Node& node) {
  const OperatorDef* def = find_canonical(graph, node);
  return def && (def->flags & kOpDataDependent) != 0;
}

// Whether outputs hold strings: a step can give these to a value only, not to working memory.
bool gives_strings(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.outputs, [&](ValueId out) {
    return out != kNoId && graph.at(out).type.is_tensor() &&
           graph.at(out).type.dtype == PFRT_DTYPE_STRING;
  });
}

std::string types_text(const Graph& graph, const Node& node) {
  std::string text;
  for (ValueId in : node.inputs)
    text += (text.empty() ? "" : ", ") +
            (in == kNoId ? std::string("-") : type_text(graph.at(in).type, *graph.symbols));
  return text;
}

// Whether the outputs' dimensions depend on contents that no plan can know beforehand.
bool needs_contents(const Graph& graph, const Node& node, const StaticFacts& known) {
  const OperatorDef* def = find_canonical(graph, node);
  if (!def) return false;
  for (size_t i = 0; i < node.inputs.size() && i < 32; ++i)
    if ((def->shape_inputs >> i & 1u) && node.has_input(i) && !known.data[node.inputs[i]] &&
        !graph.constant(node.inputs[i]))
      return true;
  return false;
}

Status check_all_run(const Graph& graph, const std::vector<NodeId>& order,
                     const Assignment& assignment) {
  std::vector<Status> faults;
  for (uint32_t i = 0; i < order.size(); ++i) {
    if (assignment.owner[i] != kNobody) continue;
    const Node& node = *graph.node(order[i]);
    const std::string& refused = assignment.nodes[i].refused;
    faults.push_back(error(Code::kUNSUPPORTED_OPERATOR, describe(graph, node), " (",
                           node.domain.empty() ? "ai.onnx" : node.domain, ", as of opset ",
                           newest_opset(node.domain), ") on (", types_text(graph, node),
                           "): ", refused.empty() ? "no provider is open" : refused));
  }
  if (faults.empty()) return {};
  Status all = error(Code::kUNSUPPORTED_OPERATOR, "planning graph '", graph.name,
                     "': ", faults.size(), faults.size() == 1 ? " node has" : " nodes have",
                     " no provider; ", faults.front().message());
  for (Status& f : faults) all.add_child(std::move(f));
  return all;
}

Status look(const Progress* progress) { return progress ? progress->stop() : Status(); }

// Claims of each candidate, without nodes it refused while compiling.
Result<std::vector<Claims>> claims_of(const Snapshot& snapshot,
                                      const std::vector<Candidate>& candidates,
                                      const std::vector<Refusal>& refusals,
                                      const Progress* progress) {
  const uint32_t count = snapshot.get().node_count;
  std::vector<Claims> claims;
  for (const Candidate& candidate : candidates) {
    if (!candidate.provider) {
      claims.push_back({std::vector<Claim>(count, Claim{false, 0, 0, candidate.reason}), {}, {}});
      continue;
    }
    auto one = candidate.provider->claim(snapshot.get(), [&] { return look(progress); });
    if (!one.ok()) return std::move(one.take_status().blame(*candidate.provider));
    claims.push_back(one.take());
    PFRT_TRY(look(progress));
  }
  for (const Refusal& r : refusals)
    claims[static_cast<size_t>(r.provider)].nodes[r.node] = {false, 0, 0, r.reason};
  return claims;
}

// Stretches of the sequence with one owner, further divided at |starts| and |ends|.
std::vector<Stage> stages_of(const Assignment& assignment, const std::vector<bool>& host,
                             const std::vector<bool>& starts, const std::vector<bool>& ends) {
  std::vector<Stage> out;
  bool ended = true;  // whether the previous node ended its segment
  for (uint32_t i : assignment.sequence) {
    const int owner = assignment.owner[i];
    const bool fresh_segment = ended || host[i] || starts[i];
    if (fresh_segment || out.back().provider != owner) {
      out.push_back({});
      out.back().provider = owner;
      out.back().starts_segment = fresh_segment;
    }
    out.back().nodes.push_back(i);
    ended = host[i] || ends[i];
  }
  return out;
}

// Sets inputs and outputs of the stages. A value that a node of |ends| makes is an output even
// though nothing reads it: it gets its memory when a run knows its size.
void connect(const Graph& graph, const std::vector<NodeId>& order, const std::vector<bool>& ends,
             std::vector<Stage>& stages) {
  std::vector<int> made_in(graph.value_count(), -1);
  for (size_t s = 0; s < stages.size(); ++s)
    for (uint32_t i : stages[s].nodes)
      for (ValueId v : graph.node(order[i])->outputs)
        if (v != kNoId) made_in[v] = static_cast<int>(s);
  std::vector<bool> leaves(graph.value_count(), false);
  for (ValueId v : graph.outputs) leaves[v] = true;
  for (size_t s = 0; s < stages.size(); ++s) {
    std::set<ValueId> inputs;
    for (uint32_t i : stages[s].nodes) {
      for (ValueId v : graph.used_by(*graph.node(order[i]))) {
        if (made_in[v] == static_cast<int>(s)) continue;
        if (made_in[v] >= 0) leaves[v] = true;
        if (!graph.constant(v)) inputs.insert(v);
      }
    }
    stages[s].inputs.assign(inputs.begin(), inputs.end());
  }
  for (Stage& stage : stages)
    for (uint32_t i : stage.nodes)
      for (ValueId v : graph.node(order[i])->outputs)
        if (v != kNoId && (leaves[v] || ends[i])) stage.outputs.push_back(v);
}

}  // namespace

Result<Partition> partition(const Graph& graph, const std::vector<NodeId>& order,
                            const Snapshot& snapshot, const std::vector<Candidate>& candidates,
                            const std::vector<Refusal>& refusals, AssignBy by,
                            const Progress* progress) {
  const uint32_t count = static_cast<uint32_t>(order.size());
  PFRT_ASSIGN(const std::vector<Claims> claims,
              claims_of(snapshot, candidates, refusals, progress));
  const StaticFacts known = static_facts(graph, order);
  std::vector<bool> host(count), starts(count), ends(count), splits(count);
  for (uint32_t i = 0; i < count; ++i) {
    const Node& node = *graph.node(order[i]);
    host[i] = runs_in_host(graph, node);
    starts[i] = needs_contents(graph, node, known);
    ends[i] = data_dependent(graph, node) || (!host[i] && gives_strings(graph, node));
    splits[i] = starts[i] || ends[i];
  }
  PFRT_TRY(look(progress));
  Assignment assignment = assign(graph, order, candidates, claims, host, splits, by);
  PFRT_TRY(check_all_run(graph, order, assignment));
  PFRT_TRY(look(progress));

  Partition out;
  out.stages = stages_of(assignment, host, starts, ends);
  connect(graph, order, ends, out.stages);
  out.nodes = std::move(assignment.nodes);
  return out;
}

}  // namespace pfrt
