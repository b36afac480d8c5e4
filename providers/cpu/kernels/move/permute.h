// SPDX-License-Identifier: Apache-2.0
//
// Rearrangements of dimensions that a strided copy does. A pure function; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// Copies input 0, seen as |dims|, with its dimensions in the order |perm|.
Result<Kernel> permute(const SnapshotNode& node, std::span<const int64_t> dims,
                       std::span<const int64_t> perm);

}  // namespace pfrt::cpu
