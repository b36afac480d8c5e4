// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: uniform, normal, Bernoulli, multinomial, and Dropout as training has it. Rows are
// constants that live as long as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> random_kernels();

}  // namespace pfrt::cpu
