// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of whole graphs and of single nodes. Pure but for the state; thread-safe on
// different states.
#pragma once

#include <vector>

#include "core/op/engine/inference.h"

namespace pfrt {

// Types of all values computed by |order| from what |state| holds of their inputs, without changing
// the graph. Bodies are inferred with their captures. |graph| must be canonical.
Status infer(const Graph& graph, const std::vector<NodeId>& order, InferState& state);

// One node.
Status infer_node(const Graph& graph, const Node& node, InferState& state);

// A state with what the graph itself says: types of inputs and constants, contents of small
// constants.
InferState initial_state(const Graph& graph);

// A state for |body| that knows its own declarations and constants, and of its captures what
// |outer| knows.
InferState body_state(const Graph& body, const InferState& outer);

}  // namespace pfrt
