// SPDX-License-Identifier: Apache-2.0
//
// The make and refuse functions of the move family's table, by file. Pure functions; thread-safe.
#pragma once

#include <string>

#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

// view.cc: rearrangements that a strided copy does
Result<Kernel> make_reshape(const SnapshotNode& node);
Result<Kernel> make_transpose(const SnapshotNode& node);
Result<Kernel> make_expand(const SnapshotNode& node);
Result<Kernel> make_tile(const SnapshotNode& node);
Result<Kernel> make_depth_to_space(const SnapshotNode& node);
Result<Kernel> make_space_to_depth(const SnapshotNode& node);

// join.cc
Result<Kernel> make_concat(const SnapshotNode& node);
std::string refuse_concat_blocked(const SnapshotNode& node, Blocked sides);
Result<Kernel> make_concat_blocked(const SnapshotNode& node, Blocked sides);
Result<Kernel> make_split(const SnapshotNode& node);

// cut.cc
Result<Kernel> make_slice(const SnapshotNode& node);
Result<Kernel> make_pad(const SnapshotNode& node);
Result<Kernel> make_reverse_sequence(const SnapshotNode& node);

// gather.cc
Result<Kernel> make_gather(const SnapshotNode& node);
Result<Kernel> make_gather_elements(const SnapshotNode& node);
Result<Kernel> make_gather_nd(const SnapshotNode& node);

// scatter.cc
Result<Kernel> make_scatter_elements(const SnapshotNode& node);
Result<Kernel> make_scatter_nd(const SnapshotNode& node);
std::string refuse_scatter(const SnapshotNode& node);

}  // namespace pfrt::cpu
