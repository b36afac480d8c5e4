// SPDX-License-Identifier: Apache-2.0
//
// Since when the standard has what nodes of the newest opset say, so that a saved graph asks no
// newer opset of its readers than it needs. Pure; thread-safe on different graphs.
#pragma once

#include "core/ir/graph.h"

namespace pfrt {

// Of ai.onnx: what older readers lack is then little, and canonical form has few forms older.
inline constexpr int64_t kLowestOpset = 18;

// The lowest opset of the node's domain, not below kLowestOpset for ai.onnx, at which |node|, whose
// values have inferred types, means what it does at the newest. Its bodies are not looked into.
// What the graph imports for a domain outside the standard; 1 where that is nothing.
int64_t lowest_opset(const Graph& graph, const Node& node);

// Leaves out the attributes that |opset| does not have yet; lowest_opset(...) <= |opset| says that
// each has its default.
void drop_newer_attributes(Node& node, int64_t opset);

}  // namespace pfrt
