// SPDX-License-Identifier: Apache-2.0
#include "core/exec/threads.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "core/base/immortal.h"
#include "core/base/os/fork.h"
#include "core/exec/pool.h"
#include "core/exec/tbb_loops.h"

namespace pfrt {
namespace {

// The process's own pool: tasks, and loops where oneTBB does not reach. Never destroyed while
// threads may use it, so that loops may run while the process exits.
struct Own {
  std::mutex mutex;
  std::shared_ptr<Pool> pool;
};
Own& own() {
  static Immortal<Own> all;
  return all.get();
}

std::shared_ptr<Pool> own_pool() {
  const os::ForkScope scope;
  std::lock_guard lock(own().mutex);
  if (!own().pool) own().pool = std::make_shared<Pool>();
  return own().pool;
}

// oneTBB's threads do not come along into a forked child, and it does not start others there.
bool tbb_reaches() {
#ifdef PFRT_SANITIZE_THREAD
  return false;  // a pool that is instrumented shows more
#else
  return os::forks() == 0;
#endif
}

// oneTBB's own destructors run while the process exits and must find no loop of ours inside: from
// then on loops run alone, and those under way are waited for, a second at most.
std::atomic<bool> exiting{false};
std::atomic<int> loops{0};

void leave_at_exit() {
  exiting.store(true);
  for (int ms = 0; tbb_reaches() && loops.load() > 0 && ms < 1000; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  join_leavers(1000);
}

// Counts a loop among those waited for, unless the process is exiting.
class LoopScope {
 public:
  LoopScope() {
    loops.fetch_add(1);
    if (!exiting.load()) return;
    entered_ = false;
    loops.fetch_sub(1);
  }
  ~LoopScope() {
    if (entered_) loops.fetch_sub(1);
  }
  LoopScope(const LoopScope&) = delete;
  LoopScope& operator=(const LoopScope&) = delete;
  bool entered() const { return entered_; }

 private:
  bool entered_ = true;
};

void run_alone(uint64_t n, LoopBody body, void* arg) {
  for (uint64_t i = 0; i < n; ++i) body(arg, i, 0);
}

}  // namespace

void prepare_threads() {
  static std::once_flag once;
  std::call_once(once, [] {
    os::watch_forks();
    // A destructor rather than atexit, which some tools take for the program's, so that closing the
    // library would leave it behind.
    static const struct AtExit {
      ~AtExit() { leave_at_exit(); }
    } at_exit;
  });
  join_leavers(0);
}

void parallel_for(uint32_t width, uint64_t n, LoopBody body, void* arg) {
  if (width <= 1 || n <= 1) return run_alone(n, body, arg);
  const LoopScope scope;
  if (!scope.entered()) return run_alone(n, body, arg);
  if (tbb_reaches()) return tbb_loop(width, n, body, arg);
  own_pool()->loop(width, n, body, arg);
}

Status submit(Task task, void* arg) { return own_pool()->submit(task, arg); }

void release_threads() {
  if (tbb_reaches()) tbb_release();
  std::shared_ptr<Pool> last;
  {
    std::lock_guard lock(own().mutex);
    last.swap(own().pool);
  }
  last.reset();
  join_leavers(0);
}

}  // namespace pfrt
