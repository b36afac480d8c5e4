// SPDX-License-Identifier: Apache-2.0
//
// The parts of the machine that this process may use. Read anew at each call, since affinity and
// quotas change. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pfrt::os {

// Processors in the calling thread's affinity mask, capped by the cgroups' CPU quota (rounded up;
// looked up every 5 seconds at most); at least 1.
uint32_t usable_processors();

// Processors in the calling thread's affinity mask, whatever the quota; at least 1. A call costs
// less than a microsecond.
uint32_t allowed_processor_count();
// The calling thread's affinity mask, ascending; empty where the system does not say.
std::vector<uint32_t> allowed_processors();
// Keeps the calling thread on |processor|; false where the system refuses.
bool pin_thread(uint32_t processor);

// Identifies this kind of machine as far as speed goes: the processor's name, and the sizes of its
// caches. Constant for the life of the process.
std::string processor_text();

// Bytes of memory that this process could have now, by the system's available memory and the limits
// of the cgroups around it; 0 = unknown. |root| stands before every path that is read, for tests.
uint64_t available_memory(const std::string& root = "");

// Percent of the last ten seconds in which something waited for memory (PSI): the most of the
// system, of the cgroup of this process, and of those around it; 0 where it is unknown, as in a
// cgroup v1. |root| as above.
double memory_stalled(const std::string& root = "");

// The tightest quota of this process's cgroups and the groups around them, in processors rounded
// up; 0 = none. Understands cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us), where they are mounted.
// |root| stands before every path that is read, for tests.
uint32_t cgroup_processors(const std::string& root = "");

// A clock that never goes back, in nanoseconds.
uint64_t monotonic_ns();

// The monotonic clock at its last interrupt, 1 to 10 ms ago, to be read every few microseconds.
uint64_t recent_ns();

}  // namespace pfrt::os
