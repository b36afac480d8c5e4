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

// Threads that leave |point| see what others did before they reached it.
#ifdef PFRT_SANITIZE_THREAD
void reach(char* point) { __tsan_release(point); }
void leave(char* point) { __tsan_acquire(point); }
#else
void reach(char*) {}
void leave(char*) {}
#endif

// What is done while one lives comes after what its maker did before, and before what is done once
// the maker is over with it; also where something is thrown.
class Between {
 public:
  Between(char* from, char* to) : to_(to) { leave(from); }
  ~Between() { reach(to_); }
  Between(const Between&) = delete;
  Between& operator=(const Between&) = delete;

 private:
  char* to_;
};
class Edges {
 public:
  Edges() { reach(&started_); }
  ~Edges() { leave(&finished_); }
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;
  Between task() { return Between(&started_, &finished_); }

 private:
  char started_ = 0, finished_ = 0;
};

void loop(int n, const std::function<void(int)>& body, tbb::task_group_context& group) {
  Edges edges;
  tbb::parallel_for(
      tbb::blocked_range<int>(0, n),
      [&](const tbb::blocked_range<int>& range) {
        const Between task = edges.task();
        for (int i = range.begin(); i < range.end(); ++i) body(i);
      },
      tbb::simple_partitioner(), group);
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
  Edges edges;
  arena.execute([&] {
    const Between task = edges.task();
    work();
  });
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
