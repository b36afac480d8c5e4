// SPDX-License-Identifier: Apache-2.0
//
// Parallel loops: the one interface between the runtime and its threads (pool.h). There may be
// fewer threads than asked for; the caller takes part, alone where the system gives none. Threads
// sleep between runs. Thread-safe.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/exec/run/executor.h"

namespace pfrt {

// Is called before the first loop, and once for each user. Arranges that forked children have
// threads, and that threads that ended their own pool are joined when the process exits.
void retain_threads();
// The last user ends the threads; a later user's loop starts them anew. No loop of this user may be
// running. When a task calls it on one of the threads, that thread ends with the task.
void release_threads();

// Calls body(arg, i, worker) for every i < n on at most |width| threads; |worker| < |width| is
// different for calls that run at the same time. Returns when all are done. |body| does not throw.
void parallel_for(uint32_t width, uint64_t n, LoopBody body, void* arg);

// Counts as a run of the process while it lives. Runs under way share the processors, so that more
// threads than there are processors do not get in each other's way.
class RunUnderWay {
 public:
  RunUnderWay();
  ~RunUnderWay();
  RunUnderWay(const RunUnderWay&) = delete;
  RunUnderWay& operator=(const RunUnderWay&) = delete;
  // Threads, of |width|, that the runs begun earlier leave to this one; at least one.
  uint32_t share(uint32_t width) const { return width > others_ ? width - others_ : 1; }

 private:
  uint32_t others_;
  const uint32_t generation_;
};

// Calls task(arg) later, once, on one of a few threads; never when it fails.
Status submit(Task task, void* arg);

}  // namespace pfrt
