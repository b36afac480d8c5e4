// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernel/slice_range.h"

#include <algorithm>

#include "providers/cpu/kernel/kernel.h"

namespace pfrt::cpu {

Result<SliceRange> slice_range(int64_t start, int64_t end, int64_t step, int64_t size) {
  if (step == 0) return kernel_error("a step is 0");
  if (size == 0) return SliceRange{0, 0, step};
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  if (start < 0) start = start < -size ? low : start + size;
  if (end < 0) end = end < -size ? low : end + size;
  start = std::clamp(start, std::min<int64_t>(0, high), std::max<int64_t>(high, 0));
  end = std::clamp(end, low, std::max(low, high));
  if (step > 0) return SliceRange{start, end > start ? (end - start - 1) / step + 1 : 0, step};
  const int64_t back = step == INT64_MIN ? INT64_MAX : -step;
  return SliceRange{start, start > end ? (start - end - 1) / back + 1 : 0, step};
}

}  // namespace pfrt::cpu
