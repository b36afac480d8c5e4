// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger with constant columns, in int16 dot products of vectors: exact, as all sums of
// integers are. Pure functions; thread-safe.
#pragma once

#include <optional>

#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

std::optional<PackedInput> pack_matmul_integer(const SnapshotNode& node);
Result<Kernel> make_packed_matmul_integer(const KernelRequest& node, const PackedInput& packed);

}  // namespace pfrt::cpu
