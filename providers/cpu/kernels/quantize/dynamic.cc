// SPDX-License-Identifier: Apache-2.0
//
// DynamicQuantizeLinear: to uint8, with the scale and zero point that fit the tensor's range.
#include <emmintrin.h>

#include <algorithm>
#include <vector>

#include "providers/cpu/kernels/quantize/rows.h"
#include "providers/cpu/row/convert.h"
#include "providers/cpu/row/requantize.h"
#include "providers/cpu/row/signature.h"

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
  constexpr int64_t kVectors = 4, kLanes = 4 * kVectors;
  __m128 low[kVectors], high[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) low[v] = high[v] = _mm_setzero_ps();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t v = 0; v < kVectors;
         ++v) {  // where one operand is NaN, the instruction gives the second
      const __m128 more = _mm_loadu_ps(x + i + 4 * v);
      low[v] = _mm_min_ps(more, low[v]);
      high[v] = _mm_max_ps(more, high[v]);
    }
  Range range;
  for (; i < n; ++i) range.include({std::min(0.0f, x[i]), std::max(0.0f, x[i])});
  for (int64_t v = 0; v < kVectors; ++v) {
    float lows[4], highs[4];
    _mm_storeu_ps(lows, low[v]);
    _mm_storeu_ps(highs, high[v]);
    for (int64_t j = 0; j < 4; ++j) range.include({lows[j], highs[j]});
  }
  return range;
}

// To the nearest step of |scale|, ties to even, from |zero| on; saturated, NaN to 0.
struct Quantizer {
  float scale, zero;

  __m128i four(const float* x) const {
    // What is far outside saturates at either end; a NaN becomes the least integer.
    const __m128 steps = _mm_div_ps(_mm_loadu_ps(x), _mm_set1_ps(scale));
    const __m128 near = _mm_max_ps(_mm_set1_ps(-1024), _mm_min_ps(_mm_set1_ps(1024), steps));
    return _mm_add_epi32(_mm_cvtps_epi32(near), _mm_cvtps_epi32(_mm_set1_ps(zero)));
  }
  void sixteen(const float* x, uint8_t* y) const {
    const __m128i a = _mm_packs_epi32(four(x), four(x + 4)),
                  b = _mm_packs_epi32(four(x + 8), four(x + 12));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm_packus_epi16(a, b));
  }
  void line(const float* x, int64_t n, uint8_t* y) const {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) sixteen(x + i, y + i);
    if (i == n) return;
    float last[16] = {};
    uint8_t out[16];
    std::copy_n(x + i, n - i, last);
    sixteen(last, out);
    std::copy_n(out, n - i, y + i);
  }
};

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
  const Quantizer quantizer{scale, zero};
  run.blocks(n, kTask, [&](int64_t begin, int64_t end) {
    quantizer.line(x + begin, end - begin, y + begin);
  });
  return run.stop();
}

}  // namespace

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
  kernel.run = [n](const Run& run) { return dynamic_quantize(run, n); };
  return kernel;
}

}  // namespace pfrt::cpu
