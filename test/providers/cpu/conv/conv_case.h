// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of two dimensions with the sums that double precision gives. Pixels beside the image
// are zeros, which products with infinite weights show. Plain data; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/one_node.h"

namespace pfrt::test {

struct ConvShape {
  int64_t batch = 1, in = 1, height = 1, width = 1, out = 1, groups = 1;
  int64_t taps_y = 3, taps_x = 3, stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;  // padding

  int64_t rows() const;
  int64_t columns() const;
  std::string text() const;
};

// Values of the result are for set_expected.
Case conv_case(const ConvShape& shape, bool bias, Random& random);
// Writes the results of the case's inputs, with the error that sums of float32 may have.
void set_expected(const ConvShape& shape, Case& c);
// Expects these of the row of that name, within the error, and the same bits on 4 threads.
void expect_sums(std::string_view row, const ConvShape& shape, const Case& c);

}  // namespace pfrt::test
