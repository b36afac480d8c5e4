// SPDX-License-Identifier: Apache-2.0
//
// Nodes without elements to work on. A node with an empty operand or result runs as the reference
// row of its operator, by itself: no other row is made for dimensions of 0. A node with nothing but
// empty results does not run at all, unless it may fail because of its inputs' contents. Pure
// functions; thread-safe.
#pragma once

#include "providers/cpu/kernel/row.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

// Whether an input or output is known to have no elements. Lists after input 0 do not count: as a
// list of axes, or an input that is left out, they change nothing of the work.
bool has_empty(const SnapshotNode& node);
// Whether a run of the node would change nothing and could refuse nothing. |row| is a row of its
// operator.
bool is_idle(const SnapshotNode& node, const KernelRow* row);

}  // namespace pfrt::cpu
