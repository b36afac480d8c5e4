// SPDX-License-Identifier: Apache-2.0
//
// Operands of a loop with one element a channel. A loop over images in nChw16c reads the 16
// elements of a block of channels again for each pixel, which takes code of its own; in row-major
// images such an operand is a scalar of a run instead. Pure; thread-safe.
#pragma once

#include <vector>

#include "providers/cpu/loop/loop_plan.h"
#include "providers/kit/snapshot_copy.h"

namespace pfrt::cpu {

// Elements of a block of channels.
inline constexpr int64_t kChannelBlock = 16;

// Tells for each input slot of |plan| whether the value has dimensions [C, 1, ...] or [N, C, 1,
// ...] where the loop's have [N, C, ...], and C is known and a multiple of 16.
std::vector<bool> channel_slots(const SnapshotCopy& snapshot, const LoopPlan& plan);

}  // namespace pfrt::cpu
