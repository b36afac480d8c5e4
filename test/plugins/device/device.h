// SPDX-License-Identifier: Apache-2.0
//
// Counters of the fake device, and the call that is to fail next. They are in memory that the test
// lends it by address (its option "counters"). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "pyflame_rt/plugin.h"

namespace fake_device {

enum Failure { kNone, kCopyLost, kWaitLost, kNoMemory, kStepLate };

struct Counters {
  // Calls of copy that had such copies, and the copies' number and size; by pfrt_direction.
  std::atomic<int64_t> calls[4] = {}, copies[4] = {}, bytes[4] = {};
  std::atomic<int64_t> opens{0}, closes{0}, steps{0}, waits{0};
  std::atomic<int64_t> allocations{0}, fences{0}, runs{0};  // alive
  std::atomic<bool> stalled{false};                         // queued work makes no progress
  std::atomic<int> failure{kNone};  // fails the next call of its kind, kStepLate when its work is
                                    // done, and goes back to kNone

  void reset() {
    for (auto* list : {&calls, &copies, &bytes})
      for (auto& n : *list) n = 0;
    opens = closes = steps = waits = 0;
  }
};

}  // namespace fake_device
