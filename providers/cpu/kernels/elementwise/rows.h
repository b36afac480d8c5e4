// SPDX-License-Identifier: Apache-2.0
//
// The lists that make up the elementwise family, one a source file. Constants of the program;
// thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel.h"

namespace pfrt::cpu {

std::span<const KernelRow> unary_rows();
std::span<const KernelRow> activation_rows();
std::span<const KernelRow> binary_rows();
std::span<const KernelRow> variadic_rows();
std::span<const KernelRow> select_rows();

}  // namespace pfrt::cpu
