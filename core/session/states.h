// SPDX-License-Identifier: Apache-2.0
//
// The states that were made from a session and are still there, for reports of its memory.
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace pfrt {

class State;

class States {
 public:
  void add(const std::shared_ptr<State>& state);
  // Is called first of all when a state ends.
  void forget(const State* state);
  // Returns those that have not ended, which live as long as the list.
  std::vector<std::shared_ptr<const State>> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<const State*, std::weak_ptr<State>>> states_;
};

}  // namespace pfrt
