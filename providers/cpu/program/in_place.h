// SPDX-License-Identifier: Apache-2.0
//
// Nodes that need no step: their outputs are sub-buffers of their input's buffer, or their inputs
// are sub-buffers of their output's. For nodes whose dimensions are all known. Pure; thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "providers/kit/node.h"

namespace pfrt::cpu {

// Whether output 0 is input 0's bytes under another shape.
bool only_renames(const SnapshotNode& node);
// Byte offsets in input 0 by output (of absent ones too): Split, and Slice and Gather of what is
// known beforehand, along outermost dimensions. nullopt for all else.
std::optional<std::vector<uint64_t>> sub_buffers_of_input(const SnapshotNode& node);
// Byte offsets in output 0 by input: Concat along an outermost dimension.
std::optional<std::vector<uint64_t>> sub_buffers_of_output(const SnapshotNode& node);

}  // namespace pfrt::cpu
