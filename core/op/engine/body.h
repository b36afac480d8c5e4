// SPDX-License-Identifier: Apache-2.0
//
// Inference inside the bodies of control-flow nodes. Pure; thread-safe on different graphs.
#pragma once

#include <functional>
#include <span>

#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

// Types of the outputs of |body|, a body of the inference's node. |inputs| replace the declared
// types of its inputs; there may be fewer.
Result<std::vector<Type>> infer_body(const Inference& inference, const Graph& body,
                                     std::span<const Type> inputs);

// Types of a body's outputs, given those of its inputs.
using BodyTypes = std::function<Result<std::vector<Type>>(std::span<const Type> inputs)>;

// Whether the canonical node runs its body once for each iteration: Loop, Scan, SequenceMap.
bool repeats_body(const Node& node);

// Types of the inputs of |body| that hold in every iteration of such a node: the first iteration's,
// made general until what the body hands on fits. Without |types_of| nothing is known of the shapes
// of carried values.
Result<std::vector<Type>> repeated_inputs(const Inference& inference, const Graph& body,
                                          const BodyTypes& types_of);

// The type that is certain for a value that has one of two types.
Type common_type(const Type& a, const Type& b);

// The first inputs of a node's body, and those that the body hands on to itself: inputs [first,
// first + count) come back as outputs [back, back + count).
struct BodyEntry {
  std::vector<Type> inputs;
  size_t first = 0, count = 0, back = 0;
};

// Types of the body's inputs in every iteration, and of its outputs.
struct RepeatedBody {
  BodyEntry entry;
  std::vector<Type> outputs;
};

// The types that inference of the node arrives at; entry.inputs hold in every iteration.
Result<RepeatedBody> repeated_body(const Inference& inference, const Graph& body);

// Whether a Scan has batches (opset 8), and the axis of slices of scan input or output |i|, batches
// apart.
int64_t scan_batches(const Node& node);
int64_t scan_axis(const Node& node, const char* list, size_t i);

// Checks opset and structure of the graph in attribute |name| of a node that runs it: it must have
// |inputs| inputs, none with a constant, and at least |outputs| outputs.
Status check_body(Rewriter& rewriter, std::string_view name, size_t inputs, size_t outputs);

}  // namespace pfrt
