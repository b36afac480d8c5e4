// SPDX-License-Identifier: Apache-2.0
//
// Locks under which others may be at work for long. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>

namespace pfrt {

// |mutex|, or nothing once |stop| says so, which is asked every few milliseconds.
template <typename Mutex, typename Stop>
std::unique_lock<Mutex> lock_unless(Mutex& mutex, Stop stop) {
  constexpr std::chrono::milliseconds kLook{5};
  std::unique_lock lock(mutex, std::try_to_lock);
  // By the system's clock: ThreadSanitizer knows no waits by the steady one.
  while (!lock.owns_lock() && !stop()) {
    if (lock.try_lock_until(std::chrono::system_clock::now() + kLook)) break;
  }
  return lock;
}

}  // namespace pfrt
