// SPDX-License-Identifier: Apache-2.0
//
// The host's part of a step's run: buffers, threads, scratch memory between guard pages, a place
// for its message. For one run at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pyflame_rt/plugin.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {

class StepHost {
 public:
  // |buffers| are by index. Parallel work runs on |workers| threads. The run is cancelled after
  // |looks| looks of the step.
  StepHost(std::vector<void*> buffers, uint32_t workers, uint64_t scratch_bytes,
           uint64_t looks = UINT64_MAX);
  StepHost(const StepHost&) = delete;
  StepHost& operator=(const StepHost&) = delete;

  // Gives memory to outputs whose dimensions only the run tells; without it they are refused.
  using Alloc = std::function<void*(uint32_t buffer, const std::vector<int64_t>& dims)>;
  void set_alloc(Alloc alloc) { alloc_ = std::move(alloc); }

  const pfrt_step_context* context() const { return &context_; }
  const std::string& message() const { return message_; }
  uint64_t looks() const { return looks_; }

 private:
  static void parallel(const pfrt_step_context* context, uint64_t n,
                       void (*fn)(void*, uint64_t, uint32_t), void* arg);
  std::vector<void*> buffers_;
  std::vector<Guarded> scratch_;
  std::string message_;
  Alloc alloc_;
  uint64_t last_look_;
  std::atomic<uint64_t> looks_{0};
  pfrt_step_context context_{};
};

}  // namespace pfrt::test
