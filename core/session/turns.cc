// SPDX-License-Identifier: Apache-2.0
#include "core/session/turns.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/os/fork.h"

namespace pfrt {

Turns::Place::Place(Place&& other) noexcept
    : row_(std::exchange(other.row_, nullptr)), number_(other.number_) {}

Turns::Place& Turns::Place::operator=(Place&& other) noexcept {
  if (this == &other) return *this;
  leave();
  row_ = std::exchange(other.row_, nullptr);
  number_ = other.number_;
  return *this;
}

void Turns::Place::leave() {
  if (Turns* const row = std::exchange(row_, nullptr)) row->leave(number_);
}

void Turns::forget_parents() const {
  if (generation_ == os::forks()) return;
  generation_ = os::forks();
  row_.clear();
}

Turns::Place Turns::join() {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  row_.try_emplace(joined_);
  return {this, joined_++};
}

Status Turns::wait(const Place& place, const Stop& stop, std::string_view doing) {
  // Looking again after a while keeps no lock that a forked child could find locked.
  constexpr std::chrono::microseconds kFirstLook{20}, kLook{2000};
  for (auto look = kFirstLook;; look = std::min(2 * look, kLook)) {
    PFRT_ASSIGN(const bool come, has_come(place, doing));
    if (come) return {};
    PFRT_TRY(stop());
    const os::ForkPause pause;
    std::this_thread::sleep_for(look);
  }
}

Result<bool> Turns::has_come(const Place& place, std::string_view doing) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  if (row_.empty()) return true;  // in a forked child, where nobody else is
  auto& [number, first] = *row_.begin();
  const auto me = std::this_thread::get_id();
  if (number >= place.number_) {
    first.owner = me;
    return true;
  }
  if (first.owner != me) return false;
  return error(Code::kBUSY, doing,
               ": this thread is in a run that has it, which cannot end before this one; use a "
               "clone");
}

bool Turns::call_later(const Place& place, std::function<void()> then) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  const auto found = row_.find(place.number_);
  if (found == row_.begin() || found == row_.end()) return false;
  found->second.then = std::move(then);
  return true;
}

bool Turns::empty() const {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  return row_.empty();
}

void Turns::leave(uint64_t number) {
  std::function<void()> then;
  {
    const os::ForkScope scope;
    const std::lock_guard lock(mutex_);
    forget_parents();
    row_.erase(number);
    if (!row_.empty()) then = std::exchange(row_.begin()->second.then, nullptr);
  }
  if (then) then();
}

}  // namespace pfrt
