// SPDX-License-Identifier: Apache-2.0
//
// Protects shared state from being cut in two by a fork. A forked child has the forking thread
// alone: locks that other threads hold stay locked there for ever, and what they were changing
// stays half changed. So work on shared state is done inside a ForkScope, and fork() waits until no
// other thread is in one. Thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::os {

// Begins to watch forks: called before the first fork that matters; later calls do nothing.
// |in_child| is called in every forked child, before fork returns there: it may take no lock and no
// memory.
void watch_forks(void (*in_child)());

// Number of watched forks between this process and the one that called watch_forks first.
uint32_t forks();

// Holds forks by other threads off while it lives; may stand inside another. A fork waits a second
// at most, so that a thread which waits for the forking one cannot hang both.
class ForkScope {
 public:
  ForkScope();
  ~ForkScope();
  ForkScope(const ForkScope&) = delete;
  ForkScope& operator=(const ForkScope&) = delete;
};

// Lets forks pass while it lives: for long work that holds no lock. It undoes this thread's scopes
// until then.
class ForkPause {
 public:
  ForkPause();
  ~ForkPause();
  ForkPause(const ForkPause&) = delete;
  ForkPause& operator=(const ForkPause&) = delete;

 private:
  uint32_t depth_;
};

}  // namespace pfrt::os
