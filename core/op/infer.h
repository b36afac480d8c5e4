// SPDX-License-Identifier: Apache-2.0
//
// Drivers over the operator rows: validation against them, canonical form, and shape inference of
// whole graphs.
#pragma once

#include "core/base/os/progress.h"
#include "core/op/operator.h"

namespace pfrt {

// Every node's operator, version and arity, in bodies too; UNSUPPORTED_OPERATOR with one child a
// fault.
Status check_operators(const Graph& graph);

// Attributes whose type is not that of their name, in bodies too; VALIDATION each.
std::vector<Status> attribute_faults(const Graph& graph);

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

// Types of all values computed by |order| from what |state| holds of their inputs, without changing
// the graph. Bodies are inferred with their captures. |graph| must be canonical.
Status infer(const Graph& graph, const std::vector<NodeId>& order, InferState& state);

// One node.
Status infer_node(const Graph& graph, const Node& node, InferState& state);

// A state with what the graph itself says: types of inputs and constants, contents of small
// constants.
InferState initial_state(const Graph& graph);

// For each value: whether its dimensions follow from the dimensions (not the contents) of the
// graph's inputs, and whether its contents do (Shape and arithmetic on it).
struct Knowable {
  std::vector<bool> dims, data;
};
Knowable knowable(const Graph& graph, const std::vector<NodeId>& order);

}  // namespace pfrt
