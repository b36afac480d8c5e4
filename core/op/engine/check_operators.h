// SPDX-License-Identifier: Apache-2.0
//
// Checks that the nodes of a graph have existing operators. Pure; thread-safe.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

// Checks every node's operator, version and arity, in bodies too; UNSUPPORTED_OPERATOR with a child
// for each fault.
Status check_operators(const Graph& graph);

// Finds attributes whose type is not that of their name, in bodies too; a VALIDATION error for
// each.
std::vector<Status> attribute_faults(const Graph& graph);

}  // namespace pfrt
