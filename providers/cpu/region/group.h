// SPDX-License-Identifier: Apache-2.0
//
// Divides a region into units in an order that runs: connected elementwise nodes of one shape
// become one loop, every other node stands alone. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "providers/cpu/region/expression.h"
#include "providers/kit/snapshot_copy.h"

namespace pfrt::cpu {

// What one generated loop computes. Values by slot: first |inputs|, then |outputs|.
struct LoopPlan {
  static constexpr size_t kMostPointers = 32;
  Expression expression;
  std::vector<uint32_t> inputs;  // value indices
  std::vector<bool> scalar;      // of each input: one element, broadcast
  std::vector<uint32_t> outputs;
};

struct Unit {
  std::vector<uint32_t> nodes;   // in topological order
  std::optional<LoopPlan> loop;  // absent: one node, one kernel
};

// |nodes| in topological order; |outputs| are the values used outside. No loop has more terms alive
// at once than |register_limit|; 0 makes no loops.
std::vector<Unit> group(const SnapshotCopy& snapshot, std::span<const uint32_t> nodes,
                        std::span<const uint32_t> outputs, int register_limit);

}  // namespace pfrt::cpu
