// SPDX-License-Identifier: Apache-2.0
//
// The remainder of two float32 has the bits of fmod, whatever the numbers.
#include "providers/cpu/elements/arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace pfrt::test::remainders {
namespace {

void check(float a, float b) {
  const float got = cpu::remainder_of(a, b), want = std::fmod(a, b);
  if (std::isnan(want))
    ASSERT_TRUE(std::isnan(got)) << a << " by " << b;
  else
    ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want)) << a << " by " << b;
}

TEST(Remainder, of_float32_is_fmod) {
  std::mt19937 random(1);
  const auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
  for (int i = 0; i < 200'000 && !testing::Test::HasFatalFailure(); ++i) {
    const float b = any();
    check(any(), b);
    // The quotient is near a whole number of up to 30 bits.
    const auto whole = static_cast<float>(random() >> (2 + random() % 30));
    const float a = b * whole;
    for (const float near : {a, std::nextafter(a, 0.0F), std::nextafter(a, 2 * a)}) {
      check(near, b);
      check(-near, b);
    }
  }
}

TEST(Remainder, of_float32_has_the_limits_of_fmod) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLimits[] = {0.0F,
                               -0.0F,
                               1.0F,
                               -1.5F,
                               0x1p-149F,
                               -0x1p-126F,
                               0x1p27F,
                               3e38F,
                               kInfinity,
                               -kInfinity,
                               std::numeric_limits<float>::quiet_NaN()};
  for (const float a : kLimits)
    for (const float b : kLimits) check(a, b);
}

}  // namespace
}  // namespace pfrt::test::remainders
