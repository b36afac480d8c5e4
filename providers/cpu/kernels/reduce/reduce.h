// SPDX-License-Identifier: Apache-2.0
//
// Rows of the operators that reduce axes: ReduceX, ArgMax and ArgMin, CumSum, CumProd and TopK. The
// rows are constants of the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> reduce_rows();   // ReduceX
std::span<const KernelRow> arg_rows();      // ArgMax, ArgMin
std::span<const KernelRow> cum_sum_rows();  // CumSum, CumProd
std::span<const KernelRow> top_k_rows();

}  // namespace pfrt::cpu
