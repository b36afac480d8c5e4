// SPDX-License-Identifier: Apache-2.0
//
// The processor's caches of data, as cpuid describes them. Virtual machines may describe what is
// not there. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace pfrt::cpu {

struct Cache {
  int64_t bytes = 0;
  uint32_t sharing = 1;  // logical processors that share one
};

// L1 first; empty where the processor does not say.
std::vector<Cache> data_caches();

}  // namespace pfrt::cpu
