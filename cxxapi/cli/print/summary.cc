// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/print/summary.h"

#include <algorithm>

#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

using pyflame_rt::Graph;
using pyflame_rt::NodeArg;

void count(const Graph& graph, OperatorCounts* counts) {
  for (const auto& node : graph.nodes()) {
    const std::string& domain = node->domain();
    ++(*counts)[domain.empty() ? node->op_type() : domain + "." + node->op_type()];
    for (const auto& [name, value] : node->attributes()) {
      const auto* body = std::get_if<pyflame_rt::GraphHandle>(&value);
      if (body != nullptr) count(Graph(*body), counts);
    }
  }
}

size_t constant_nodes(const Graph& graph) {
  const OperatorCounts counts = count_operators(graph);
  const auto found = counts.find("Constant");
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

OperatorCounts count_operators(const Graph& graph) {
  OperatorCounts counts;
  count(graph, &counts);
  return counts;
}

size_t count_nodes(const Graph& graph) {
  size_t nodes = 0;
  for (const auto& [name, count] : count_operators(graph)) nodes += count;
  return nodes;
}

std::string nodes_text(size_t all, size_t outside_bodies) {
  if (all == outside_bodies) return std::to_string(all);
  return std::to_string(all) + ": " + std::to_string(outside_bodies) + " in the graph, " +
         std::to_string(all - outside_bodies) + " in bodies of them";
}

std::vector<std::pair<std::string, size_t>> ranked(const OperatorCounts& counts) {
  std::vector<std::pair<std::string, size_t>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

std::vector<SummaryLine> summarise(const pyflame_rt::Model& model, const Graph& graph) {
  const auto meta = model.metadata();
  const auto stats = model.stats();
  std::vector<SummaryLine> out = {{"format", model.format()}, {"graph", meta.graph_name}};
  if (!meta.producer_name.empty()) {
    const std::string& version = meta.producer_version;
    out.emplace_back("producer", meta.producer_name + (version.empty() ? "" : " " + version));
  }
  std::string opsets;
  for (const auto& [domain, version] : graph.opsets()) {
    opsets += (opsets.empty() ? "" : ", ") + (domain.empty() ? "ai.onnx" : domain) + " " +
              std::to_string(version);
  }
  out.emplace_back("opsets", opsets);
  for (const auto& input : graph.inputs()) {
    out.emplace_back("input", input.name + ": " + describe(NodeArg(input)) +
                                  (input.has_initializer ? ", has a default" : ""));
  }
  for (const auto& output : graph.outputs()) {
    out.emplace_back("output", output.name + ": " + describe(NodeArg(output)));
  }
  out.emplace_back("nodes", nodes_text(stats.node_count, graph.nodes().size()));
  out.emplace_back("parameters", count_text(static_cast<double>(stats.parameter_count)) + " (" +
                                     std::to_string(stats.parameter_count) + ") in " +
                                     std::to_string(stats.initializer_count) +
                                     " initializers and " + std::to_string(constant_nodes(graph)) +
                                     " Constant nodes");
  out.emplace_back("bytes", bytes_text(stats.parameter_bytes));
  out.emplace_back("import", time_text(stats.import_time_ms / 1e3));
  for (const auto& [key, value] : meta.custom_metadata) {
    out.emplace_back("metadata", key + " = " + one_line(value));
  }
  for (const std::string& warning : stats.warnings) out.emplace_back("warning", warning);
  return out;
}

}  // namespace cli
