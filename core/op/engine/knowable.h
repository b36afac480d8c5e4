// SPDX-License-Identifier: Apache-2.0
//
// Facts about values that a run's signature tells before they are computed. Pure; thread-safe.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

// For each value: whether its dimensions follow from the dimensions (not the contents) of the
// graph's inputs, and whether its contents do (Shape and arithmetic on it).
struct Knowable {
  std::vector<bool> dims, data;
};
Knowable knowable(const Graph& graph, const std::vector<NodeId>& order);

}  // namespace pfrt
