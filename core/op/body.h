// SPDX-License-Identifier: Apache-2.0
//
// Inference inside the bodies of control-flow nodes. Pure; thread-safe on different graphs.
#pragma once

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

}  // namespace pfrt
