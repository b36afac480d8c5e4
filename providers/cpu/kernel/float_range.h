// SPDX-License-Identifier: Apache-2.0
//
// The range of float32 elements. Plain data; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pfrt::cpu {

// A range that holds 0; NaNs are left out. Parts may be included in any order.
struct FloatRange {
  float low = 0, high = 0;

  void include(const FloatRange& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
};

using RangeFn = FloatRange (*)(const float* x, int64_t n);

}  // namespace pfrt::cpu
