// SPDX-License-Identifier: Apache-2.0
//
// The quantization family: QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
// Rows are constants that live as long as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> quantize_kernels();

}  // namespace pfrt::cpu
