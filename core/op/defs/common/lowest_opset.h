// SPDX-License-Identifier: Apache-2.0
//
// The oldest opset at which a node means the same as at the newest one. A saved graph imports that
// opset, so that older readers can load it too. Pure; thread-safe on different graphs.
#pragma once

#include "core/ir/graph.h"

namespace pfrt {

// The lowest opset that lowest_opset() returns for ai.onnx. Few readers stop before it, and few
// canonical forms can be written at an older one.
inline constexpr int64_t kLowestOpset = 18;

// The lowest opset of |node|'s domain at which it means the same as at the newest one; for ai.onnx
// at least kLowestOpset. The types of the node's values must be inferred. Nodes of its bodies are
// not considered. For a domain outside the standard it is the opset that the graph imports, or 1 if
// it imports none.
int64_t lowest_opset(const Graph& graph, const Node& node);

// Removes the attributes that |opset| does not have yet. |opset| is at least lowest_opset(...), so
// each of them has its default and the node's meaning stays.
void drop_newer_attributes(Node& node, int64_t opset);

}  // namespace pfrt
