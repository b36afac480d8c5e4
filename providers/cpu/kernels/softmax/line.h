// SPDX-License-Identifier: Apache-2.0
//
// The steps of the softmax of a line, for Softmax, LogSoftmax and attention. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

struct LineMath {
  // The greatest of |floor| and n elements; NaN where one is.
  float (*greatest)(const float* x, int64_t n, float floor);
  // y[i] = exp(x[i] - shift), within 1.2 units in the last place, and their sum, of which four
  // terms at a time are added in float32. No x[i] is greater than |shift|, if it is a number. |y|
  // may be |x|.
  double (*exp)(const float* x, float* y, int64_t n, float shift);
  // y[i] = x[i] * factor, which may be rounded to float32 first. |y| may be |x|.
  void (*scale)(const float* x, float* y, int64_t n, double factor);
  // y[i] = (x[i] - first) - second. |y| may be |x|.
  void (*subtract)(const float* x, float* y, int64_t n, float first, float second);

  // x[i] += mask[i]; where mask[i] <= vanishes, which may be NaN, x[i] = mask[i]. Returns whether
  // some mask[i] is not minus infinity.
  bool (*add_mask)(const float* mask, float* x, int64_t n, float vanishes);

  // A row of scores. x has room for a multiple of 8 elements; those behind n may be written too.
  struct Scores {
    const float* mask;  // or null
    float* x;
    int64_t n;
    float most;
    double sum;
  };
  // For each row with elements: adds the mask as add_mask does; |most| becomes the greatest of
  // itself and the numbers among x[i]; unless it is minus infinity, x[i] becomes exp(x[i] - most)
  // and |sum| their sum. Null where there is none.
  void (*weigh)(Scores* rows, int64_t count, float vanishes);

  // The functions for the instructions that may be used.
  static LineMath here();
};

}  // namespace pfrt::cpu
