// SPDX-License-Identifier: Apache-2.0
#include "core/base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace pfrt {
namespace {

TEST(Half, every_float16_survives_the_round_trip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = float16_to_float(half);
    const uint16_t back = float_to_float16(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float16_to_float(back))) << bits;
      EXPECT_EQ(back & 0x8000, half & 0x8000) << bits;
    } else {
      ASSERT_EQ(back, half) << bits;
    }
  }
}

TEST(Half, every_bfloat16_survives_the_round_trip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = bfloat16_to_float(half);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(value)))) << bits;
    else
      ASSERT_EQ(float_to_bfloat16(value), half) << bits;
  }
}

// The midpoint of two neighbours goes to the even one.
TEST(Half, bfloat16_rounds_to_nearest_even) {
  for (uint32_t high = 0; high < 0x7f80; ++high) {
    const uint32_t base = high << 16;
    const auto down = static_cast<uint16_t>(high), up = static_cast<uint16_t>(high + 1);
    EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(base | 0x7fffu)), down);
    EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(base | 0x8000u)), high & 1 ? up : down);
    EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(base | 0x8001u)), up);
  }
}

#if defined(__FLT16_MAX__)
// The compiler's own type is the reference.
uint16_t reference(float value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }

void expect_like_reference(uint32_t bits) {
  const float value = std::bit_cast<float>(bits);
  if (std::isnan(value)) {
    ASSERT_TRUE(std::isnan(float16_to_float(float_to_float16(value)))) << bits;
  } else {
    ASSERT_EQ(float_to_float16(value), reference(value)) << bits;
  }
}

TEST(Half, float16_rounds_like_the_compilers_type) {
  std::mt19937 random(16);
  for (int i = 0; i < 500000; ++i) expect_like_reference(static_cast<uint32_t>(random()));
  // Tests the neighbours of every float16 and of each midpoint between two of them.
  for (uint32_t half = 0; half < 0x7c00; ++half) {
    const auto low = std::bit_cast<uint32_t>(float16_to_float(static_cast<uint16_t>(half)));
    const float next =
        half + 1 == 0x7c00 ? 65536.0f : float16_to_float(static_cast<uint16_t>(half + 1));
    const float middle = (std::bit_cast<float>(low) + next) / 2;
    for (const uint32_t at : {low, std::bit_cast<uint32_t>(middle)})
      for (const uint32_t sign : {0u, 0x80000000u})
        for (const int step : {-1, 0, 1})
          expect_like_reference((at + static_cast<uint32_t>(step)) | sign);
  }
}

TEST(Half, float16_widens_like_the_compilers_type) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(half));
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(float16_to_float(half))) << bits;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(float16_to_float(half)), std::bit_cast<uint32_t>(expected))
          << bits;
  }
}
#endif

}  // namespace
}  // namespace pfrt
