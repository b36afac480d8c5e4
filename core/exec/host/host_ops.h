// SPDX-License-Identifier: Apache-2.0
//
// Operators that the host runs itself: sequences, optionals and strings. Control flow is in
// compiled.h, since it owns plans. Thread-safe.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

struct RunControl;

namespace host {
struct HostOp;
class Prepared;
}  // namespace host

// The operator of |node|; null where the host has none of its name.
const host::HostOp* find_host_op(const Node& node);

// Runs |op|, which find_host_op returned. |inputs| has a null pointer for an absent input;
// |outputs| gets a value for each output of the node. The run stops when |control| says so.
// |prepared| is the node's, the same for all its runs.
Status run_host_op(const host::HostOp* op, const Graph& graph, const Node& node,
                   const std::vector<ValuePtr>& inputs, std::vector<ValuePtr>& outputs,
                   const RunControl& control, host::Prepared& prepared);

}  // namespace pfrt
