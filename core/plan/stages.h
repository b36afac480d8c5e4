// SPDX-License-Identifier: Apache-2.0
//
// Divides a graph among its providers: every node goes to a provider or to the host (assign.h), and
// consecutive nodes of one owner form a stage. Stages are convex because they are stretches of one
// topological order. A stage ends where the dimensions of later values can only be known by running
// it.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/os/progress.h"
#include "core/ir/graph.h"
#include "core/plan/assign.h"
#include "core/provider/provider.h"
#include "core/provider/snapshot.h"

namespace pfrt {

struct Stage {
  int provider = -1;            // index into the candidates; -1 = host
  std::vector<uint32_t> nodes;  // indices into the snapshot
  std::vector<ValueId> inputs,
      outputs;  // of a provider's stage: values from outside (no constants), values used outside
  bool starts_segment = false;  // whether dimensions of its values need earlier stages' results
};

struct Partition {
  std::vector<Stage> stages;
  std::vector<NodePlan> nodes;  // by snapshot index
};

// A refusal learnt while compiling: snapshot node, index of the candidate, and reason.
struct Refusal {
  uint32_t node;
  int provider;
  std::string reason;
};

// All nodes that no provider runs are reported at once (UNSUPPORTED_OPERATOR, one child each). A
// provider that fails to say what it claims is the status's culprit. |progress| (null: nobody) may
// stop it between providers.
Result<Partition> partition(const Graph& graph, const std::vector<NodeId>& order,
                            const Snapshot& snapshot, const std::vector<Candidate>& candidates,
                            const std::vector<Refusal>& refusals, AssignBy by = AssignBy::kCost,
                            const Progress* progress = nullptr);

}  // namespace pfrt
