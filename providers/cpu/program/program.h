// SPDX-License-Identifier: Apache-2.0
//
// A region at one signature: buffers, and steps with the kernels that were made for it. Must not
// outlive its executable. Immutable; steps run on many threads at once.
#pragma once

#include <deque>
#include <vector>

#include "providers/cpu/program/step.h"

namespace pfrt::cpu {

class Program {
 public:
  Program(std::vector<pfrt_buffer> buffers, std::deque<Step> steps);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void describe(pfrt_program& out) const;

 private:
  std::vector<pfrt_buffer> buffers_;
  std::deque<Step> steps_;
  std::vector<pfrt_step> table_;
};

}  // namespace pfrt::cpu
