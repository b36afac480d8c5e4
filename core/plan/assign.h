// SPDX-License-Identifier: Apache-2.0
//
// Assigns each node to a provider, and orders the nodes so that few stages result.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/provider/provider.h"

namespace pfrt {

struct NodePlan {
  std::string reason;     // why its provider was chosen
  std::string refused;    // who refused it, and why; empty when nobody did
  std::string precision;  // of its products and why, where not the session's
  double est_ns = 0;
};

constexpr int kHost = -1;    // control flow, sequences, strings
constexpr int kNobody = -2;  // every provider refused it

struct Assignment {
  std::vector<int> owner;          // by snapshot index: provider, kHost or kNobody
  std::vector<NodePlan> nodes;     // by snapshot index
  std::vector<uint32_t> sequence;  // topological; keeps groups, and owners, together
};

// Decides whether an earlier provider of the list goes before a cheaper one.
enum class AssignBy { kCost, kPriority };

// |order| is topological; indices are positions in it. |host| marks nodes that the host runs,
// |splits| those at which a region must end, which therefore cannot be in a group. A node goes to
// the provider with the lowest estimate, or to the earlier one where the estimates differ by no
// more than measurements do, where one is simulated, or where |by| says so. A group goes to its
// provider unsplit or not at all. By cost, nodes that another provider runs faster stay with their
// neighbours where the gain is less than the cost of moving their values there and back.
Assignment assign(const Graph& graph, const std::vector<NodeId>& order,
                  const std::vector<Candidate>& candidates, const std::vector<Claims>& claims,
                  const std::vector<bool>& host, const std::vector<bool>& splits,
                  AssignBy by = AssignBy::kCost);

}  // namespace pfrt
