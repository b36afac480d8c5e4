// SPDX-License-Identifier: Apache-2.0
//
// A region at one signature: buffers, and steps with the kernels that were made for it. Must not
// outlive its executable. Immutable after make; steps run on many threads at once.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "providers/cpu/compile/executable.h"
#include "providers/cpu/epilogue/broadcast_loop.h"
#include "providers/cpu/epilogue/row_norm.h"
#include "providers/cpu/program/step.h"

namespace pfrt::cpu {

class Program {
 public:
  // On an error |node| is the snapshot's node at fault, or PFRT_NO_INDEX.
  static Result<std::unique_ptr<Program>> make(const Executable& executable,
                                               const pfrt_shapes& shapes, uint32_t& node);
  void describe(pfrt_program& out) const;

 private:
  friend class ProgramBuilder;
  Program() = default;
  std::vector<pfrt_buffer> buffers_;
  std::deque<Step> steps_;
  std::vector<pfrt_step> table_;
};

}  // namespace pfrt::cpu
