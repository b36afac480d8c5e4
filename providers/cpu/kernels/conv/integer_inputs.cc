// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/integer_inputs.h"

#include <algorithm>
#include <functional>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {
namespace {

constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

}  // namespace

std::optional<std::vector<int32_t>> weight_zeros(const SnapshotNode& node,
                                                 const IntegerInputs& in) {
  if (!node.has_input(in.w_zero)) return std::vector<int32_t>{0};
  const int64_t n = node.input_elements(in.w_zero), channels = node.input_dims(in.w)[0];
  const pfrt_dtype dtype = node.input_dtype(in.w_zero);
  const void* const bytes = node.input_constant(in.w_zero);
  if (bytes == nullptr || n < 1 || channels % n != 0 || !kBytes.has(dtype)) return std::nullopt;
  std::vector<int32_t> zeros;
  for (int64_t i = 0; i < n; ++i)
    zeros.push_back(dtype == PFRT_DTYPE_INT8 ? static_cast<const int8_t*>(bytes)[i]
                                             : static_cast<const uint8_t*>(bytes)[i]);
  if (std::ranges::adjacent_find(zeros, std::not_equal_to<>()) == zeros.end()) zeros.resize(1);
  return zeros;
}

void apply_epilogue(const Run& run, const OutputLayout& layout, int64_t channel, int64_t count,
                    int64_t from, int64_t n) {
  constexpr int64_t kBlock = 16;
  const int64_t positions = layout.positions;
  if (layout.nchw16c) {
    const int64_t at = channel * positions + from * kBlock;
    return run.apply_epilogue(at, at + n * kBlock);
  }
  for (int64_t c = channel; c < channel + count; ++c)
    run.apply_epilogue(c * positions + from, c * positions + from + n);
}

}  // namespace pfrt::cpu
