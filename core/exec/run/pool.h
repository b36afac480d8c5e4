// SPDX-License-Identifier: Apache-2.0
//
// Threads of the runtime: for loops that their caller takes part in, and for tasks. Threads are
// made when first needed, one fewer than the widest loop asks for and a few for tasks; all callers
// share them. They sleep when there is nothing to do. In a forked child a pool starts with new
// ones. Thread-safe.
#pragma once

#include <atomic>
#include <functional>

#include "core/exec/run/executor.h"

namespace pfrt {

// Starts and joins threads. |start| makes a new thread call main(arg) and gives its handle, or
// returns false when there is none; |join| is called once for each.
struct ThreadSource {
  std::function<bool(void (*main)(void*), void* arg, void** thread)> start;
  std::function<void(void* thread)> join;
};
ThreadSource system_threads();

class Pool final : public Executor {
 public:
  // |most_tasks| tasks run at a time.
  explicit Pool(ThreadSource source = system_threads(), uint32_t most_tasks = 4);
  // Runs the tasks that wait, then ends the threads. No loop may be running. Where a task of this
  // pool destroys it, that thread ends with the task and is joined by join_leavers.
  ~Pool() override;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  bool loop(uint32_t width, uint64_t n, LoopBody body, void* arg) override;
  Status submit(Task task, void* arg) override;

 private:
  struct Loop;
  class State;
  State& state();
  std::atomic<State*> state_;
};

// Joins the threads that have ended their own pool; waits |ms| at most for those still at it, and
// for tasks, which may be about to end theirs.
void join_leavers(int ms);
// Is called in a forked child, which has none of these threads.
void forget_leavers();

}  // namespace pfrt
