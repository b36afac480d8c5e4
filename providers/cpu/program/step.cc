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
                 .norm = step.norm ? &*step.norm : nullptr,
                 .given_range = step.given_range});
  if (step.epilogue) step.epilogue->start(context->buffers);
  if (step.norm) step.norm->start(context->buffers);
  try {
    return step.varying ? step.varying(*context) : step.kernel.run(run);
  } catch (const std::bad_alloc&) {
    return run.fail(Code::kOUT_OF_MEMORY, step.name, ": no memory for temporaries");
  } catch (...) {
    return run.fail(Code::kINTERNAL, step.name, ": an exception left the kernel");
  }
}

// A step that takes no longer than waking another thread runs on one.
uint32_t width_of(const Step& step) {
  constexpr double kLeastShared = 5e3;  // nanoseconds, as estimated
  const bool little =
      step.kernel.flops > 0 && estimate_ns(step.kernel.flops, step.bytes) < kLeastShared;
  return little ? 1 : step.kernel.width;
}

double estimate_ns(double flops, uint64_t bytes) {
  return static_cast<double>(bytes) / 10 + flops / 50;
}

}  // namespace pfrt::cpu
