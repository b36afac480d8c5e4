// SPDX-License-Identifier: Apache-2.0
//
// The family that only moves elements: reshapes, transposes, Concat, Split, Slice, Pad, gathers and
// scatters. Rows are constants that live as long as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> move_kernels();

}  // namespace pfrt::cpu
