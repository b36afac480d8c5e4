// SPDX-License-Identifier: Apache-2.0
//
// Threads as loops and tasks see them.
#pragma once

#include <cstdint>

#include "core/base/status.h"

namespace pfrt {

using LoopBody = void (*)(void* arg, uint64_t i, uint32_t worker);
using Task = void (*)(void* arg);

// Threads that are not the process's own: an environment may have others.
class Executor {
 public:
  virtual ~Executor() = default;
  // As parallel_for; false when not everything was called.
  virtual bool loop(uint32_t width, uint64_t n, LoopBody body, void* arg) = 0;
  // As submit.
  virtual Status submit(Task task, void* arg) = 0;
  virtual uint32_t width() const { return 0; }  // threads there are; 0 = as many as asked for
};

// A run: while one lives, threads without work look for the next loop longer before they sleep.
class LoopsAhead {
 public:
  LoopsAhead();
  ~LoopsAhead();
  LoopsAhead(const LoopsAhead&) = delete;
  LoopsAhead& operator=(const LoopsAhead&) = delete;
};

}  // namespace pfrt
