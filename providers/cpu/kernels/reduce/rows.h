// SPDX-License-Identifier: Apache-2.0
//
// The lists that make up the reduce family, one a source file. Constants of the program;
// thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel.h"

namespace pfrt::cpu {

std::span<const KernelRow> fold_rows();     // ReduceX
std::span<const KernelRow> arg_rows();      // ArgMax, ArgMin
std::span<const KernelRow> cum_sum_rows();  // CumSum, CumProd
std::span<const KernelRow> top_k_rows();

}  // namespace pfrt::cpu
