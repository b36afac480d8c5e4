// SPDX-License-Identifier: Apache-2.0
//
// A region at one signature: buffers, and steps whose run functions hold the made kernels. Must not
// outlive its executable. Immutable after make; steps run on many threads at once.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "providers/cpu/executable.h"
#include "providers/cpu/kernel.h"
#include "providers/cpu/row_norm.h"
#include "providers/cpu/spread_loop.h"

namespace pfrt::cpu {

struct Step {
  Kernel kernel;
  std::optional<Tail> tail;
  std::optional<RowNorm> norm;
  std::vector<uint32_t> inputs,
      outputs;  // buffers by position of the kernel, PFRT_NO_INDEX where absent
  std::vector<uint32_t> reads, writes;  // the same without gaps and repeats
  std::vector<uint32_t> nodes;
  std::string name, detail;
  // Pairs (position in inputs, position in outputs) that may share memory.
  std::vector<std::pair<uint32_t, uint32_t>> aliases;
  bool any_address = false;  // of inputs[0]
  uint64_t bytes = 0;
  pfrt_step_flags flags = 0;
  Precision precision = Precision::kFloat32;  // Run::Extras
  uint32_t packed = PFRT_NO_INDEX, shared = PFRT_NO_INDEX;
};

// pfrt_step::run of a Step, the |state|.
pfrt_code run_step(void* state, const pfrt_step_context* context);

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

// Nanoseconds a step takes, roughly: memory at 10 bytes/ns and arithmetic at 50 operations/ns.
double estimate_ns(double flops, uint64_t bytes);

}  // namespace pfrt::cpu
