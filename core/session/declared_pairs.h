// SPDX-License-Identifier: Apache-2.0
//
// Pairs of a state that a model itself declares. They are metadata of its graph, so that every copy
// and every file of it has them: the key "pyflame_rt.state.<input>", and as value the way of growth
// and the output, "grows:2 present". Pure functions; thread-safe.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"
#include "core/session/state_pair.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {

// Adds |pair|, or replaces that of its input.
Status declare_pair(Graph& graph, const pfrt_state_pair& pair);
// The pairs whose input and output the graph has: a part of a graph need not have all.
// INVALID_MODEL for metadata of such a key that means nothing.
Result<std::vector<StatePair>> declared_pairs(const Graph& graph);

}  // namespace pfrt
