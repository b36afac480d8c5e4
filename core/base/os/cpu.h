// SPDX-License-Identifier: Apache-2.0
//
// What this process may use of the machine. Read anew at each call, since affinity and quotas
// change. Thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::os {

// Processors in the calling thread's affinity mask, capped by the cgroup's CPU quota (rounded up);
// at least 1.
uint32_t usable_processors();

// A clock that never goes back, in nanoseconds.
uint64_t monotonic_ns();

}  // namespace pfrt::os
