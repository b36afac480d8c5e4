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

#include <algorithm>
#include <atomic>

#ifdef PFRT_SANITIZE_THREAD
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace pfrt::tbb_executor {
namespace {

// Threads that leave |point| see what others did before they reached it.
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

// A thread's work for a loop is after its start and before its end, also where a call throws.
class Calls {
 public:
  explicit Calls(Loop& loop) : loop_(loop) { leave(&loop.started); }
  ~Calls() { reach(&loop_.finished); }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

 private:
  Loop& loop_;
};

void on_threads(Loop& loop, uint32_t seats) {
  // A group of its own, which a host that cancels the group of its task does not cancel.
  tbb::task_group_context group(tbb::task_group_context::isolated);
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(
        tbb::blocked_range<uint32_t>(0, seats),
        [&](const tbb::blocked_range<uint32_t>& range) {
          const Calls between(loop);
          for (uint32_t seat = range.begin(); seat < range.end(); ++seat) loop.work(seat);
        },
        tbb::simple_partitioner(), group);
  });
}

}  // namespace

void loop(uint32_t workers, uint64_t n, Body body, void* arg) {
  Loop all{body, arg, n};
  const auto most = static_cast<uint64_t>(tbb::this_task_arena::max_concurrency());
  const auto seats = static_cast<uint32_t>(std::min<uint64_t>({workers, n, most}));
  reach(&all.started);
  try {
    if (seats > 1) on_threads(all, seats);
  } catch (...) {  // without memory for tasks of oneTBB this thread does the rest
  }
  leave(&all.finished);
  all.work(0);
}

}  // namespace pfrt::tbb_executor
