// SPDX-License-Identifier: Apache-2.0
//
// The pooling family: max, average and Lp pooling, windowed and global, and MaxUnpool.
// Rows are constants that live as long as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> pool_kernels();

}  // namespace pfrt::cpu
