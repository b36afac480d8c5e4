// SPDX-License-Identifier: Apache-2.0
//
// Compiled without ThreadSanitizer even where everything else has it: Debian's oneTBB is not
// instrumented, so its synchronisation would look like races. The annotations below tell the
// sanitizer of the two edges that a loop has (start to every body, every body to the end).
#include "core/exec/tbb_loops.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <xmmintrin.h>

#include <map>
#include <memory>
#include <mutex>

#include "core/base/immortal.h"

#ifdef PFRT_SANITIZE_THREAD
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#else
static void __tsan_acquire(void*) {}
static void __tsan_release(void*) {}
#endif

namespace pfrt {
namespace {

// Never destroyed: loops may run while the process exits.
struct Arenas {
  std::mutex mutex;
  std::map<uint32_t, std::unique_ptr<tbb::task_arena>> by_width;
  // oneTBB makes no more threads than processors, with a warning, unless it is told otherwise.
  std::unique_ptr<tbb::global_control> limit;
  // Ends the pool; taken with the first arena, since taking it can fail and ending must not.
  tbb::task_scheduler_handle pool;
  uint32_t widest = 0;
};

Arenas& arenas() {
  static Immortal<Arenas> all;
  __tsan_acquire(&all);  // the guard of a static local is not instrumented here either
  __tsan_release(&all);
  return all.get();
}

tbb::task_arena& arena(uint32_t width) {
  Arenas& all = arenas();
  std::lock_guard lock(all.mutex);
  std::unique_ptr<tbb::task_arena>& one = all.by_width[width];
  if (one) return *one;
  if (!all.pool) all.pool = tbb::task_scheduler_handle{tbb::attach{}};
  if (width > all.widest) {
    all.limit.reset();
    all.limit =
        std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, width);
    all.widest = width;
  }
  one = std::make_unique<tbb::task_arena>(static_cast<int>(width));
  return *one;
}

}  // namespace

void tbb_loop(uint32_t width, uint64_t n, LoopBody body, void* arg) {
  char started = 0, finished = 0;
  __tsan_release(&started);
  const unsigned control = _mm_getcsr();
  arena(width).execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<uint64_t>(0, n),
        [&](const tbb::blocked_range<uint64_t>& range) {
          __tsan_acquire(&started);
          const unsigned own = _mm_getcsr();
          if (own != control) _mm_setcsr(control);
          const auto worker = static_cast<uint32_t>(tbb::this_task_arena::current_thread_index());
          for (uint64_t i = range.begin(); i < range.end(); ++i) body(arg, i, worker);
          if (own != control) _mm_setcsr(own);
          __tsan_release(&finished);
        },
        tbb::simple_partitioner());
  });
  __tsan_acquire(&finished);
}

void tbb_release() {
  Arenas& all = arenas();
  std::lock_guard lock(all.mutex);
  all.by_width.clear();
  all.limit.reset();
  all.widest = 0;
  if (all.pool) tbb::finalize(all.pool, std::nothrow);
}

}  // namespace pfrt
