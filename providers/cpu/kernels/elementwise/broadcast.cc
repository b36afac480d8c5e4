// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/elementwise/broadcast.h"

#include "core/base/dtype.h"
#include "providers/cpu/kernel/kernel.h"

namespace pfrt::cpu {

Result<Broadcast> Broadcast::make(std::span<const int64_t> out,
                                  const std::vector<std::span<const int64_t>>& operands) {
  Broadcast b;
  b.operands_ = operands.size();
  b.elements_ = element_count(out.data(), out.size());
  if (b.elements_ < 0) return kernel_error("the output's dimensions are not known");
  const size_t count = operands.size();
  b.inner_step_.assign(count, 0);
  std::vector<int64_t> next(count, 1);  // stride of the current dimension, by operand
  std::vector<int64_t> extents, strides;
  for (size_t i = 0; i < count; ++i)
    if (operands[i].size() > out.size())
      return kernel_error("operand ", i, " has rank ", operands[i].size(), ", the output ",
                          out.size());
  for (size_t from_end = 1; from_end <= out.size(); ++from_end) {
    const int64_t extent = out[out.size() - from_end];
    std::vector<int64_t> here(count, 0);
    for (size_t i = 0; i < count; ++i) {
      if (from_end > operands[i].size()) continue;
      const int64_t d = operands[i][operands[i].size() - from_end];
      if (d != extent && d != 1)
        return kernel_error("operand ", i, " has ", d, " where the output has ", extent,
                            " (dimension ", out.size() - from_end, "): only 1 broadcasts");
      if (d == extent) here[i] = next[i];
      next[i] *= d;
    }
    if (extent == 1) continue;
    bool joins = !extents.empty();
    for (size_t i = 0; joins && i < count; ++i)
      joins = here[i] == strides[strides.size() - count + i] * extents.back();
    if (joins) {
      extents.back() *= extent;
      continue;
    }
    extents.push_back(extent);
    strides.insert(strides.end(), here.begin(), here.end());
  }
  if (extents.empty()) return b;
  b.inner_ = extents[0];
  b.inner_step_.assign(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(count));
  b.outer_.assign(extents.begin() + 1, extents.end());
  b.strides_.assign(strides.begin() + static_cast<std::ptrdiff_t>(count), strides.end());
  return b;
}

int64_t Broadcast::start(int64_t position, int64_t* offsets) const {
  const int64_t column = position % inner_;
  int64_t row = position / inner_;
  for (size_t i = 0; i < operands_; ++i) offsets[i] = column * inner_step_[i];
  for (size_t d = 0; d < outer_.size(); ++d) {
    const int64_t at = row % outer_[d];
    row /= outer_[d];
    for (size_t i = 0; i < operands_; ++i) offsets[i] += at * strides_[d * operands_ + i];
  }
  return column;
}

}  // namespace pfrt::cpu
