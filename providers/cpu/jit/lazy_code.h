// SPDX-License-Identifier: Apache-2.0
//
// Machine code that is written when it is first run: a process needs a few of a microkernel's
// forms, and writing all takes longer than many a small model's first run. Takes no lock, so that a
// fork cannot cut one in two. Thread-safe.
#pragma once

#include <immintrin.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace pfrt::cpu {

template <typename Arguments>
class LazyCode {
 public:
  using Code = void (*)(Arguments*);

  // nullptr where it is not written yet, or could not be.
  Code ready() const {
    const uintptr_t at = at_.load(std::memory_order_acquire);
    return at > kRefused ? reinterpret_cast<Code>(at) : nullptr;
  }

  // |write| gives the code, or nullptr where it cannot be made executable; it is asked once, unless
  // it throws std::bad_alloc, which goes to the caller. nullptr for those who come meanwhile and
  // have waited some microseconds, too.
  template <typename Write>
  Code get(Write&& write) const {
    uintptr_t at = kUnasked;
    if (at_.compare_exchange_strong(at, kBeingWritten)) {
      try {
        const void* const code = write();
        at = code ? reinterpret_cast<uintptr_t>(code) : kRefused;
      } catch (const std::bad_alloc&) {
        at_.store(kUnasked, std::memory_order_release);
        throw;
      }
      at_.store(at, std::memory_order_release);
    }
    for (int turn = 0; at == kBeingWritten && turn < kTurns; ++turn) {
      _mm_pause();
      at = at_.load(std::memory_order_acquire);
    }
    return ready();
  }

 private:
  static constexpr uintptr_t kUnasked = 0, kBeingWritten = 1, kRefused = 2;
  static constexpr int kTurns = 2000;
  mutable std::atomic<uintptr_t> at_{kUnasked};
};

}  // namespace pfrt::cpu
