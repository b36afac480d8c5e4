// SPDX-License-Identifier: Apache-2.0
//
// The resampling family: Resize, GridSample and AffineGrid.
// Rows are constants that live as long as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> resize_kernels();

}  // namespace pfrt::cpu
