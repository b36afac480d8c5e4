// SPDX-License-Identifier: Apache-2.0
//
// DynamicQuantizeLinear: to uint8, with the scale and zero point that fit the tensor's range.
#include <algorithm>
#include <vector>

#include "providers/cpu/kernels/convert.h"
#include "providers/cpu/kernels/matmul/requantize.h"
#include "providers/cpu/kernels/quantize/rows.h"
#include "providers/cpu/kernels/signature.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 16 * kBlock;
constexpr float kLevels = 255;

// A range that holds 0; NaNs are left out.
struct Range {
  float low = 0, high = 0;

  void include(const Range& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
};

Range range_of(const float* x, int64_t n) {
  constexpr int64_t kLanes = 16;
  float low[kLanes] = {}, high[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      low[j] = x[i + j] < low[j] ? x[i + j] : low[j];
      high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
    }
  }
  Range range;
  for (; i < n; ++i) range.include({std::min(0.0f, x[i]), std::max(0.0f, x[i])});
  for (int64_t j = 0; j < kLanes; ++j) range.include({low[j], high[j]});
  return range;
}

pfrt_code dynamic_quantize(const Run& run, int64_t n) {
  const float* x = run.input<float>(0);
  std::vector<Range> ranges(static_cast<size_t>((n + kTask - 1) / kTask));
  run.blocks(n, kTask, [&](int64_t begin, int64_t end) {
    ranges[static_cast<size_t>(begin / kTask)] = range_of(x + begin, end - begin);
  });
  Range range;
  for (const Range& part : ranges) range.include(part);

  const float scale = range.low == range.high ? 1.0f : (range.high - range.low) / kLevels;
  const float zero = std::clamp(round_even(-range.low / scale), 0.0f, kLevels);
  if (float* out = run.output<float>(1)) *out = scale;
  if (uint8_t* out = run.output<uint8_t>(2)) *out = converted<uint8_t>(zero);
  uint8_t* y = run.output<uint8_t>(0);
  if (y == nullptr) return run.stop();
  run.blocks(n, kTask, [&](int64_t begin, int64_t end) {
    float block[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t count = std::min(kBlock, end - at);
      for (int64_t i = 0; i < count; ++i) block[i] = round_even(x[at + i] / scale) + zero;
      store_block(PFRT_DTYPE_UINT8, block, count, y + at);
    }
  });
  return run.stop();
}

}  // namespace

Result<Kernel> make_dynamic_quantize(const SnapshotNode& node) {
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
  kernel.run = [n](const Run& run) { return dynamic_quantize(run, n); };
  return kernel;
}

}  // namespace pfrt::cpu
