// SPDX-License-Identifier: Apache-2.0
#include "core/session/turns.h"

#include <algorithm>
#include <chrono>
#include <iterator>
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
  later_.clear();
}

Turns::Place Turns::join(Use use) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  row_.try_emplace(joined_, Entry{use, {}});
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

Turns::Row::iterator Turns::end_of_turn() const {
  if (row_.empty() || row_.begin()->second.use == Use::kAlone)
    return row_.empty() ? row_.end() : std::next(row_.begin());
  return std::ranges::find(row_, Use::kAlone, [](const auto& place) { return place.second.use; });
}

Result<bool> Turns::has_come(const Place& place, std::string_view doing) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  const auto own = row_.find(place.number_);
  if (own == row_.end()) return true;  // in a forked child, whose row is new
  const auto me = std::this_thread::get_id();
  const auto end = end_of_turn();
  if (end == row_.end() || own->first < end->first) {
    own->second.owner = me;
    return true;
  }
  // Whoever stands between waits for this thread too.
  if (std::none_of(row_.begin(), end, [&](const auto& p) { return p.second.owner == me; }))
    return false;
  return error(Code::kBUSY, doing,
               ": this thread is in a run that has it, which cannot end before this one; use a "
               "clone");
}

bool Turns::call_later(const Place& place, std::function<void()> then) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  const auto end = end_of_turn();
  if (!row_.contains(place.number_) || end == row_.end() || place.number_ < end->first)
    return false;
  later_.emplace(place.number_, std::move(then));
  return true;
}

bool Turns::empty() const {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  return row_.empty();
}

bool Turns::wanted_alone() const {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  forget_parents();
  return std::ranges::any_of(row_, [](const auto& p) { return p.second.use == Use::kAlone; });
}

void Turns::leave(uint64_t number) {
  // They are called when all are taken out: the row may go with the last of them. Moving nodes
  // takes no memory.
  std::map<uint64_t, std::function<void()>> come, gone;
  {
    const os::ForkScope scope;
    const std::lock_guard lock(mutex_);
    forget_parents();
    row_.erase(number);
    gone.insert(later_.extract(number));
    const auto end = end_of_turn();
    for (auto it = row_.begin(); it != end && !later_.empty(); ++it)
      come.insert(later_.extract(it->first));
  }
  for (auto& [place, then] : come) then();
}

}  // namespace pfrt
