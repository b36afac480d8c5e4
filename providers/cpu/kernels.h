// SPDX-License-Identifier: Apache-2.0
//
// Lists over the kernel families, for the provider: rows one after another, and why a value cannot
// be had. Pure functions; thread-safe.
#pragma once

#include <string>

#include "providers/cpu/kernel.h"

namespace pfrt::cpu {

// Why no kernel may touch the node, whatever the operator: strings, sequences, types not known.
// Empty when all is well.
std::string refuse_values(const pfrt_snapshot& snapshot, const SnapshotNode& node);

// "Conv 'c1'", or "Conv" when the node has no name.
std::string describe(const SnapshotNode& node);

}  // namespace pfrt::cpu
