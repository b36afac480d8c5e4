// SPDX-License-Identifier: Apache-2.0
//
// Canonical form of whole graphs.
#pragma once

#include <string>
#include <vector>

#include "core/base/os/progress.h"
#include "core/ir/graph.h"

namespace pfrt {

// Declared types that inference contradicts: their number, and a sentence on the first.
struct Contradicted {
  uint64_t count = 0;
  std::string first;
};

// Optional observers of a canonicalisation.
struct CanonicaliseWatch {
  const Progress* progress = nullptr;  // stops it
  // Takes faults of nodes instead of ending at the first, and contradictions between declared and
  // inferred types. The graph is of no further use then.
  std::vector<Status>* faults = nullptr;
  Contradicted* contradicted = nullptr;
};

// Rewrites |graph| (and bodies) into canonical form and infers types along the way. The types found
// replace those declared in the graph's values; declared types that follow from no node stay (those
// of inputs, and kinds and element types that inference does not know). |graph| must be verified
// and have a topological order.
Status canonicalise(Graph& graph, const CanonicaliseWatch& watch = {});

}  // namespace pfrt
