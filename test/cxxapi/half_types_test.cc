// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <pyflame_rt/quantization/half_types.hpp>

namespace pfrt_test {
namespace {

using namespace pyflame_rt::quantization;

TEST(HalfTypes, guide) {
  // Float16 (IEEE 754 binary16)
  Float16 f16 = Float16::from_float(3.14f);
  float f32 = f16.to_float();

  // BFloat16 (Brain floating-point)
  BFloat16 bf16 = BFloat16::from_float(3.14f);
  float f32_2 = bf16.to_float();

  // Check special values
  if (f16.is_nan()) { /* handle NaN */
  }
  if (f16.is_inf()) { /* handle infinity */
  }

  EXPECT_EQ(f32, 3.140625f);
  EXPECT_EQ(f32_2, 3.140625f);
  EXPECT_FALSE(f16.is_nan() || f16.is_inf());
  EXPECT_FALSE(bf16.is_nan() || bf16.is_inf());
}

template <class Half>
void every_number_survives_a_float() {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half = Half::from_bits(static_cast<uint16_t>(bits));
    const float value = half.to_float();
    ASSERT_EQ(half.is_nan(), std::isnan(value)) << bits;
    ASSERT_EQ(half.is_inf(), std::isinf(value)) << bits;
    const Half back = Half::from_float(value);
    if (half.is_nan())
      ASSERT_TRUE(back.is_nan()) << bits;
    else
      ASSERT_EQ(back.bits(), bits);
  }
}

TEST(HalfTypes, every_number_survives_a_float) {
  every_number_survives_a_float<Float16>();
  every_number_survives_a_float<BFloat16>();
}

TEST(HalfTypes, rounds_to_nearest_even) {
  EXPECT_EQ(Float16::from_float(1.0f + 0x1p-11f).bits(), 0x3c00);  // a tie, down to even
  EXPECT_EQ(Float16::from_float(1.0f + 0x3p-11f).bits(), 0x3c02);  // a tie, up to even
  EXPECT_EQ(Float16::from_float(65519.0f).to_float(), 65504.0f);
  EXPECT_TRUE(Float16::from_float(65520.0f).is_inf());
  EXPECT_EQ(Float16::from_float(0x1p-25f).bits(), 0);
  EXPECT_EQ(Float16::from_float(0x1.8p-25f).bits(), 1);
  EXPECT_EQ(BFloat16::from_float(1.0f + 0x1p-8f).bits(), 0x3f80);
  EXPECT_EQ(BFloat16::from_float(1.0f + 0x3p-8f).bits(), 0x3f82);
}

TEST(HalfTypes, compare_as_numbers) {
  EXPECT_EQ(Float16(0.0f), Float16(-0.0f));
  EXPECT_NE(Float16(NAN), Float16(NAN));
  EXPECT_TRUE(Float16(-0.0f).is_zero());
  EXPECT_TRUE(BFloat16(-INFINITY).is_inf());
  EXPECT_EQ(static_cast<float>(BFloat16(2.0f)), 2.0f);
}

}  // namespace
}  // namespace pfrt_test
