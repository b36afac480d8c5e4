// SPDX-License-Identifier: Apache-2.0
//
// Rows of the operators that make tensors from shapes, positions or few parameters, and of those
// whose output size depends on the data. The rows are constants of the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel.h"

namespace pfrt::cpu {

std::span<const KernelRow> index_kernels();

}  // namespace pfrt::cpu
