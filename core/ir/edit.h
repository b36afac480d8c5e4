// SPDX-License-Identifier: Apache-2.0
//
// Edits of a graph whose effect reaches the bodies of its nodes. A body refers to an outer value by
// its name, so names in bodies follow. Each edit either succeeds completely or changes nothing,
// with VALIDATION and the reason. Externally synchronised, as the graph is.
#pragma once

#include <string_view>

#include "core/ir/graph.h"

namespace pfrt {

// Makes nodes other than |except|, bodies and graph outputs that use |from| use |to|. Where nodes
// make both, the values swap names if |from| is a graph output, so that the output keeps its name.
Status replace_uses(Graph& graph, ValueId from, ValueId to, NodeId except);

// Renames |id|, in bodies too. The name must not be in use.
Status rename_value(Graph& graph, ValueId id, std::string_view name);

// Whether anything makes, holds or uses the value.
bool in_use(const Graph& graph, ValueId id);

}  // namespace pfrt
