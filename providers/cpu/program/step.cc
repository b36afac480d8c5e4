// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/step.h"

#include <new>

namespace pfrt::cpu {

pfrt_code run_step(void* state, const pfrt_step_context* context) {
  const Step& step = *static_cast<const Step*>(state);
  const Run run(context, step.inputs.data(), step.outputs.data(),
                {.precision = step.precision,
                 .packed = step.packed,
                 .shared = step.shared,
                 .epilogue = step.epilogue ? &*step.epilogue : nullptr,
                 .norm = step.norm ? &*step.norm : nullptr});
  if (step.norm) step.norm->start(context->buffers);
  try {
    return step.kernel.run(run);
  } catch (const std::bad_alloc&) {
    return run.fail(Code::kOUT_OF_MEMORY, step.name, ": no memory for temporaries");
  } catch (...) {
    return run.fail(Code::kINTERNAL, step.name, ": an exception left the kernel");
  }
}

double estimate_ns(double flops, uint64_t bytes) {
  return static_cast<double>(bytes) / 10 + flops / 50;
}

}  // namespace pfrt::cpu
