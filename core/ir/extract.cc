// SPDX-License-Identifier: Apache-2.0
#include "core/ir/extract.h"

#include <algorithm>

namespace pfrt {
namespace {

Status each_once(const Graph& graph, const std::vector<ValueId>& values, const char* what) {
  std::vector<bool> seen(graph.value_count());
  for (const ValueId id : values) {
    if (seen[id])
      return error(Code::kINVALID_ARGUMENT, "extracting a part of graph '", graph.name, "': ", what,
                   " '", graph.at(id).name, "' is named twice");
    seen[id] = true;
  }
  return {};
}

// Values and nodes of the part.
struct Needs {
  std::vector<bool> values, nodes;
};

Needs needs_of(const Graph& graph, const std::vector<ValueId>& inputs,
               const std::vector<ValueId>& outputs) {
  Needs needs{std::vector<bool>(graph.value_count()), std::vector<bool>(graph.node_capacity())};
  std::vector<bool> given(graph.value_count());
  for (const ValueId id : inputs) given[id] = true;
  std::vector<ValueId> todo = outputs;
  while (!todo.empty()) {
    const ValueId id = todo.back();
    todo.pop_back();
    if (needs.values[id]) continue;
    needs.values[id] = true;
    const NodeId producer = graph.at(id).producer;
    if (given[id] || producer == kNoId || needs.nodes[producer]) continue;
    needs.nodes[producer] = true;
    for (const ValueId used : graph.used_by(*graph.node(producer))) todo.push_back(used);
  }
  return needs;
}

// Takes |id| from the outputs of its producer, if this stays in the part for other outputs.
void cut_from_producer(Graph& part, ValueId id) {
  const NodeId producer = part.at(id).producer;
  if (producer == kNoId) return;
  std::vector<ValueId> outputs = part.node(producer)->outputs;
  std::ranges::replace(outputs, id, part.fresh(part.at(id).name));
  part.set_outputs(producer, std::move(outputs));
}

}  // namespace

Result<std::shared_ptr<Graph>> extract(const Graph& graph, const std::vector<ValueId>& inputs,
                                       const std::vector<ValueId>& outputs) {
  if (graph.depth > 0)
    return error(Code::kUNSUPPORTED, "extracting a part of graph '", graph.name,
                 "': it is a body, which reads values of the graph around it; extract from that");
  PFRT_TRY(each_once(graph, inputs, "input"));
  PFRT_TRY(each_once(graph, outputs, "output"));
  if (outputs.empty())
    return error(Code::kINVALID_ARGUMENT, "extracting a part of graph '", graph.name,
                 "': no output is named");
  const Needs needs = needs_of(graph, inputs, outputs);
  for (const ValueId id : inputs)
    if (!needs.values[id])
      return error(Code::kINVALID_ARGUMENT, "extracting a part of graph '", graph.name,
                   "': nothing between the inputs and the outputs reads input '", graph.at(id).name,
                   "'; leave it out");
  std::shared_ptr<Graph> part = graph.clone();
  for (const NodeId id : part->node_ids())
    if (!needs.nodes[id]) part->remove_node(id);
  for (const ValueId id : inputs) {
    cut_from_producer(*part, id);
    part->make_fed(id);
  }
  for (const ValueId id : part->initializers())
    if (!needs.values[id]) part->at(id).constant = nullptr;
  part->inputs = inputs;
  for (const ValueId id : graph.inputs)
    if (needs.values[id] && std::ranges::find(inputs, id) == inputs.end())
      part->inputs.push_back(id);
  part->outputs = outputs;
  return part;
}

}  // namespace pfrt
