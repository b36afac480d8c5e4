// SPDX-License-Identifier: Apache-2.0
//
// Divides a region into fusion groups, ordered so that each follows what it reads: a node and its
// epilogue, which may begin with the pooling of its output and end with a normalisation of rows,
// connected elementwise nodes of one shape, or a node alone. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "providers/cpu/loop/loop_plan.h"
#include "providers/kit/snapshot_copy.h"

namespace pfrt::cpu {

inline constexpr size_t kMostEpilogue = 63;  // nodes after a head

// Nodes that one step computes.
struct FusionGroup {
  std::vector<uint32_t> nodes;   // in topological order
  std::optional<LoopPlan> loop;  // absent: one node, one kernel
  bool has_head = false;         // the first node runs by its kernel, and the loop on its output
  bool has_pool = false;  // the kernel gives the pooling of its output, which is the second node
  bool has_norm = false;  // the last node normalises rows of what is before it

  size_t before_loop() const { return size_t{has_head} + size_t{has_pool}; }
};

// Divides |nodes|, which are in topological order, into groups; |outputs| are the values used
// outside. No loop has more terms alive at once than |register_limit|; 0 makes no loops. Without
// |joins| each node is a group.
std::vector<FusionGroup> find_fusion_groups(const SnapshotCopy& snapshot,
                                            std::span<const uint32_t> nodes,
                                            std::span<const uint32_t> outputs, int register_limit,
                                            bool joins = true);

}  // namespace pfrt::cpu
