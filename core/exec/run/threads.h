// SPDX-License-Identifier: Apache-2.0
//
// Parallel loops. The one interface between the runtime and its threads (pool.h), of which there
// may be fewer than asked for: the caller takes part, alone where the system gives none. Threads
// sleep between runs. Thread-safe.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/exec/run/executor.h"

namespace pfrt {

// Before the first loop, and once for each user: arranges that forked children have threads, and
// that threads which ended their own pool are joined when the process exits.
void retain_threads();
// The last user ends the threads; a later one's loop starts them anew. Of this user no loop may be
// running. Called on one of the threads, by a task, that one ends when the task is over.
void release_threads();

// Calls body(arg, i, worker) for every i < n on at most |width| threads; |worker| < |width| is
// different for calls that run at the same time. Returns when all are done. |body| does not throw.
void parallel_for(uint32_t width, uint64_t n, LoopBody body, void* arg);

// A run of the process, while it lives. Runs that are under way at once share the processors, so
// that more threads than there are processors do not get in each other's way.
class RunUnderWay {
 public:
  RunUnderWay();
  ~RunUnderWay();
  RunUnderWay(const RunUnderWay&) = delete;
  RunUnderWay& operator=(const RunUnderWay&) = delete;
  // Of |width| threads, those that the runs which were there before leave; at least one.
  uint32_t share(uint32_t width) const { return width > others_ ? width - others_ : 1; }

 private:
  uint32_t others_;
  const uint32_t generation_;
};

// Calls task(arg) once on one of a few threads, later; on failure never.
Status submit(Task task, void* arg);

}  // namespace pfrt
