// SPDX-License-Identifier: Apache-2.0
//
// Turns canonical form, or the newest opset, back into a graph that other runtimes read. Pure;
// thread-safe on different graphs.
#pragma once

#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

// Whether every node of |graph| and its bodies is canonical.
bool is_canonical(const Graph& graph);

// UNSUPPORTED, naming a node from canonicalise that no opset of the standard can express.
Status check_sayable(const Graph& graph);

// Gives |graph|, which has the newest opset and inferred types, standard operators in place of the
// host's own, bodies without names or outputs from around them, and for each domain the lowest
// opset at which all nodes have their meaning. The nodes are then no longer canonical. Fails as
// check_sayable does.
Status standardise(Graph& graph);

}  // namespace pfrt
