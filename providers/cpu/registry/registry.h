// SPDX-License-Identifier: Apache-2.0
//
// All kernel families: which row takes a node, and why none does. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>

#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

// All families in the order of registry.cc.
std::span<const std::span<const KernelRow>> kernels();
// The first row that takes the node, the last where it has_empty (empty.h), or nullptr with every
// candidate's reason in |reason|.
const KernelRow* find_kernel(const SnapshotNode& node, std::string* reason);
// Why |row|, or the first row that takes the node, does not do what is asked; empty when it does.
std::string refusal(const KernelRequest& request);
std::string refusal(const KernelRow& row, const KernelRequest& request);

// Why no kernel may touch the node, whatever the operator: strings, sequences, types not known.
// Empty when all is well.
std::string refuse_values(const pfrt_snapshot& snapshot, const SnapshotNode& node);

// "Conv 'c1'", or "Conv" when the node has no name.
std::string describe(const SnapshotNode& node);

}  // namespace pfrt::cpu
