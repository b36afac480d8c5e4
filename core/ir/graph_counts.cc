// SPDX-License-Identifier: Apache-2.0
#include "core/ir/graph_counts.h"

namespace pfrt {
namespace {

template <class Found>
void for_each_body(const Node& node, Found found) {
  for (const Attribute& attr : node.attrs) {
    if (attr.graph) found(*attr.graph);
    for (const auto& body : attr.graphs)
      if (body) found(*body);
  }
}

void add(const ValuePtr& value, GraphCounts* counts) {
  if (!value || !value->tensor.valid()) return;
  if (value->tensor.count() > 0) counts->parameters += static_cast<uint64_t>(value->tensor.count());
  counts->parameter_bytes += value->tensor.bytes();
}

// Handles the forms of a Constant's value, of which it has one.
void add_constant(const Node& node, GraphCounts* counts) {
  const auto list = [counts](size_t size, size_t element) {
    counts->parameters += size;
    counts->parameter_bytes += size * element;
  };
  for (const Attribute& attr : node.attrs) {
    add(attr.tensor, counts);
    if (attr.type == PFRT_ATTR_INT) list(1, sizeof(int64_t));
    if (attr.type == PFRT_ATTR_FLOAT) list(1, sizeof(float));
    if (attr.type == PFRT_ATTR_STRING) list(1, attr.s.size());
    list(attr.ints.size(), sizeof(int64_t));
    list(attr.floats.size(), sizeof(float));
    for (const std::string& text : attr.strings) list(1, text.size());
  }
}

void add(const Graph& graph, GraphCounts* counts) {
  for (ValueId id : graph.initializers()) {
    ++counts->initializers;
    add(graph.at(id).constant, counts);
  }
  for (NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    ++counts->nodes;
    if (node.op == "Constant" && node.domain.empty()) add_constant(node, counts);
    for_each_body(node, [counts](const Graph& body) { add(body, counts); });
  }
}

}  // namespace

GraphCounts count(const Graph& graph) {
  GraphCounts counts;
  add(graph, &counts);
  return counts;
}

uint64_t count_nodes(const Graph& graph) {
  uint64_t nodes = 0;
  for (NodeId id : graph.node_ids()) {
    ++nodes;
    for_each_body(*graph.node(id), [&nodes](const Graph& body) { nodes += count_nodes(body); });
  }
  return nodes;
}

}  // namespace pfrt
