// SPDX-License-Identifier: Apache-2.0
//
// Operators that the host runs itself: sequences, optionals and strings. Control flow is in
// compiled.h, since it owns plans. Pure functions; thread-safe.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

struct RunControl;

namespace host {
struct HostOp;
}

// The operator of |node|; null: the host has none of its name.
const host::HostOp* find_host_op(const Node& node);

// |op| as find_host_op says. |inputs| has a null pointer for an absent input; |outputs| gets one
// value an output of the node. It stops when |control| says so.
Status run_host_op(const host::HostOp* op, const Graph& graph, const Node& node,
                   const std::vector<ValuePtr>& inputs, std::vector<ValuePtr>& outputs,
                   const RunControl& control);

}  // namespace pfrt
