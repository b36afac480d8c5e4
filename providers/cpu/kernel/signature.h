// SPDX-License-Identifier: Apache-2.0
//
// Checks that make functions share, so that no closure meets an absent tensor or an axis outside
// its tensor. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/status.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

// Inputs [0, |inputs|) and outputs [0, |outputs|) are there, with dimensions known.
Status need(const SnapshotNode& node, uint32_t inputs, uint32_t outputs);
// Input |i| is there and has one element.
Status need_scalar(const SnapshotNode& node, uint32_t i);
// Output |i| has the dimensions |dims|.
Status need_output_dims(const SnapshotNode& node, uint32_t i, std::span<const int64_t> dims);
// Input |i| has the type and dimensions of output 0.
Status need_like_output(const SnapshotNode& node, uint32_t i);

// Brings |axis| from [-rank, rank) to [0, rank).
Result<int64_t> axis_of(int64_t axis, size_t rank);

// "[2, 3]"
std::string dims_text(std::span<const int64_t> dims);
bool same_dims(std::span<const int64_t> a, std::span<const int64_t> b);
// Input |i| has the type and dimensions of output 0, so that a kernel may work in place.
bool like_output(const SnapshotNode& node, uint32_t i);

}  // namespace pfrt::cpu
