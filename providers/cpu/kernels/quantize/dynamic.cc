// SPDX-License-Identifier: Apache-2.0
//
// DynamicQuantizeLinear: to uint8, with the scale and zero point that fit the tensor's range.
#include <algorithm>
#include <string>
#include <vector>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/quantize/byte_steps.h"
#include "providers/cpu/kernels/quantize/rows.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 16 * kBlock;
constexpr float kLevels = 255;
constexpr int64_t kWorthReciprocal = 1 << 15;  // elements

FloatRange range_in_parts(const Run& run, const float* x, int64_t n, RangeFn range_of) {
  std::vector<FloatRange> ranges(static_cast<size_t>(ceil_div(n, kTask)));
  run.blocks(n, kTask, [&](int64_t begin, int64_t end) {
    ranges[static_cast<size_t>(begin / kTask)] = range_of(x + begin, end - begin);
  });
  FloatRange range;
  for (const FloatRange& part : ranges) range.include(part);
  return range;
}

pfrt_code dynamic_quantize(const Run& run, int64_t n, RangeFn range_of, ByteStepsFn to_steps) {
  const float* x = run.input<float>(0);
  const FloatRange* const given = run.given_range();
  const FloatRange range = given != nullptr ? *given : range_in_parts(run, x, n, range_of);
  ByteSteps steps = byte_steps_of(range);
  if (float* out = run.output<float>(1)) *out = steps.scale;
  if (uint8_t* out = run.output<uint8_t>(2)) *out = static_cast<uint8_t>(steps.zero);
  uint8_t* y = run.output<uint8_t>(0);
  if (y == nullptr) return run.stop();
  if (n >= kWorthReciprocal) {
    const auto least = static_cast<int64_t>(-steps.zero);
    steps.by = StepReciprocal::make(steps.scale, least, least + static_cast<int64_t>(kLevels));
  }
  // Begins at the end, which is still in a cache.
  const int64_t tasks = ceil_div(n, kTask);
  run.parallel(tasks, [&](int64_t i, uint32_t) {
    const int64_t begin = (tasks - 1 - i) * kTask;
    to_steps(steps, x + begin, std::min(n - begin, kTask), y + begin);
  });
  return run.stop();
}

}  // namespace

std::string refuse_dynamic_quantize(const KernelRequest& node) {
  return node.sides.input == node.sides.output ? "" : "the result has the layout of what it is of";
}

Result<Kernel> make_dynamic_quantize(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 0));
  constexpr pfrt_dtype kOutputs[] = {PFRT_DTYPE_UINT8, PFRT_DTYPE_FLOAT32, PFRT_DTYPE_UINT8};
  for (uint32_t i = 0; i < 3; ++i) {
    if (!node.has_output(i)) continue;
    if (node.output_dtype(i) != kOutputs[i])
      return error(Code::kDTYPE_MISMATCH, "output ", i, " is ", dtype_name(node.output_dtype(i)),
                   ": ", dtype_name(kOutputs[i]));
    PFRT_TRY(need_output_dims(node, i, i == 0 ? node.input_dims(0) : std::span<const int64_t>()));
  }
  Kernel kernel;
  const int64_t n = node.input_elements(0);
  kernel.flops = 4 * static_cast<double>(n);
  kernel.range_of_input = range_fn(isa());
  kernel.run = [n, range = range_fn(isa()), steps = byte_steps_fn(isa())](const Run& run) {
    return dynamic_quantize(run, n, range, steps);
  };
  return kernel;
}

}  // namespace pfrt::cpu
