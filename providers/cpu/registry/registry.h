// SPDX-License-Identifier: Apache-2.0
//
// All kernel families: which row takes a node, and why none does. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// All families in the order of registry.cc.
std::span<const std::span<const KernelRow>> kernels();
// The first row of the node's operator, whatever else it takes: it knows what is true of the
// operator (kOptionalOutputs, kChecksInputs, in_place). nullptr where there is none.
const KernelRow* operator_row(const SnapshotNode& node);
// The row that runs a request: the first that takes the node, the last where it has_empty
// (empty.h), if it also does what else is asked. nullptr when it does not, or when no row takes the
// node; |reason| then says why, of each candidate. It may be null.
const KernelRow* find_kernel(const KernelRequest& request, std::string* reason);

// Whether the node's second input is a constant that some row of its operator packs: a weight.
bool has_weights(const SnapshotNode& node);

// Why no kernel may touch the node, whatever the operator: strings, sequences, types not known.
// Empty when all is well.
std::string refuse_values(const pfrt_snapshot& snapshot, const SnapshotNode& node);

// Pairs (input, output) of a node that are a cache: its kernel writes rows of it where it is, when
// the caller of the program gives one memory for both, and leaves the others as they are.
std::vector<std::pair<uint32_t, uint32_t>> caches(const SnapshotNode& node);

// "Conv 'c1'", or "Conv" when the node has no name.
std::string describe(const SnapshotNode& node);

}  // namespace pfrt::cpu
