// SPDX-License-Identifier: Apache-2.0
//
// The parts of DynamicQuantizeLinear, with each set of instructions, element by element between
// guard pages: the range, and the nearest steps by quotients and by products.
#include "providers/cpu/kernels/quantize/byte_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

using cpu::ByteSteps, cpu::FloatRange, cpu::Isa, cpu::StepReciprocal;

class ByteStepsTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > cpu::machine_isa())
      GTEST_SKIP() << "this machine has no " << cpu::isa_name(GetParam());
  }
};

// Ties of |scale| and their neighbours, numbers out of range, infinities and NaN.
std::vector<float> floats(Random& random, int64_t n, float scale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) {
    const double tie = (static_cast<double>(random.from_to(-300, 300)) + 0.5) * scale;
    float x = static_cast<float>(tie);
    switch (random.below(12)) {
      case 0:
        x = std::nanf("");
        break;
      case 1:
        x = random.once_in(2) ? kInfinity : -kInfinity;
        break;
      case 2:
        x = random.once_in(2) ? 3e38F : -1e-44F;
        break;
      case 3:
      case 4:
        x = std::nextafterf(x, random.once_in(2) ? kInfinity : -kInfinity);
        break;
      case 5:
        x = static_cast<float>(random.uniform(-200, 200)) * scale;
        break;
      default:
        break;
    }
    out.push_back(x);
  }
  return out;
}

Guarded guarded(const std::vector<float>& x) {
  Guarded memory(x.size() * sizeof(float));
  if (!x.empty()) std::memcpy(memory.data(), x.data(), x.size() * sizeof(float));
  return memory;
}

uint8_t step_of(float x, float scale, float zero) {
  const float step = std::nearbyint(x / scale) + zero;
  return std::isnan(step) ? uint8_t{0}
                          : static_cast<uint8_t>(step < 0     ? 0
                                                 : step > 255 ? 255
                                                              : step);
}

TEST_P(ByteStepsTest, range_leaves_out_nan) {
  for (int64_t n = 0; n <= 200; ++n) {
    Random random(static_cast<uint64_t>(n));
    const std::vector<float> x = floats(random, n, 0.5F);
    FloatRange want;
    for (const float v : x)
      if (!std::isnan(v)) want.include({v, v});
    const Guarded memory = guarded(x);
    const FloatRange got =
        cpu::range_fn(GetParam())(reinterpret_cast<const float*>(memory.data()), n);
    EXPECT_EQ(got.low, want.low) << n;
    EXPECT_EQ(got.high, want.high) << n;
  }
}

TEST_P(ByteStepsTest, steps_are_those_of_quotients) {
  for (int64_t n = 0; n <= 200; ++n) {
    Random random(1000 + static_cast<uint64_t>(n));
    const auto scale = static_cast<float>(std::exp2(random.uniform(-10, 4)));
    const auto zero = random.from_to(0, 255);
    const std::vector<float> x = floats(random, n, scale);
    const Guarded memory = guarded(x);
    ByteSteps steps{scale, static_cast<float>(zero), std::nullopt};
    for (const bool products : {false, true}) {
      if (products) {
        steps.by = StepReciprocal::make(scale, -zero, 255 - zero);
        ASSERT_TRUE(steps.by.has_value()) << scale;
      }
      Guarded out(static_cast<size_t>(n));
      cpu::byte_steps_fn(GetParam())(steps, reinterpret_cast<const float*>(memory.data()), n,
                                     reinterpret_cast<uint8_t*>(out.data()));
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(reinterpret_cast<const uint8_t*>(out.data())[i], step_of(x[i], scale, steps.zero))
            << n << " element " << i << ", " << x[i] << " by " << scale << ", zero " << zero
            << (products ? ", by products" : "");
    }
  }
}

TEST(StepReciprocal, is_not_made_of_scales_out_of_range) {
  for (const float scale : {0.0F, -0.5F, 1e-35F, 1e35F, std::nanf("")})
    EXPECT_FALSE(StepReciprocal::make(scale, 0, 255).has_value()) << scale;
}

// Tests all ties and their neighbours with many scales, whose mantissas have a few bits or all.
TEST(StepReciprocal, leads_to_the_steps_of_quotients) {
  Random random(1);
  int64_t made = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto mantissa = static_cast<float>(random.from_to(1 << 23, (1 << 24) - 1));
    const float scale = std::ldexp(random.once_in(2) ? mantissa : std::floor(mantissa * 0x1p-18F),
                                   static_cast<int>(random.from_to(-40, 10)));
    const auto by = StepReciprocal::make(scale, -255, 255);
    if (!by) continue;
    ++made;
    for (int64_t n = -255; n < 255; ++n)
      for (int off = -3; off <= 3; ++off) {
        float x = static_cast<float>(static_cast<double>(static_cast<float>(n) + 0.5F) * scale);
        for (int k = 0; k < std::abs(off); ++k) x = std::nextafterf(x, off < 0 ? -1e30F : 1e30F);
        ASSERT_EQ(std::nearbyint(std::fma(x, by->high, x * by->low)), std::nearbyint(x / scale))
            << x << " by " << scale;
      }
  }
  EXPECT_GT(made, 1900);
}

INSTANTIATE_TEST_SUITE_P(Isa, ByteStepsTest,
                         testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& each) { return std::string(cpu::isa_name(each.param)); });

}  // namespace
}  // namespace pfrt::test
