// SPDX-License-Identifier: Apache-2.0
//
// Whether the nodes of a graph are nodes of operators that exist. Pure; thread-safe.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

// Every node's operator, version and arity, in bodies too; UNSUPPORTED_OPERATOR with one child a
// fault.
Status check_operators(const Graph& graph);

// Attributes whose type is not that of their name, in bodies too; VALIDATION each.
std::vector<Status> attribute_faults(const Graph& graph);

}  // namespace pfrt
