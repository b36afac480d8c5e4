// SPDX-License-Identifier: Apache-2.0
//
// What a step gets from the host in a run: buffers, threads, scratch memory between guard pages, a
// place for its message. One run at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pyflame_rt/plugin.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {

class StepHost {
 public:
  // |buffers| by index. Parallel work runs on |workers| threads.
  StepHost(std::vector<void*> buffers, uint32_t workers, uint64_t scratch_bytes);
  StepHost(const StepHost&) = delete;
  StepHost& operator=(const StepHost&) = delete;

  const pfrt_step_context* context() const { return &context_; }
  const std::string& message() const { return message_; }

 private:
  static void parallel(const pfrt_step_context* context, uint64_t n,
                       void (*fn)(void*, uint64_t, uint32_t), void* arg);
  std::vector<void*> buffers_;
  std::vector<Guarded> scratch_;
  std::string message_;
  pfrt_step_context context_{};
};

}  // namespace pfrt::test
