// SPDX-License-Identifier: Apache-2.0
//
// Cutting a graph at values. Pure function; thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

// The part of |graph| that computes |outputs| from |inputs|, a graph of its own with the same ids;
// constants are shared. |inputs| are values of any kind, which nothing makes there; inputs of
// |graph| that the part needs besides are its inputs too, after them. What it does not need is not
// there, but values keep their types. INVALID_ARGUMENT for a value that is there twice, or an input
// that nothing of the part reads; UNSUPPORTED for a body.
Result<std::shared_ptr<Graph>> extract(const Graph& graph, const std::vector<ValueId>& inputs,
                                       const std::vector<ValueId>& outputs);

}  // namespace pfrt
