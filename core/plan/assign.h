// SPDX-License-Identifier: Apache-2.0
//
// Which provider runs each node, and in which order the nodes come so that few stages result.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/provider/provider.h"

namespace pfrt {

struct NodePlan {
  std::string reason;     // why its provider runs it
  std::string refused;    // who refused it, and why; empty when nobody did
  std::string precision;  // of its products, and why, where it has one of its own
  double est_ns = 0;
};

constexpr int kHost = -1;    // control flow, sequences, strings
constexpr int kNobody = -2;  // every provider refused it

struct Assignment {
  std::vector<int> owner;          // by snapshot index: provider, kHost or kNobody
  std::vector<NodePlan> nodes;     // by snapshot index
  std::vector<uint32_t> sequence;  // a topological order that keeps groups, and owners, together
};

// Whether an earlier provider of the list goes before a cheaper one.
enum class AssignBy { kCost, kPriority };

// |order| is topological; indices are positions in it. |host| marks nodes that the host runs,
// |splits| those at which a region must end, which therefore cannot be in a group. A node goes to
// the provider with the lowest estimate, or to the earlier one where estimates are closer than what
// is measured twice, where one is simulated, or where |by| says so. A group goes to its provider as
// a whole or not at all. By cost, nodes that a provider runs faster stay with their neighbours
// where that saves less than their values' way there and back.
Assignment assign(const Graph& graph, const std::vector<NodeId>& order,
                  const std::vector<Candidate>& candidates, const std::vector<Claims>& claims,
                  const std::vector<bool>& host, const std::vector<bool>& splits,
                  AssignBy by = AssignBy::kCost);

}  // namespace pfrt
