// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/reduce/plan.h"

#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {

void Axes::push(int64_t extent, int64_t stride) {
  count *= extent;
  if (extent == 1) return;
  if (!extents.empty() && stride == extents.back() * strides.back()) {
    extents.back() *= extent;
    return;
  }
  extents.push_back(extent);
  strides.push_back(stride);
}

int64_t Axes::offset(int64_t i) const {
  int64_t at = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    at += i % extents[d] * strides[d];
    i /= extents[d];
  }
  return at;
}

Result<ReducePlan> ReducePlan::make(std::span<const int64_t> dims, std::span<const int64_t> axes,
                                    bool all_if_empty) {
  std::vector<bool> is_reduced(dims.size(), axes.empty() && all_if_empty);
  for (const int64_t axis : axes) {
    PFRT_ASSIGN(const int64_t at, axis_of(axis, dims.size()));
    is_reduced[static_cast<size_t>(at)] = true;
  }
  ReducePlan plan;
  int64_t stride = 1;
  bool innermost = true;
  for (size_t d = dims.size(); d-- > 0;) {
    (is_reduced[d] ? plan.reduced : plan.kept).push(dims[d], stride);
    if (dims[d] != 1 && innermost) {
      plan.columns = !is_reduced[d];
      innermost = false;
    }
    stride *= dims[d];
  }
  return plan;
}

}  // namespace pfrt::cpu
