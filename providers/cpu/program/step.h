// SPDX-License-Identifier: Apache-2.0
//
// A step of a program: a kernel with the buffers it touches. Immutable once its program is made;
// steps run on many threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "providers/cpu/epilogue/broadcast_loop.h"
#include "providers/cpu/epilogue/row_norm.h"
#include "providers/cpu/kernel/kernel.h"
#include "providers/cpu/kernel/types.h"

namespace pfrt::cpu {

struct Step {
  Kernel kernel;
  // Runs in place of the kernel, where dimensions vary; empty elsewhere.
  std::function<pfrt_code(const pfrt_step_context&)> varying;
  std::optional<Epilogue> epilogue;
  std::optional<RowNorm> norm;
  std::vector<uint32_t> inputs,
      outputs;  // buffers, by position of the node's inputs and outputs; PFRT_NO_INDEX where absent
  std::vector<uint32_t> reads, writes;  // these buffers without gaps and repeats
  std::vector<uint32_t> nodes;
  std::string name, detail, tuning;
  // Pairs (position in inputs, position in outputs) that may share memory.
  std::vector<std::pair<uint32_t, uint32_t>> aliases;
  size_t inner_aliases = SIZE_MAX;  // so many of them may share the program's own memory too
  bool unaligned = false;           // inputs[0] may be
  uint64_t bytes = 0;
  pfrt_step_flags flags = 0;
  Precision precision = Precision::kFloat32;  // Run::Extras
  uint32_t packed = PFRT_NO_INDEX, shared = PFRT_NO_INDEX, given_range = PFRT_NO_INDEX;
};

// The function of pfrt_step::run; |state| is a Step.
pfrt_code run_step(void* state, const pfrt_step_context* context);

// Number of threads that the step can use; 0 = any.
uint32_t width_of(const Step& step);

// Nanoseconds a step takes, roughly: memory at 10 bytes/ns and arithmetic at 50 operations/ns.
double estimate_ns(double flops, uint64_t bytes);

}  // namespace pfrt::cpu
