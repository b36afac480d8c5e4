// SPDX-License-Identifier: Apache-2.0
//
// Loops on oneTBB: one pool a process. Thread-safe.
#pragma once

#include "core/exec/threads.h"

namespace pfrt {

// As parallel_for, with width and n above 1.
void tbb_loop(uint32_t width, uint64_t n, LoopBody body, void* arg);

// Ends oneTBB's threads; only when no loop is running.
void tbb_release();

}  // namespace pfrt
