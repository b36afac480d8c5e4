// SPDX-License-Identifier: Apache-2.0
//
// Interfaces of threads for loops and tasks.
#pragma once

#include <cstdint>

#include "core/base/status.h"

namespace pfrt {

using LoopBody = void (*)(void* arg, uint64_t i, uint32_t worker);
using Task = void (*)(void* arg);

// Threads of an environment, in place of the process's own.
class Executor {
 public:
  virtual ~Executor() = default;
  // Like parallel_for; false when not every index was called.
  virtual bool loop(uint32_t width, uint64_t n, LoopBody body, void* arg) = 0;
  // Like submit.
  virtual Status submit(Task task, void* arg) = 0;
  virtual uint32_t width() const { return 0; }  // number of threads; 0 = as many as asked for
};

// A run in progress on |width| threads: while one lives, idle threads look longer for the next loop
// before they sleep.
class LoopsAhead {
 public:
  explicit LoopsAhead(uint32_t width);
  ~LoopsAhead();
  LoopsAhead(const LoopsAhead&) = delete;
  LoopsAhead& operator=(const LoopsAhead&) = delete;

 private:
  const uint32_t width_;
};

}  // namespace pfrt
