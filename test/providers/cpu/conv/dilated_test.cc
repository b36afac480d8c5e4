// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose dilated taps lie beside the image at many positions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "providers/cpu/isa/isa.h"
#include "test/providers/cpu/conv/conv_case.h"

namespace pfrt::test {
namespace {

constexpr ConvShape square(int64_t in, int64_t height, int64_t width, int64_t out, int64_t dilation,
                           int64_t stride = 1) {
  return {1,      in,     height,   width,    out,      1,        3,        3,
          stride, stride, dilation, dilation, dilation, dilation, dilation, dilation};
}

// Dilations up to beyond the image, strides, groups, uneven padding, incomplete blocks of channels,
// and windows with dilations along one dimension.
constexpr ConvShape kDilated[] = {
    square(32, 14, 14, 40, 12),
    square(16, 33, 33, 16, 24),
    square(24, 9, 17, 8, 8),
    square(17, 10, 11, 33, 7),
    square(48, 7, 7, 64, 3),
    square(16, 15, 13, 24, 6, 2),
    square(20, 5, 5, 16, 9),
    square(168, 6, 6, 8, 5),
    square(336, 5, 7, 20, 4),
    {2, 32, 12, 10, 32, 2, 3, 3, 1, 1, 6, 5, 6, 5, 6, 5},
    {1, 16, 11, 11, 16, 1, 3, 3, 1, 1, 8, 8, 5, 9, 12, 8},
    {1, 16, 8, 40, 20, 1, 3, 3, 1, 1, 1, 20, 1, 20, 1, 20},
    {1, 40, 20, 6, 16, 1, 5, 3, 1, 1, 7, 1, 14, 1, 14, 1},
    {1, 16, 40, 1, 16, 1, 3, 1, 1, 1, 30, 1, 30, 0, 30, 0},
    {1, 16, 3, 600, 16, 1, 3, 3, 1, 2, 2, 300, 2, 300, 2, 300},
    {1, 4, 14, 14, 24, 1, 3, 3, 1, 1, 12, 12, 12, 12, 12, 12},
    {1, 16, 30, 30, 16, 1, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2},
};

TEST(Dilated, sums_are_those_of_double_precision_for_every_number_of_threads) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(3);
  for (const ConvShape& s : kDilated)
    for (const bool bias : {false, true}) expect_sums("conv_direct", s, conv_case(s, bias, random));
}

// Numbers that are not finite go where their products do, and no further.
TEST(Dilated, what_is_not_finite_stays_where_it_belongs) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(5);
  for (const ConvShape& s : kDilated)
    for (const bool in_weights : {false, true}) {
      Case c = conv_case(s, true, random);
      Values& values = c.inputs[in_weights ? 1 : 0].values;
      values[values.size() / 3] = std::numeric_limits<double>::infinity();
      values[values.size() / 2] = std::numeric_limits<double>::quiet_NaN();
      set_expected(s, c);
      expect_sums("conv_direct", s, c);
    }
}

}  // namespace
}  // namespace pfrt::test
