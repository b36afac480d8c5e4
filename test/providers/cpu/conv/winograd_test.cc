// SPDX-License-Identifier: Apache-2.0
//
// Winograd's convolutions, compared with plain ones: their errors against double precision, and
// numbers that transforms would spread to positions that do not see them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/one_node.h"

namespace pfrt::test {
namespace {

constexpr int64_t kChannels = 64, kSide = 19;

class Winograd : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
    make(3);
  }

  // Makes a convolution with |taps| x |taps| taps of |channels| channels.
  void make(int64_t taps, int64_t channels = kChannels) {
    taps_ = taps;
    channels_ = channels;
    Random random(11);
    c_.inputs = {random.data(PFRT_DTYPE_FLOAT32, {1, channels, kSide, kSide}),
                 random.data(PFRT_DTYPE_FLOAT32, {channels, channels, taps, taps})};
    c_.inputs[1].constant = true;
    c_.outputs = {{PFRT_DTYPE_FLOAT32,
                   {1, channels, kSide, kSide},
                   Values(static_cast<size_t>(channels * kSide * kSide)),
                   false}};
    const int64_t pad = taps / 2;
    c_.attrs = {{"pads", Dims{pad, pad, pad, pad}}, {"kernel_shape", Dims{taps, taps}}};
  }

  double& pixel(int64_t channel, int64_t y, int64_t x) {
    return c_.inputs[0].values[static_cast<size_t>((channel * kSide + y) * kSide + x)];
  }

  std::vector<double> exact() const {
    const Values &x = c_.inputs[0].values, &w = c_.inputs[1].values;
    std::vector<double> out;
    for (int64_t o = 0; o < channels_; ++o)
      for (int64_t at = 0; at < kSide * kSide; ++at) {
        double sum = 0;
        for (int64_t tap = 0; tap < taps_ * taps_; ++tap) {
          const int64_t row = at / kSide + tap / taps_ - taps_ / 2,
                        column = at % kSide + tap % taps_ - taps_ / 2;
          if (row < 0 || row >= kSide || column < 0 || column >= kSide) continue;
          for (int64_t i = 0; i < channels_; ++i)
            sum += x[static_cast<size_t>((i * kSide + row) * kSide + column)] *
                   w[static_cast<size_t>((o * channels_ + i) * taps_ * taps_ + tap)];
        }
        out.push_back(sum);
      }
    return out;
  }

  Case c_;
  int64_t taps_ = 0, channels_ = 0;
};

// Kernels for precisions that allow larger errors.
const struct {
  const char* name;
  int64_t taps;
  const char* exact;  // the kernel for other precisions
} kLarger[] = {{"conv_winograd_4x4", 3, "conv_winograd"}, {"conv_winograd_5x5", 5, "conv_direct"}};

TEST_F(Winograd, errs_no_more_than_plain_sums) {
  const cpu::EveryRowPays every;  // also where few channels leave this image to others
  for (const int64_t channels : {16, 20, 24, 32, 64}) {
    make(3, channels);
    const std::vector<double> want = exact();
    const double error = rms_error(floats_by("conv_winograd", c_), want);
    EXPECT_GT(error, 0);
    EXPECT_LE(error, rms_error(floats_by("conv_implicit_gemm", c_, Precision::kIeee), want))
        << channels;
  }
}

// Precision "fast" allows 5e-6 of the largest result.
TEST_F(Winograd, larger_tiles_err_little_more) {
  for (const auto& kernel : kLarger) {
    make(kernel.taps);
    const std::vector<double> want = exact();
    const std::vector<float> got = floats_by(kernel.name, c_, Precision::kFast);
    ASSERT_EQ(got.size(), want.size());
    double largest = 0, worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, std::fabs(want[i]));
      worst = std::max(worst, std::fabs(got[i] - want[i]));
    }
    EXPECT_GT(worst, 0) << kernel.name;
    EXPECT_LE(worst, 2e-6 * largest) << kernel.name;
    EXPECT_LE(rms_error(got, want), 6 * rms_error(floats_by(kernel.exact, c_), want))
        << kernel.name;
  }
}

TEST_F(Winograd, larger_tiles_are_for_precisions_that_allow_them) {
  size_t found = 0;
  for (const auto& kernel : kLarger) {
    make(kernel.taps);
    for (std::span<const cpu::KernelRow> family : cpu::kernels())
      for (const cpu::KernelRow& row : family) {
        if (row.name != kernel.name) continue;
        ++found;
        for (const Precision precision : {Precision::kIeee, Precision::kFloat32})
          EXPECT_NE(run(row, c_, {.precision = precision}).refused, "");
        EXPECT_EQ(run(row, c_, {.precision = Precision::kFast}).refused, "");
        // Kernels with pairs of bfloat16 take their place.
        const bool pairs = cpu::isa() >= cpu::Isa::kAvx512Bf16 && !cpu::split_matmul_usable();
        EXPECT_EQ(run(row, c_, {.precision = Precision::kBfloat16}).refused.empty(), !pairs);
      }
  }
  EXPECT_EQ(found, std::size(kLarger));
}

TEST_F(Winograd, numbers_stay_with_the_positions_that_see_them) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const struct {
    const char* name;
    int64_t taps;
    Precision precision;
  } kernels[] = {{"conv_winograd", 3, Precision::kFloat32},
                 {"conv_winograd_4x4", 3, Precision::kFast},
                 {"conv_winograd_5x5", 5, Precision::kFast}};
  for (const auto& kernel : kernels)
    for (const double odd : {kInfinity, -kInfinity, static_cast<double>(NAN), 3e38, 1e20}) {
      make(kernel.taps);
      pixel(5, 7, 8) = odd;
      const int64_t reach = kernel.taps / 2;
      const std::vector<float> got = floats_by(kernel.name, c_, kernel.precision),
                               plain = floats_by("conv_implicit_gemm", c_);
      ASSERT_EQ(got.size(), plain.size());
      for (size_t i = 0; i < got.size(); ++i) {
        const auto at = static_cast<int64_t>(i) % (kSide * kSide);
        const bool sees = std::abs(at / kSide - 7) <= reach && std::abs(at % kSide - 8) <= reach;
        if (std::isfinite(plain[i]))
          EXPECT_NEAR(got[i], plain[i],
                      1e-4 * (std::fabs(plain[i]) + (sees ? 0 : 10)) +
                          (sees && std::isfinite(odd) ? 1e-6 * odd : 0))
              << kernel.name << ", " << odd << " at " << i;
        else
          EXPECT_TRUE(std::isnan(plain[i]) ? std::isnan(got[i]) : got[i] == plain[i])
              << kernel.name << ", " << odd << " at " << i << ": " << got[i] << ", plain "
              << plain[i];
      }
    }
}

TEST_F(Winograd, weights_that_are_not_finite_meet_padding_too) {
  for (const double odd : {static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    // These are a tap that meets only padding at the first row and column, and the middle one.
    for (const size_t tap : {0, 4}) {
      make(3);
      c_.inputs[1].values[(7 * kChannels + 3) * 9 + tap] = odd;
      const std::vector<float> got = floats_by("conv_winograd", c_),
                               plain = floats_by("conv_implicit_gemm", c_);
      ASSERT_EQ(got.size(), plain.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(std::isnan(got[i]), std::isnan(plain[i]))
            << odd << ", tap " << tap << " at " << i;
        EXPECT_EQ(std::isinf(got[i]), std::isinf(plain[i]))
            << odd << ", tap " << tap << " at " << i;
      }
    }
  }
}

TEST_F(Winograd, very_small_numbers_keep_their_size) {
  for (double& x : c_.inputs[0].values) x *= 1e-36;
  const std::vector<double> want = exact();
  EXPECT_LE(rms_error(floats_by("conv_winograd", c_), want),
            1.01 * rms_error(floats_by("conv_implicit_gemm", c_), want) + 64 * 9 * 1.5e-45);
}

}  // namespace
}  // namespace pfrt::test
