// SPDX-License-Identifier: Apache-2.0
//
// Losses and the steps of optimizers. Rows are constants that live as long as the program;
// thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> loss_rows();
std::span<const KernelRow> optimizer_rows();

}  // namespace pfrt::cpu
