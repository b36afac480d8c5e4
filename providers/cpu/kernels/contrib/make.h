// SPDX-License-Identifier: Apache-2.0
//
// The make and refuse functions of this family's table. Pure functions; thread-safe.
#pragma once

#include <string>

#include "providers/cpu/row/kernel.h"

namespace pfrt::cpu {

Result<Kernel> make_cdist(const SnapshotNode& node);
Result<Kernel> make_inverse(const SnapshotNode& node);
Result<Kernel> make_repeat_block(const SnapshotNode& node);
Result<Kernel> make_bifurcation(const SnapshotNode& node);
Result<Kernel> make_time_warping(const SnapshotNode& node);
Result<Kernel> make_hash(const SnapshotNode& node);
Result<Kernel> make_crop(const SnapshotNode& node);
Result<Kernel> make_bnb4(const SnapshotNode& node);
Result<Kernel> make_gather_block(const SnapshotNode& node);

}  // namespace pfrt::cpu
