// SPDX-License-Identifier: Apache-2.0
//
// Parallel loops. The one interface between the runtime and its threads (oneTBB behind it): one
// pool a process, the caller takes part, nobody spins between loops. Thread-safe.
#pragma once

#include <cstdint>

namespace pfrt {

using LoopBody = void (*)(void* arg, uint64_t i, uint32_t worker);

// To be called before the first loop, once an environment exists: arranges that loops are over
// before the pool's library goes when the process exits.
void prepare_threads();

// Calls body(arg, i, worker) for every i < n on at most |width| threads; |worker| < |width| is
// different for calls that run at the same time. Returns when all are done.
void parallel_for(uint32_t width, uint64_t n, LoopBody body, void* arg);

// Ends the pool's threads; a later loop starts it anew. Only when no loop is running.
void release_threads();

}  // namespace pfrt
