// SPDX-License-Identifier: Apache-2.0
//
// Nodes that need no step because their outputs lie in their input, or their inputs in their
// output, one after another: nothing but addresses tells them apart. Of nodes whose dimensions are
// all known. Pure; thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "providers/kit/node.h"

namespace pfrt::cpu {

// Whether output 0 is input 0's bytes under another shape.
bool only_renames(const SnapshotNode& node);
// Byte offsets in input 0 by output (of absent ones too): Split, and Slice and Gather of what is
// known beforehand, along outermost dimensions. nullopt for all else.
std::optional<std::vector<uint64_t>> parts_of_input(const SnapshotNode& node);
// Byte offsets in output 0 by input: Concat along an outermost dimension.
std::optional<std::vector<uint64_t>> parts_of_output(const SnapshotNode& node);

}  // namespace pfrt::cpu
