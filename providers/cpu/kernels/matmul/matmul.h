// SPDX-License-Identifier: Apache-2.0
//
// The matmul family: MatMul, Gemm, their integer and quantized forms, and Einsum. Rows are
// constants that live as long as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> matmul_kernels();

}  // namespace pfrt::cpu
