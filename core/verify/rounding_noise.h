// SPDX-License-Identifier: Apache-2.0
//
// Estimates what rounding may do to a graph's results: the type that rounds most on the way to an
// output, and the graph and its inputs perturbed by about their own rounding, so that a run shows
// how far results move when nothing but rounding differs. Pure; thread-safe.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

struct OutputTraits {
  bool random = false;   // not a function of the inputs
  double tolerance = 0;  // of correct rewrites, relative to the largest element; 0 = exact
};
// Has one entry for each graph output.
std::vector<OutputTraits> output_traits(const Graph& graph);

// A copy whose floating-point constants are perturbed by a few roundings, in bodies too. Whole
// numbers are meant exactly and stay, as do constants that give shapes.
Result<std::shared_ptr<Graph>> shaken(const Graph& graph, uint64_t seed);
// Perturbs a value. Values with different seeds do not move alike, as those that nearly cancel must
// not.
Result<ValuePtr> shaken(const ValuePtr& value, uint64_t seed);

}  // namespace pfrt
