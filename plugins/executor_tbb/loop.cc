// SPDX-License-Identifier: Apache-2.0
//
// Compiled without ThreadSanitizer where everything else has it: Debian's oneTBB is not
// instrumented, so that its synchronisation would look like races. The annotations tell the
// sanitizer of the two edges that a loop has, from its start to every call and from every call to
// its end; what calls do to each other it sees as everywhere.
#include "plugins/executor_tbb/loop.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/version.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#ifdef PFRT_SANITIZE_THREAD
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace pfrt::tbb_executor {
namespace {

// What a thread did before it reached |point| is seen by those that leave it afterwards.
#ifdef PFRT_SANITIZE_THREAD
void reach(char* point) { __tsan_release(point); }
void leave(char* point) { __tsan_acquire(point); }
#else
void reach(char*) {}
void leave(char*) {}
#endif

// Lives on its caller's stack.
struct Loop {
  const Body body;
  void* const arg;
  const uint64_t n;
  std::atomic<uint64_t> next{0};
  char started = 0, finished = 0;  // addresses for the sanitizer

  void work(uint32_t worker) {
    for (uint64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(arg, i, worker);
  }
};

std::atomic<bool> exiting{false};
std::atomic<int> inside{0};  // loops that are on oneTBB

// Counts a loop among those that the end of the process waits for, unless it has come.
class OnThreads {
 public:
  OnThreads() {
    inside.fetch_add(1);
    if (!exiting.load()) return;
    entered_ = false;
    inside.fetch_sub(1);
  }
  ~OnThreads() {
    if (entered_) inside.fetch_sub(1);
  }
  OnThreads(const OnThreads&) = delete;
  OnThreads& operator=(const OnThreads&) = delete;
  bool entered() const { return entered_; }

 private:
  bool entered_ = true;
};

// A second at most: a call may wait for something that the exit has ended.
void wait_for_loops() {
  exiting.store(true);
  for (int ms = 0; inside.load() > 0 && ms < 1000; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void on_threads(Loop& loop, uint32_t seats) {
  // A group of its own, which a host that cancels the group of its task does not cancel.
  tbb::task_group_context group(tbb::task_group_context::isolated);
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(
        tbb::blocked_range<uint32_t>(0, seats),
        [&](const tbb::blocked_range<uint32_t>& range) {
          leave(&loop.started);
          for (uint32_t seat = range.begin(); seat < range.end(); ++seat) loop.work(seat);
          reach(&loop.finished);
        },
        tbb::simple_partitioner(), group);
  });
}

}  // namespace

void loop(uint32_t workers, uint64_t n, Body body, void* arg) {
  Loop all{body, arg, n};
  const OnThreads scope;
  if (scope.entered()) {
    const int most = tbb::this_task_arena::max_concurrency();
    const auto seats =
        static_cast<uint32_t>(std::min<uint64_t>({workers, n, static_cast<uint64_t>(most)}));
    reach(&all.started);
    try {
      if (seats > 1) on_threads(all, seats);
    } catch (...) {  // without memory for tasks of oneTBB this thread does the rest
    }
    leave(&all.finished);
  }
  all.work(0);
}

const char* version() { return TBB_runtime_version(); }

void leave_at_exit() {
  // A destructor rather than atexit, which some tools take for the program's. Registered after
  // those of oneTBB, which is loaded by now, it runs before them.
  static const struct AtExit {
    ~AtExit() { wait_for_loops(); }
  } at_exit;
}

}  // namespace pfrt::tbb_executor
