// SPDX-License-Identifier: Apache-2.0
//
// The make and refuse functions of the move family's table, by file. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// view.cc: rearrangements that a strided copy does
Result<Kernel> make_reshape(const KernelRequest& node);
Result<Kernel> make_transpose(const KernelRequest& node);
Result<Kernel> make_expand(const KernelRequest& node);
Result<Kernel> make_tile(const KernelRequest& node);

// space.cc
Result<Kernel> make_depth_to_space(const KernelRequest& node);
Result<Kernel> make_space_to_depth(const KernelRequest& node);

// concat_split.cc
Result<Kernel> make_concat(const KernelRequest& node);
std::string refuse_concat_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_concat_nchw16c(const KernelRequest& node, Nchw16cSides sides);
Result<Kernel> make_split(const KernelRequest& node);

// slice_pad.cc
Result<Kernel> make_slice(const KernelRequest& node);
Result<Kernel> make_pad(const KernelRequest& node);
Result<Kernel> make_reverse_sequence(const KernelRequest& node);

// gather.cc
Result<Kernel> make_gather(const KernelRequest& node);
Result<Kernel> make_gather_elements(const KernelRequest& node);
Result<Kernel> make_gather_nd(const KernelRequest& node);

// scatter.cc
Result<Kernel> make_scatter_elements(const KernelRequest& node);
Result<Kernel> make_scatter_nd(const KernelRequest& node);
std::string refuse_scatter(const KernelRequest& node);

// in_place.cc
std::optional<InPlace> transpose_in_place(const SnapshotNode& node);
std::optional<InPlace> split_in_place(const SnapshotNode& node);
std::optional<InPlace> slice_in_place(const SnapshotNode& node);
std::optional<InPlace> gather_in_place(const SnapshotNode& node);
std::optional<InPlace> concat_in_place(const SnapshotNode& node);

}  // namespace pfrt::cpu
