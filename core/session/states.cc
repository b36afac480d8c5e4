// SPDX-License-Identifier: Apache-2.0
#include "core/session/states.h"

#include "core/base/os/fork.h"

namespace pfrt {

void States::add(const std::shared_ptr<State>& state) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  states_.emplace_back(state.get(), state);
}

void States::forget(const State* state) {
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  std::erase_if(states_, [&](const auto& one) { return one.first == state; });
}

std::vector<std::shared_ptr<const State>> States::all() const {
  std::vector<std::shared_ptr<const State>> out;
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  out.reserve(states_.size());
  for (const auto& [state, alive] : states_)
    if (std::shared_ptr<State> held = alive.lock()) out.push_back(std::move(held));
  return out;
}

}  // namespace pfrt
