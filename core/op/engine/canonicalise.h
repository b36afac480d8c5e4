// SPDX-License-Identifier: Apache-2.0
//
// Canonical form of whole graphs.
#pragma once

#include <string>
#include <vector>

#include "core/base/os/progress.h"
#include "core/ir/graph.h"

namespace pfrt {

// Declared types that inference contradicts: how many, and a sentence on the first.
struct Contradicted {
  uint64_t count = 0;
  std::string first;
};

// Who follows a canonicalisation, all of it optional.
struct CanonicaliseWatch {
  const Progress* progress = nullptr;  // stops it
  // Takes faults of nodes instead of ending at the first, and where a value's declared type
  // contradicts what is inferred. The graph is of no further use then.
  std::vector<Status>* faults = nullptr;
  Contradicted* contradicted = nullptr;
};

// Rewrites |graph| (and bodies) into canonical form and infers types along the way. Types found are
// stored in the graph's values, in place of those declared: of these, what follows from no node
// (inputs', and kinds and element types that inference does not know) stays. |graph| must be
// verified and have a topological order.
Status canonicalise(Graph& graph, const CanonicaliseWatch& watch = {});

}  // namespace pfrt
