// SPDX-License-Identifier: Apache-2.0
//
// Inference inside the bodies of control-flow nodes. Pure; thread-safe on different graphs.
#pragma once

#include <functional>
#include <span>

#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

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

// What is certain of a value that is one of the two.
Type common_type(const Type& a, const Type& b);

// What enters the body of the node at hand first, and which of it the body hands on to itself:
// inputs [first, first + count) come back as outputs [back, back + count).
struct BodyEntry {
  std::vector<Type> inputs;
  size_t first = 0, count = 0, back = 0;
};

// Types of the body's inputs in every iteration, and with those of its outputs.
struct RepeatedBody {
  BodyEntry entry;
  std::vector<Type> outputs;
};

// As inference of the node settles them; entry.inputs are those of every iteration.
Result<RepeatedBody> repeated_body(const Inference& inference, const Graph& body);

// Of a Scan: whether it has batches (opset 8), and the axis that scan input or output |i| is cut
// along, batches apart.
int64_t scan_batches(const Node& node);
int64_t scan_axis(const Node& node, const char* list, size_t i);

// Opset and structure of the graph in attribute |name| of a node that runs it: |inputs| inputs,
// none with a value of its own, and at least |outputs| outputs.
Status check_body(Rewriter& rewriter, std::string_view name, size_t inputs, size_t outputs);

}  // namespace pfrt
