// SPDX-License-Identifier: Apache-2.0
#include "core/verify/trial_run.h"

#include "core/base/os/cpu.h"
#include "core/exec/device_copy.h"

namespace pfrt {

Status run_trial(CompiledGraph& graph, const std::vector<ValuePtr>& inputs, double seconds,
                 const Progress& progress, std::vector<ValuePtr>& outputs) {
  RunControl control;
  control.cancelled = progress.cancel_flag();
  control.deadline_ns =
      progress.deadline_within(os::monotonic_ns() + static_cast<uint64_t>(seconds * 1e9));
  outputs.clear();
  return run_and_copy_back(graph, inputs, std::vector<OutputRequest>(graph.graph().outputs.size()),
                           control, outputs);
}

}  // namespace pfrt
