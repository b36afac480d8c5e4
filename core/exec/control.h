// SPDX-License-Identifier: Apache-2.0
//
// What a run is told, and what stops it: a cancel flag that others may raise at any time, and a
// deadline. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/os/cpu.h"
#include "core/base/status.h"

namespace pfrt {

class Provider;

struct RunControl {
  const std::atomic<bool>* cancelled = nullptr;
  uint64_t deadline_ns = 0;  // on os::monotonic_ns; 0 = none
  uint32_t width = 1;
  bool profile = false;
  // Whose call it was, when the run fails in a provider's call.
  mutable std::atomic<const Provider*> culprit{nullptr};

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
