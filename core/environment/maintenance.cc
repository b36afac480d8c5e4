// SPDX-License-Identifier: Apache-2.0
#include "core/environment/maintenance.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/base/os/fork.h"

namespace pfrt {

struct Keeper::State {
  const uint32_t generation = os::forks();
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  std::thread thread;
};

bool Keeper::start() {
  State* now = state_.load(std::memory_order_acquire);
  if (now && now->generation == os::forks()) return true;
  const os::ForkScope scope;
  auto made = std::make_unique<State>();
  // A state from before a fork is leaked: its thread belongs to the other process.
  if (!state_.compare_exchange_strong(now, made.get())) return true;
  State& state = *made.release();
  try {
    state.thread = std::thread([this, &state] { serve(state); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

Keeper::~Keeper() {
  State* const state = state_.load(std::memory_order_acquire);
  if (!state || state->generation != os::forks()) return;
  {
    const std::lock_guard lock(state->mutex);
    state->stop = true;
  }
  state->wake.notify_one();
  if (state->thread.joinable()) state->thread.join();
  delete state;
}

void Keeper::serve(State& state) const {
  std::unique_lock lock(state.mutex);
  while (!state.wake.wait_for(lock, std::chrono::seconds(1), [&] { return state.stop; })) {
    lock.unlock();
    try {
      const os::ForkScope scope;
      tend_();
    } catch (const std::bad_alloc&) {  // the next time, perhaps
    }
    lock.lock();
  }
}

}  // namespace pfrt
