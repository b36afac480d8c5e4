// SPDX-License-Identifier: Apache-2.0
//
// Loops on oneTBB. Thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::tbb_executor {

using Body = void (*)(void* arg, uint64_t i, uint32_t worker);

// As pfrt_executor says of loop, in the arena that the calling thread is in: its own where it is in
// no other. The thread takes part, and while it waits for others it does nothing but this loop's
// work, so that a host's task which it might take meanwhile cannot want a lock that it holds.
void loop(uint32_t workers, uint64_t n, Body body, void* arg);

}  // namespace pfrt::tbb_executor
