// SPDX-License-Identifier: Apache-2.0
//
// The normalisation family: over a batch, an instance, groups, layers, vectors and neighbouring
// channels. Rows are constants that live as long as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> norm_kernels();

}  // namespace pfrt::cpu
