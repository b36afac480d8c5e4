// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger and QLinearMatMul in dot products of vectors (dot_matmul.h): exact, as all sums of
// integers are. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::string refuse_matmul_integer_dots(const KernelRequest& node);
std::optional<PackedInput> pack_matmul_integer(const SnapshotNode& node);
Result<Kernel> make_matmul_integer_dots(const KernelRequest& node);

std::string refuse_qlinear_matmul_dots(const KernelRequest& node);
std::optional<PackedInput> pack_qlinear_matmul(const SnapshotNode& node);
Result<Kernel> make_qlinear_matmul_dots(const KernelRequest& node);

}  // namespace pfrt::cpu
