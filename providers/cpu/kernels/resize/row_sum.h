// SPDX-License-Identifier: Apache-2.0
//
// The rows of an input of Resize that make one row of the output. Not shared between threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernels/resize/plan.h"

namespace pfrt::cpu {

// The rows that the first |outer| axes of a plan give at |at|, and how much of each.
class RowSum {
 public:
  // |start| elements into the input.
  RowSum(const ResizePlan& plan, size_t outer, const int64_t* at, int64_t start = 0)
      : start_(start) {
    for (size_t i = 0; i < outer; ++i) {
      const ResizePlan::Axis& axis = plan.axes[i];
      if (axis.taps.count == 0)
        start_ += at[i] * axis.stride;
      else
        axes_[count_++] = {&axis, at[i] * axis.taps.count};
    }
  }

  // Calls fn(first element, weight) for each row with a weight.
  template <typename Fn>
  void each(Fn&& fn) const {
    int64_t k[kMostAxes] = {};
    for (;;) {
      int64_t from = start_;
      double weight = 1;
      for (size_t i = 0; i < count_; ++i) {
        const Taps& taps = axes_[i].axis->taps;
        const size_t tap = static_cast<size_t>(axes_[i].first + k[i]);
        from += taps.index[tap] * axes_[i].axis->stride;
        weight *= taps.weight[tap];
      }
      if (weight != 0) fn(from, weight);
      size_t i = count_;
      while (i > 0 && ++k[i - 1] == axes_[i - 1].axis->taps.count) k[--i] = 0;
      if (i == 0) return;
    }
  }

  // Elements [first, first + n) of the sum, n at most kBlock.
  template <typename T>
  void add_up(pfrt_dtype dtype, const void* x, int64_t first, int64_t n, T* out) const {
    T block[kBlock];
    bool begun = false;
    each([&](int64_t from, double weight) {
      const T* row = read_block(dtype, x, from + first, n, block);
      const T w = static_cast<T>(weight);
      if (begun) {
        for (int64_t i = 0; i < n; ++i) out[i] += w * row[i];
      } else {
        for (int64_t i = 0; i < n; ++i) out[i] = w * row[i];
      }
      begun = true;
    });
    if (!begun) std::fill_n(out, n, T{0});
  }

  // The sum is one row as it is.
  bool is_one_element() const { return count_ == 0; }
  int64_t start() const { return start_; }

 private:
  struct AxisTaps {
    const ResizePlan::Axis* axis;
    int64_t first;  // tap of the coordinate
  };
  AxisTaps axes_[kMostAxes];
  size_t count_ = 0;
  int64_t start_ = 0;
};

}  // namespace pfrt::cpu
