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

// A node, by its name or that of a value it makes.
struct NamedPrecision {
  std::string node, word;
};
using NamedPrecisions = std::vector<NamedPrecision>;

// Reads entries "NAME=WORD"; a name may have '=' in it.
Result<NamedPrecisions> named_precisions(const std::vector<std::string>& entries);

// Precisions by node id of |graph|: the named one, else |others|. Names that no node has are added
// to |missing|, which may be null.
std::vector<NodePrecision> precisions_of(const Graph& graph, const NamedPrecisions& named,
                                         pfrt_compile_hints others,
                                         std::vector<std::string>* missing);

}  // namespace pfrt
