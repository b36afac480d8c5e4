// SPDX-License-Identifier: Apache-2.0
//
// Patterns of nodes for authors of passes outside of core: named nodes, edges between them, a root.
// They match graphs of any form. Pure; thread-safe on graphs that nobody edits.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

class Pattern {
 public:
  static constexpr uint32_t kAnyInput = UINT32_MAX;

  Status add_node(std::string_view op, std::string_view domain, std::string_view name);
  Status add_edge(std::string_view from, uint32_t output, std::string_view to, uint32_t input);
  Status set_root(std::string_view name);

  // Finds all matches, each with its nodes in the order in which they were added.
  Result<std::vector<std::vector<NodeId>>> find_all(const Graph& graph) const;
  // The index of the pattern's node |name|; NOT_FOUND lists the nodes there are.
  Result<size_t> index_of(std::string_view name) const;

 private:
  struct PatternNode {
    std::string op, domain, name;
  };
  struct Edge {
    size_t from, to;
    uint32_t output, input;
  };
  class Search;
  std::vector<PatternNode> nodes_;
  std::vector<Edge> edges_;
  size_t root_ = SIZE_MAX;
};

// Whether all outputs of |node| together have exactly one use, by a node.
bool has_single_consumer(const Graph& graph, const Node& node);

}  // namespace pfrt
