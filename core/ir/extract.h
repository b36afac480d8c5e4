// SPDX-License-Identifier: Apache-2.0
//
// Cuts a graph at values. Pure function; thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

// The part of |graph| that computes |outputs| from |inputs|, as a separate graph with the same ids;
// constants are shared. |inputs| are any values; nothing makes them in the part. Other inputs of
// |graph| that the part needs are its inputs too, after them. Everything else is left out, but
// values keep their types. INVALID_ARGUMENT for a value named twice, or an input that nothing in
// the part reads; UNSUPPORTED for a body.
Result<std::shared_ptr<Graph>> extract(const Graph& graph, const std::vector<ValueId>& inputs,
                                       const std::vector<ValueId>& outputs);

}  // namespace pfrt
