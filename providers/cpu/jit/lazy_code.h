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
  Code ready() const { return code_.load(std::memory_order_acquire); }

  // |write| gives the code, or nullptr where it cannot be made executable; it is asked once, unless
  // it throws std::bad_alloc, which goes to the caller. nullptr for those who come meanwhile and
  // have waited some microseconds, too.
  template <typename Write>
  Code get(Write&& write) const {
    State state = State::kUnasked;
    if (state_.compare_exchange_strong(state, State::kBeingWritten)) {
      try {
        code_.store(write(), std::memory_order_release);
      } catch (const std::bad_alloc&) {
        state_.store(State::kUnasked, std::memory_order_release);
        throw;
      }
      state_.store(state = State::kWritten, std::memory_order_release);
    }
    for (int turn = 0; state == State::kBeingWritten && turn < kTurns; ++turn) {
      _mm_pause();
      state = state_.load(std::memory_order_acquire);
    }
    return ready();
  }

 private:
  enum class State : uint8_t { kUnasked, kBeingWritten, kWritten };
  static constexpr int kTurns = 2000;
  mutable std::atomic<Code> code_{nullptr};
  mutable std::atomic<State> state_{State::kUnasked};
};

}  // namespace pfrt::cpu
