// SPDX-License-Identifier: Apache-2.0
//
// Parallel loops. The one interface between the runtime and its threads: oneTBB behind it, or a
// pool of our own (pool.h) where oneTBB does not reach: in a forked child, under ThreadSanitizer,
// with a client's thread hooks. The caller takes part, and threads sleep between runs. Thread-safe.
#pragma once

#include <cstdint>

#include "core/base/status.h"

namespace pfrt {

using LoopBody = void (*)(void* arg, uint64_t i, uint32_t worker);
using Task = void (*)(void* arg);

// Threads that are not the process's own: an environment may have others.
class Executor {
 public:
  virtual ~Executor() = default;
  // As parallel_for; false when not everything was called.
  virtual bool loop(uint32_t width, uint64_t n, LoopBody body, void* arg) = 0;
  // As submit.
  virtual Status submit(Task task, void* arg) = 0;
  virtual uint32_t width() const { return 0; }  // threads there are; 0 = as many as asked for
};

// To be called before the first loop, once an environment exists: arranges that loops are over
// before the pool's library goes when the process exits, and that forked children have threads.
void prepare_threads();

// Calls body(arg, i, worker) for every i < n on at most |width| threads; |worker| < |width| is
// different for calls that run at the same time. Returns when all are done.
void parallel_for(uint32_t width, uint64_t n, LoopBody body, void* arg);

// Calls task(arg) once on one of a few threads, later; on failure never.
Status submit(Task task, void* arg);

// Ends the threads; a later loop starts them anew. Only when no loop is running. Called on one of
// the threads, by a task, that one ends when the task is over.
void release_threads();

}  // namespace pfrt
