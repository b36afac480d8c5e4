// SPDX-License-Identifier: Apache-2.0
//
// Counts the contents of a graph. All that print or return counts use one rule: bodies of control
// flow are counted with the graph around them, and a Constant is a node whose value is a parameter
// like an initializer's. Pure functions.
#pragma once

#include <cstdint>

#include "core/ir/graph.h"

namespace pfrt {

struct GraphCounts {
  uint64_t nodes = 0;
  uint64_t initializers = 0;
  uint64_t parameters = 0;  // elements of initializers and of Constant nodes
  uint64_t parameter_bytes = 0;
};

GraphCounts count(const Graph& graph);
// GraphCounts::nodes alone.
uint64_t count_nodes(const Graph& graph);

}  // namespace pfrt
