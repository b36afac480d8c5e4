// SPDX-License-Identifier: Apache-2.0
//
// Structural checks and the printed form of graphs. Pure functions; thread-safe on graphs that
// nobody edits.
#pragma once

#include <string>

#include "core/ir/graph.h"

namespace pfrt {

// Finds every fault of the graph and its bodies: values that nothing produces, outputs that do not
// exist, unnamed operators, repeated inputs, initializers whose type contradicts the input of the
// same name, cycles. VALIDATION with a child for each fault; captures must be bound.
Status verify(const Graph& graph);

// A line for each node: "%y: float32[N,10] = Gemm(%x, %w, %b) {alpha=1} # fc1". Constants show type
// and shape only.
std::string print(const Graph& graph);

// "float32[N,3,224,224]", "sequence(float32)", "?" when nothing is known.
std::string type_text(const Type& type, const SymbolTable& symbols);

}  // namespace pfrt
