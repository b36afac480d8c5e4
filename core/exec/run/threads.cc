// SPDX-License-Identifier: Apache-2.0
#include "core/exec/run/threads.h"

#include <atomic>
#include <memory>
#include <mutex>

#include "core/base/immortal.h"
#include "core/base/os/fork.h"
#include "core/exec/run/pool.h"

namespace pfrt {
namespace {

// The process's own pool. It is never destroyed while threads may use it, so that loops may run
// while the process exits.
struct Own {
  std::mutex mutex;
  uint32_t users = 0;
  std::shared_ptr<Pool> pool;
  // The pool that loops use; no loop runs when it is destroyed.
  std::atomic<Pool*> at_loops{nullptr};
};
Own& own() {
  static Immortal<Own> all;
  return all.get();
}

std::shared_ptr<Pool> own_pool() {
  const os::ForkScope scope;
  std::lock_guard lock(own().mutex);
  if (!own().pool) own().pool = std::make_shared<Pool>();
  own().at_loops.store(own().pool.get(), std::memory_order_release);
  return own().pool;
}

// Runs under way in this process; a forked child counts anew.
struct RunCount {
  std::atomic<uint32_t> count{0}, generation{0};

  std::atomic<uint32_t>& here() {
    const uint32_t forks = os::forks();
    uint32_t before = generation.load(std::memory_order_relaxed);
    if (before != forks && generation.compare_exchange_strong(before, forks)) count.store(0);
    return count;
  }
} runs;

void run_alone(uint64_t n, LoopBody body, void* arg) {
  for (uint64_t i = 0; i < n; ++i) body(arg, i, 0);
}

}  // namespace

RunUnderWay::RunUnderWay()
    : others_(runs.here().fetch_add(1, std::memory_order_relaxed)), generation_(os::forks()) {}

RunUnderWay::~RunUnderWay() {
  if (generation_ == os::forks()) runs.here().fetch_sub(1, std::memory_order_relaxed);
}

void retain_threads() {
  join_leavers(0);
  static std::once_flag once;
  std::call_once(once, [] {
    os::watch_forks(forget_leavers);
    // This is a destructor because some tools take atexit for the program's own, so that closing
    // the library would leave the function behind.
    static const struct AtExit {
      ~AtExit() { join_leavers(1000); }
    } at_exit;
  });
  const os::ForkScope scope;
  std::lock_guard lock(own().mutex);
  ++own().users;
}

void parallel_for(uint32_t width, uint64_t n, LoopBody body, void* arg) {
  if (width <= 1 || n <= 1) return run_alone(n, body, arg);
  Pool* pool = own().at_loops.load(std::memory_order_acquire);
  if (pool == nullptr) try {
      pool = own_pool().get();
    } catch (const std::bad_alloc&) {
      return run_alone(n, body, arg);
    }
  pool->loop(width, n, body, arg);
}

Status submit(Task task, void* arg) { return own_pool()->submit(task, arg); }

void release_threads() {
  std::shared_ptr<Pool> last;
  {
    const os::ForkScope scope;
    std::lock_guard lock(own().mutex);
    if (--own().users > 0) return;
    last.swap(own().pool);
    own().at_loops.store(nullptr, std::memory_order_relaxed);
  }
  last.reset();
  join_leavers(0);
}

}  // namespace pfrt
