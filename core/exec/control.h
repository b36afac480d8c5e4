// SPDX-License-Identifier: Apache-2.0
//
// What stops a run: a cancel flag that others may raise at any time, and a deadline. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/os/cpu.h"
#include "core/base/status.h"

namespace pfrt {

struct RunControl {
  const std::atomic<bool>* cancelled = nullptr;
  uint64_t deadline_ns = 0;  // on os::monotonic_ns; 0 = none
  uint32_t width = 1;
  bool profile = false;

  Code stop() const {
    if (cancelled && cancelled->load(std::memory_order_relaxed)) return Code::kCANCELLED;
    if (deadline_ns && os::monotonic_ns() > deadline_ns) return Code::kDEADLINE;
    return Code::kOK;
  }
};

inline Status stop_status(Code code) {
  return Status(code, code == Code::kCANCELLED ? "running: cancelled by the caller"
                                               : "running: the deadline has passed");
}

}  // namespace pfrt
