// SPDX-License-Identifier: Apache-2.0
//
// Maxima over windows of a float32 plane, 8 or 4 positions at a time, for strides of 1, 2 and 3
// along rows, with AVX2. Results are those of comparing tap after tap, bit for bit. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/window/window.h"

namespace pfrt::cpu {

class MaxRows {
 public:
  static bool takes(const WindowRows& rows);
  explicit MaxRows(const WindowRows& rows);
  // Row |row| of the positions.
  void run(Pace& pace, int64_t row, const float* plane, float* line) const;

 private:
  WindowRows rows_;
  std::vector<int64_t>
      starts_;  // rows of pixels that a row's taps are in, tap rows outside left out
  std::vector<int64_t> first_;               // a row's first in |starts_|, and the end
  int64_t inner_begin_ = 0, inner_end_ = 0;  // positions all taps of which are on the row
};

}  // namespace pfrt::cpu
