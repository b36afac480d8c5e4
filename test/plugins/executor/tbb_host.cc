// SPDX-License-Identifier: Apache-2.0
#include "test/plugins/executor/tbb_host.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#ifdef PFRT_SANITIZE_THREAD
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#else
static void __tsan_acquire(void*) {}
static void __tsan_release(void*) {}
#endif

namespace pfrt_test {
namespace {

void loop(int n, const std::function<void(int)>& body, tbb::task_group_context& group) {
  char started = 0, finished = 0;
  __tsan_release(&started);
  tbb::parallel_for(
      tbb::blocked_range<int>(0, n),
      [&](const tbb::blocked_range<int>& range) {
        __tsan_acquire(&started);
        for (int i = range.begin(); i < range.end(); ++i) body(i);
        __tsan_release(&finished);
      },
      tbb::simple_partitioner(), group);
  __tsan_acquire(&finished);
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
  __tsan_release(&started);
  arena.execute([&] {
    __tsan_acquire(&started);
    work();
    __tsan_release(&finished);
  });
  __tsan_acquire(&finished);
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
