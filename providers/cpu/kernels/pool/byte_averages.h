// SPDX-License-Identifier: Apache-2.0
//
// Averages in bytes from sums of bytes: input (X, its scale, its zero point, Y's scale, Y's zero
// point) of QLinearAveragePool and QLinearGlobalAveragePool. A sum less the zero points of its
// taps, times X's scale over Y's and the number of taps that count, is rounded once. Immutable;
// thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

class ByteAverages {
 public:
  // Parameters that are known in a run.
  struct Values {
    double ratio;    // X's scale over Y's
    int32_t x_zero;  // of bytes with their highest bit inverted by |flip|, which have no sign
    int32_t y_zero;
    uint8_t flip;
    RequantizeFns fns;
    StoreFn<float> store;

    // The factor of a sum where |taps| count.
    float factor(int64_t taps) const {
      return static_cast<float>(ratio / static_cast<double>(taps > 0 ? taps : 1));
    }
    // Writes the averages of |n| sums with a factor each.
    void columns(const int32_t* sums, const float* factors, int64_t n, uint8_t* out) const;
    // Writes the averages of |n| lines of 16 sums with one factor, as lines of 16 bytes.
    void lines(const int32_t* sums, float factor, int64_t n, uint8_t* out) const;
    // Writes a single average; its sum may have more bits than those of the other functions.
    void one(int64_t sum, float factor, uint8_t* out) const;
  };

  // Checks inputs 1 to 4 of the node.
  static Result<ByteAverages> make(const SnapshotNode& node);
  Values read(const Run& run) const;

 private:
  explicit ByteAverages(const SnapshotNode& node);
  Parameter x_scale_, x_zero_, y_scale_, y_zero_;
  bool has_sign_;
  pfrt_dtype out_;
};

}  // namespace pfrt::cpu
