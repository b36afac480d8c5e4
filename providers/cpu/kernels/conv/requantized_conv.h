// SPDX-License-Identifier: Apache-2.0
//
// Rounding of the sums of a QLinearConv to bytes: x scale times w scale over y scale, one a
// channel, and y's zero point. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

class RequantizedConv {
 public:
  static constexpr int64_t kLine = RequantizeFns::kLine;

  // Parameters that are known in a run.
  struct Scales {
    std::vector<float> scales;  // by channel
    float zero;
    bool finite, below_one;  // all scales
    bool is_signed;
    RequantizeFns fns;
    StoreFn<float> store;

    // Rounds |n| lines of 16 sums, whose first |count| are channels from |channel| on, to lines of
    // bytes.
    void lines(const int32_t* sums, int64_t channel, int64_t count, int64_t n, uint8_t* out) const;
  };

  // Checks inputs 1, 4, 6, 7 and 8 of the node.
  static Result<RequantizedConv> make(const SnapshotNode& node);
  Scales read(const Run& run) const;

 private:
  RequantizedConv(const SnapshotNode& node, int64_t channels);
  int64_t channels_;
  Parameter x_scale_, w_scale_, y_scale_, y_zero_;
  pfrt_dtype dtype_;
};

}  // namespace pfrt::cpu
