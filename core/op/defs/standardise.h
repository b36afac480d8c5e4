// SPDX-License-Identifier: Apache-2.0
//
// The way back from canonical form, or from the newest opset, to a graph that other runtimes read.
// Pure; thread-safe on different graphs.
#pragma once

#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

// Whether every node of |graph| and its bodies is canonical.
bool is_canonical(const Graph& graph);

// UNSUPPORTED naming a node, left by canonicalise, that no opset of the standard can say.
Status check_sayable(const Graph& graph);

// |graph|, which has the newest opset and inferred types, gets standard operators in place of the
// host's own, bodies without names or outputs from around them, and for each domain the lowest
// opset at which all nodes mean what they do. The nodes are canonical no longer. Fails as
// check_sayable does.
Status standardise(Graph& graph);

}  // namespace pfrt
