// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of whole graphs and of single nodes. Pure but for the state; thread-safe on
// different states.
#pragma once

#include <vector>

#include "core/op/engine/inference.h"

namespace pfrt {

// Infers the types of all values computed by |order| from those of their inputs in |state|, without
// changing the graph. Bodies are inferred with their captures. |graph| must be canonical.
Status infer(const Graph& graph, const std::vector<NodeId>& order, InferState& state);

// Infers the types of one node's outputs.
Status infer_node(const Graph& graph, const Node& node, InferState& state);

// A state with the graph's own facts: types of inputs and constants, contents of small constants.
InferState initial_state(const Graph& graph);

// A state for |body| with its own declarations and constants, and with |outer|'s knowledge of its
// captures.
InferState body_state(const Graph& body, const InferState& outer);

}  // namespace pfrt
