// SPDX-License-Identifier: Apache-2.0
//
// Edits of a graph whose effect reaches the bodies of its nodes. A body means an outer value by its
// name, so that names in bodies follow. Each either succeeds as a whole or changes nothing;
// VALIDATION says why. Externally synchronised, as the graph is.
#pragma once

#include <string_view>

#include "core/ir/graph.h"

namespace pfrt {

// Nodes but |except|, bodies and graph outputs that use |from| use |to|. Where nodes make both, a
// graph output keeps its name: the values swap theirs.
Status replace_uses(Graph& graph, ValueId from, ValueId to, NodeId except);

// |id| has another name, in bodies too. The name must not be in use.
Status rename_value(Graph& graph, ValueId id, std::string_view name);

// Whether anything makes, holds or uses the value.
bool in_use(const Graph& graph, ValueId id);

}  // namespace pfrt
