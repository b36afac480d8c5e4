// SPDX-License-Identifier: Apache-2.0
//
// Runs that wait for a thread: those of higher priority first, and among these in the order in
// which they came. Bounded. A forked child has none of its parent's. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "core/base/status.h"
#include "core/exec/run/executor.h"

namespace pfrt {

class RunQueue {
 public:
  // |limit| 0 means none.
  explicit RunQueue(uint64_t limit) : limit_(limit) {}
  RunQueue(const RunQueue&) = delete;
  RunQueue& operator=(const RunQueue&) = delete;

  // BUSY when |limit| runs wait already. For each run added, serve is called once, later.
  Status add(int64_t priority, Task task, void* arg);
  // Counts a run among those that wait, BUSY as in add, until add_reserved puts it into the row or
  // give_up_reserved takes it back. add_reserved may throw, and then it is given up.
  Status reserve();
  void add_reserved(int64_t priority, Task task, void* arg);
  void give_up_reserved();
  // Removes the run with |arg|; false when it is no longer waiting.
  bool remove(const void* arg);
  // Calls the task of the first run.
  void serve();

 private:
  struct Key {
    int64_t priority;
    uint64_t number;
    bool operator<(const Key& other) const {
      return priority != other.priority ? priority > other.priority : number < other.number;
    }
  };
  struct Entry {
    Task task;
    void* arg;
  };
  void forget_parents();
  Status check_room() const;
  const uint64_t limit_;
  std::mutex mutex_;
  std::map<Key, Entry> waiting_;
  uint64_t added_ = 0, reserved_ = 0;
  uint32_t generation_ = 0;  // number of forks when |waiting_| was made
};

}  // namespace pfrt
