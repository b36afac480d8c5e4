// SPDX-License-Identifier: Apache-2.0
//
// Counters of the fault provider. They are in memory that the test lends it by address (its option
// "counters"), so that failures and counts span devices that are opened again. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace fault {

enum Stage { kOpen, kClaim, kCompile, kSpecialise, kRun, kStages };

struct Counters {
  std::atomic<int64_t> calls[kStages] = {};
  std::atomic<int64_t> injected{0};  // number of failures
  std::atomic<int64_t> aligned{0};   // outputs of steps that are aligned as requested
  std::atomic<int64_t> closes{0}, executables{0}, programs{0};  // the latter two count those alive
};

}  // namespace fault
