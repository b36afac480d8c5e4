// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/order.h"

#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pfrt::onnx {
namespace {

namespace wire = ::pfrt_onnx_wire;

template <typename Fn>
void for_each_use(const wire::NodeProto& node, const Fn& fn);

template <typename Fn>
void for_each_use(const wire::GraphProto& body, const Fn& fn) {
  for (const auto& node : body.node()) for_each_use(node, fn);
  for (const auto& output : body.output()) fn(output.name());
}

// Calls |fn| with every name |node| and its bodies mention, those that bodies define among them.
template <typename Fn>
void for_each_use(const wire::NodeProto& node, const Fn& fn) {
  for (const auto& input : node.input()) fn(input);
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) for_each_use(attribute.g(), fn);
    for (const auto& graph : attribute.graphs()) for_each_use(graph, fn);
  }
}

}  // namespace

void sort_nodes(wire::GraphProto* graph) {
  const int count = graph->node_size();
  std::unordered_map<std::string_view, int> producer;
  for (int i = 0; i < count; ++i)
    for (const auto& output : graph->node(i).output())
      if (!output.empty()) producer.emplace(output, i);

  std::vector<int> waiting(static_cast<size_t>(count), 0);
  std::vector<std::vector<int>> users(static_cast<size_t>(count));
  bool sorted = true;
  for (int i = 0; i < count; ++i) {
    for_each_use(graph->node(i), [&](const std::string& name) {
      const auto found = producer.find(name);
      if (found == producer.end()) return;
      sorted &= found->second < i;
      ++waiting[static_cast<size_t>(i)];
      users[static_cast<size_t>(found->second)].push_back(i);
    });
  }
  if (sorted) return;

  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < count; ++i)
    if (waiting[static_cast<size_t>(i)] == 0) ready.push(i);
  std::vector<int> order;
  std::vector<bool> placed(static_cast<size_t>(count), false);
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    placed[static_cast<size_t>(i)] = true;
    for (const int user : users[static_cast<size_t>(i)])
      if (--waiting[static_cast<size_t>(user)] == 0) ready.push(user);
  }
  for (int i = 0; i < count; ++i)
    if (!placed[static_cast<size_t>(i)]) order.push_back(i);

  std::vector<wire::NodeProto> nodes(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    nodes[static_cast<size_t>(i)].Swap(graph->mutable_node(order[static_cast<size_t>(i)]));
  for (int i = 0; i < count; ++i) nodes[static_cast<size_t>(i)].Swap(graph->mutable_node(i));
}

}  // namespace pfrt::onnx
