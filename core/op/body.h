// SPDX-License-Identifier: Apache-2.0
//
// Inference inside the bodies of control-flow nodes. Pure; thread-safe on different graphs.
#pragma once

#include <functional>
#include <span>

#include "core/op/infer.h"

namespace pfrt {

// A state for |body| that knows its own declarations and constants, and of its captures what
// |outer| knows.
InferState body_state(const Graph& body, const InferState& outer);

// Types of the outputs of |body|, a body of the node at hand. |inputs| replace what the body
// declares of its inputs; fewer are allowed.
Result<std::vector<Type>> infer_body(const Inference& inference, const Graph& body,
                                     std::span<const Type> inputs);

// Types of a body's outputs, given those of its inputs.
using BodyTypes = std::function<Result<std::vector<Type>>(std::span<const Type> inputs)>;

// Whether the node, which is canonical, runs its body once an iteration: Loop, Scan, SequenceMap.
bool repeats_body(const Node& node);

// The types that the inputs of |body| have in every iteration of such a node: what enters first,
// made general until what the body hands on fits it. Without |types_of| nothing is known of the
// shapes of what is carried.
Result<std::vector<Type>> repeated_inputs(const Inference& inference, const Graph& body,
                                          const BodyTypes& types_of);

// Opset and structure of the graph in attribute |name| of a node that runs it: |inputs| inputs,
// none with a value of its own, and at least |outputs| outputs.
Status check_body(Rewriter& rewriter, std::string_view name, size_t inputs, size_t outputs);

}  // namespace pfrt
