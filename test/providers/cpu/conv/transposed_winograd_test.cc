// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolutions by Winograd's transforms, compared with plain ones: their errors against
// double precision, and numbers that transforms would spread to pixels that do not see them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/one_node.h"

namespace pfrt::test {
namespace {

constexpr int64_t kTransposedChannels = 128, kTransposedSide = 9, kOut = 2 * kTransposedSide,
                  kTaps = 4;

class TransposedWinograd : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2 || cpu::split_matmul_usable())
      GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2 or has tiles";
    Random random(12);
    c_.inputs = {
        random.data(PFRT_DTYPE_FLOAT32, {1, kTransposedChannels, kTransposedSide, kTransposedSide}),
        random.data(PFRT_DTYPE_FLOAT32, {kTransposedChannels, kTransposedChannels, kTaps, kTaps})};
    c_.inputs[1].constant = true;
    c_.outputs = {{PFRT_DTYPE_FLOAT32,
                   {1, kTransposedChannels, kOut, kOut},
                   Values(kTransposedChannels * kOut * kOut),
                   false}};
    c_.attrs = {
        {"pads", Dims{1, 1, 1, 1}}, {"strides", Dims{2, 2}}, {"kernel_shape", Dims{kTaps, kTaps}}};
  }

  std::vector<double> exact() const {
    const Values &x = c_.inputs[0].values, &w = c_.inputs[1].values;
    std::vector<double> out(kTransposedChannels * kOut * kOut);
    for (int64_t i = 0; i < kTransposedChannels; ++i)
      for (int64_t at = 0; at < kTransposedSide * kTransposedSide; ++at)
        for (int64_t o = 0; o < kTransposedChannels; ++o)
          for (int64_t tap = 0; tap < kTaps * kTaps; ++tap) {
            const int64_t row = at / kTransposedSide * 2 + tap / kTaps - 1,
                          column = at % kTransposedSide * 2 + tap % kTaps - 1;
            if (row < 0 || row >= kOut || column < 0 || column >= kOut) continue;
            out[static_cast<size_t>((o * kOut + row) * kOut + column)] +=
                x[static_cast<size_t>(i * kTransposedSide * kTransposedSide + at)] *
                w[static_cast<size_t>((i * kTransposedChannels + o) * kTaps * kTaps + tap)];
          }
    return out;
  }

  Case c_;
};

TEST_F(TransposedWinograd, errs_no_more_than_plain_sums) {
  const std::vector<double> want = exact();
  const double error = rms_error(floats_by("conv_transpose_winograd", c_), want);
  EXPECT_GT(error, 0);
  EXPECT_LE(error, rms_error(floats_by("conv_transpose_scatter", c_), want));
}

TEST_F(TransposedWinograd, numbers_stay_with_the_pixels_that_see_them) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double odd : {kInfinity, -kInfinity, static_cast<double>(NAN), 3e38, 1e20}) {
    c_.inputs[0].values[5 * kTransposedSide * kTransposedSide + 4 * kTransposedSide + 3] = odd;
    const std::vector<float> got = floats_by("conv_transpose_winograd", c_),
                             plain = floats_by("conv_transpose_scatter", c_);
    ASSERT_EQ(got.size(), plain.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const auto at = static_cast<int64_t>(i) % (kOut * kOut);
      const int64_t row = at / kOut + 1 - 2 * 4, column = at % kOut + 1 - 2 * 3;
      const bool sees = row >= 0 && row < kTaps && column >= 0 && column < kTaps;
      const double what = static_cast<double>(plain[i]);
      if (std::isfinite(plain[i]))
        EXPECT_NEAR(static_cast<double>(got[i]), what,
                    sees ? 1e-5 * odd : 1e-4 * (std::fabs(what) + 10))
            << odd << " at " << i;
      else
        EXPECT_TRUE(std::isnan(plain[i]) ? std::isnan(got[i]) : got[i] == plain[i])
            << odd << " at " << i << ": " << got[i] << ", plain " << plain[i];
    }
  }
}

}  // namespace
}  // namespace pfrt::test
