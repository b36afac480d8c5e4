// SPDX-License-Identifier: Apache-2.0
//
// Summaries of a model in lines for people. Pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <pyflame_rt/model_io.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cli {

using OperatorCounts = std::map<std::string, size_t>;
// Counts each operator, bodies of control flow included.
OperatorCounts count_operators(const pyflame_rt::Graph& graph);
// Number of nodes in the graph and its bodies.
size_t count_nodes(const pyflame_rt::Graph& graph);
// Writes "692: 5 in the graph, 687 in bodies of them".
std::string nodes_text(size_t all, size_t outside_bodies);
// Sorts the counts, the most frequent first.
std::vector<std::pair<std::string, size_t>> ranked(const OperatorCounts& counts);

using SummaryLine = std::pair<std::string, std::string>;
// Summarises a model as lines "format", "graph", inputs and outputs, "nodes" and so on; operators
// are apart. Nodes, operators and initializers include those of bodies, as in Model::stats.
std::vector<SummaryLine> summarise(const pyflame_rt::Model& model, const pyflame_rt::Graph& graph);

}  // namespace cli
