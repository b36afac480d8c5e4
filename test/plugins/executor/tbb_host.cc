// SPDX-License-Identifier: Apache-2.0
#include "test/plugins/executor/tbb_host.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#ifdef PFRT_SANITIZE_THREAD
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace pfrt_test {
namespace {

// What a thread did before it reached |point| is seen by those that leave it afterwards.
#ifdef PFRT_SANITIZE_THREAD
void reach(char* point) { __tsan_release(point); }
void leave(char* point) { __tsan_acquire(point); }
#else
void reach(char*) {}
void leave(char*) {}
#endif

void loop(int n, const std::function<void(int)>& body, tbb::task_group_context& group) {
  char started = 0, finished = 0;
  reach(&started);
  tbb::parallel_for(
      tbb::blocked_range<int>(0, n),
      [&](const tbb::blocked_range<int>& range) {
        leave(&started);
        for (int i = range.begin(); i < range.end(); ++i) body(i);
        reach(&finished);
      },
      tbb::simple_partitioner(), group);
  leave(&finished);
}

}  // namespace

void host_for(int n, const std::function<void(int)>& body) {
  tbb::task_group_context group;
  loop(n, body, group);
}

void in_arena(int width, const std::function<void()>& work) {
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<size_t>(width));
  tbb::task_arena arena(width);
  char started = 0, finished = 0;
  reach(&started);
  arena.execute([&] {
    leave(&started);
    work();
    reach(&finished);
  });
  leave(&finished);
}

void in_cancelled_group(const std::function<void()>& work) {
  tbb::task_group_context group;
  loop(
      1,
      [&](int) {
        group.cancel_group_execution();
        work();
      },
      group);
}

}  // namespace pfrt_test
