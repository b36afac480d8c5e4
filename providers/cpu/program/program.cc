// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/program.h"

#include <utility>

namespace pfrt::cpu {
namespace {

pfrt_step table_row(Step& step) {
  pfrt_step out{};
  out.run = run_step;
  out.state = &step;
  out.reads = step.reads.data();
  out.writes = step.writes.data();
  out.read_count = static_cast<uint32_t>(step.reads.size());
  out.write_count = static_cast<uint32_t>(step.writes.size());
  out.nodes = step.nodes.data();
  out.node_count = static_cast<uint32_t>(step.nodes.size());
  out.width = width_of(step);
  out.scratch_bytes = step.kernel.scratch_bytes;
  out.est_ns = estimate_ns(step.kernel.flops, step.bytes);
  out.flops = step.kernel.flops > 0 ? static_cast<uint64_t>(step.kernel.flops) : 0;
  out.bytes = step.bytes;
  out.flags = step.flags;
  out.kernel = to_c(step.name);
  out.detail = to_c(step.detail);
  out.tuning = to_c(step.tuning);
  return out;
}

}  // namespace

Program::Program(std::vector<pfrt_buffer> buffers, std::deque<Step> steps)
    : buffers_(std::move(buffers)), steps_(std::move(steps)) {
  table_.reserve(steps_.size());
  for (Step& step : steps_) table_.push_back(table_row(step));
}

void Program::describe(pfrt_program& out) const {
  out.abi = PFRT_ABI_VERSION;
  out.buffer_size = sizeof(pfrt_buffer);
  out.step_size = sizeof(pfrt_step);
  out.buffer_count = static_cast<uint32_t>(buffers_.size());
  out.step_count = static_cast<uint32_t>(table_.size());
  out.buffers = buffers_.data();
  out.steps = table_.data();
}

}  // namespace pfrt::cpu
