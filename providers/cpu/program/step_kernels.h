// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the steps that no row makes: copies, and elementwise loops. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "providers/cpu/epilogue/broadcast_loop.h"
#include "providers/cpu/kernel/kernel.h"

namespace pfrt::cpu {

// Copies each input, of |bytes| by position, to the output of its position.
Kernel copy_kernel(std::vector<uint64_t> bytes);

Kernel loop_kernel(BroadcastLoop loop);
// Pairs of an input and an output that may share memory: the loop has read the input's vector
// before it stores the output's, and elements have the same size.
std::vector<std::pair<uint32_t, uint32_t>> loop_aliases(const LoopPlan& plan);

}  // namespace pfrt::cpu
