// SPDX-License-Identifier: Apache-2.0
//
// Rows of the elementwise operators: one output element depends on the elements at the same
// (broadcast) position. The rows are constants of the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// Unary, binary and variadic arithmetic, logic, selection and copies.
std::span<const KernelRow> unary_rows();
std::span<const KernelRow> activation_rows();
std::span<const KernelRow> binary_rows();
std::span<const KernelRow> variadic_rows();
std::span<const KernelRow> select_rows();
// Comparisons of two tensors, with a bool result.
std::span<const KernelRow> compare_kernels();
// Conversions between element types.
std::span<const KernelRow> cast_kernels();

}  // namespace pfrt::cpu
