// SPDX-License-Identifier: Apache-2.0
//
// A thread that looks after something about every second, also where nobody calls. It is joined
// with the object; a forked child, which has none, makes its own at the next start. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace pfrt {

class Keeper {
 public:
  // |tend| is called on the thread, and not across a fork.
  explicit Keeper(std::function<void()> tend) : tend_(std::move(tend)) {}
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Starts the thread where this process has none yet. False where the system has none to give.
  bool start();

 private:
  struct State;
  void serve(State& state) const;
  const std::function<void()> tend_;
  std::atomic<State*> state_{nullptr};
};

}  // namespace pfrt
