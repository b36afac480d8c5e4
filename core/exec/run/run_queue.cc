// SPDX-License-Identifier: Apache-2.0
#include "core/exec/run/run_queue.h"

#include <algorithm>

#include "core/base/os/fork.h"

namespace pfrt {

void RunQueue::forget_parents() {
  if (generation_ == os::forks()) return;
  generation_ = os::forks();
  waiting_.clear();
  reserved_ = 0;
}

Status RunQueue::check_room() const {
  const uint64_t there = waiting_.size() + reserved_;
  if (limit_ == 0 || there < limit_) return {};
  return error(Code::kBUSY, "starting a run: ", there,
               " wait already, as many as async_queue allows; start it when some are over, or "
               "allow more");
}

Status RunQueue::add(int64_t priority, Task task, void* arg) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  PFRT_TRY(check_room());
  waiting_.emplace(Key{priority, added_++}, Entry{task, arg});
  return {};
}

Status RunQueue::reserve() {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  PFRT_TRY(check_room());
  ++reserved_;
  return {};
}

void RunQueue::add_reserved(int64_t priority, Task task, void* arg) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  if (reserved_ > 0) --reserved_;
  waiting_.emplace(Key{priority, added_++}, Entry{task, arg});
}

void RunQueue::give_up_reserved() {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  if (reserved_ > 0) --reserved_;
}

bool RunQueue::remove(const void* arg) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  return std::erase_if(waiting_, [&](const auto& e) { return e.second.arg == arg; }) != 0;
}

void RunQueue::serve() {
  Entry first;
  {
    const os::ForkScope scope;
    const std::lock_guard lock(mutex_);
    forget_parents();
    if (waiting_.empty()) return;
    first = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
  }
  first.task(first.arg);
}

}  // namespace pfrt
