// SPDX-License-Identifier: Apache-2.0
//
// Locks whose holders may work for long. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>

namespace pfrt {

// Locks |mutex|, or gives up once |stop| says so, which is asked every few milliseconds.
template <typename Mutex, typename Stop>
std::unique_lock<Mutex> lock_unless(Mutex& mutex, Stop stop) {
  constexpr std::chrono::milliseconds kLook{5};
  std::unique_lock lock(mutex, std::try_to_lock);
  // The wait uses the system's clock because ThreadSanitizer knows no waits by the steady one.
  while (!lock.owns_lock() && !stop()) {
    if (lock.try_lock_until(std::chrono::system_clock::now() + kLook)) break;
  }
  return lock;
}

}  // namespace pfrt
