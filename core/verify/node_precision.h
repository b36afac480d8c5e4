// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of single nodes, as the option "node_precision" gives it. Pure functions;
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/exec/compiled_graph.h"

namespace pfrt {

// The hint for a word of the option "precision"; 0 for "fp32", and for "auto", where each node has
// its own.
pfrt_compile_hints precision_hint(std::string_view word);

// A node, by its name or that of a value it makes; of a node in a body these follow the name of the
// node around it (or of a value that one makes) and a '/', as in "loop/MatMul_3", for each level.
struct NamedPrecision {
  std::string node, word;
};
using NamedPrecisions = std::vector<NamedPrecision>;

// The names of the nodes of |graph| and its bodies, as a NamedPrecision has them.
std::vector<std::string> precision_names(const Graph& graph);

// Reads entries "NAME=WORD"; a name may have '=' in it.
Result<NamedPrecisions> named_precisions(const std::vector<std::string>& entries);

// Precisions of the nodes of |graph| and its bodies: the named one, else |others|. Names that no
// node has are added to |missing|, which may be null.
GraphPrecisions precisions_of(const Graph& graph, const NamedPrecisions& named,
                              pfrt_compile_hints others, std::vector<std::string>* missing);

}  // namespace pfrt
