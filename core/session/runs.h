// SPDX-License-Identifier: Apache-2.0
//
// Holds what the runs of all sessions of an environment share: memory and threads that a client put
// in the place of the library's own, the budget that they count in, and the queue of those that
// wait for a thread. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "core/exec/run/executor.h"
#include "core/exec/run/pool.h"
#include "core/exec/run/run_queue.h"
#include "core/memory/allocator.h"

namespace pfrt {

// A client's replacements for parts of the library; a null member is the library's own.
struct Replacements {
  AllocatorPtr allocator;
  std::shared_ptr<MemoryPlanner> planner;
  std::shared_ptr<Executor> executor, pool;
  ThreadSource thread_source;  // of |pool|; empty: the system's

  const std::shared_ptr<Executor>& threads() const { return executor ? executor : pool; }
};

class Runs {
 public:
  // |after_each| is called on the thread of a run that has succeeded. |most_waiting| 0 = no limit.
  Runs(BudgetPtr budget, uint64_t most_waiting, std::function<void()> after_each);

  const BudgetPtr& budget() const { return budget_; }
  RunQueue& waiting() { return waiting_; }
  void after_run() const {
    if (after_each_) after_each_();
  }
  std::shared_ptr<const Replacements> replacements() const;  // null when none was ever set
  // |change| is given a copy of the present replacements. A former one goes when nothing uses it
  // any more, and outside of locks, because that may join threads.
  void replace(const std::function<void(Replacements&)>& change);
  void forget_replacements() { replacements_.reset(); }

 private:
  const BudgetPtr budget_;
  RunQueue waiting_;
  const std::function<void()> after_each_;
  std::mutex replacing_;  // serialises those who change replacements
  std::atomic<bool> replaced_{false};
  mutable std::mutex replacements_mutex_;
  std::shared_ptr<const Replacements> replacements_;
};

}  // namespace pfrt
