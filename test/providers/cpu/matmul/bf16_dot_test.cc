// SPDX-License-Identifier: Apache-2.0
//
// Dot products of pairs of bfloat16. The innermost loop and convolutions by it are near the exact
// sums of rounded factors, handle numbers that bfloat16 lacks, and have the same bits on any number
// of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/matmul/bf16_pairs.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

using cpu::PanelMicrokernel;

class Bf16Dot : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx512Bf16) GTEST_SKIP() << "needs avx512_bf16";
  }
};

double bf16_half(uint32_t pair, bool high) {
  return static_cast<double>(std::bit_cast<float>(high ? pair & 0xffff0000 : pair << 16));
}

Guarded guarded_words(const std::vector<uint32_t>& from) {
  Guarded out(from.size() * sizeof(uint32_t), Placed::kAtEnd, sizeof(uint32_t));
  std::memcpy(out.data(), from.data(), out.size());
  return out;
}

// Rows of |chunks| x |depth| pairs, and panels that they are multiplied by.
class PairOperands {
 public:
  PairOperands(int64_t rows, int64_t panels, int64_t chunks, int64_t depth)
      : rows_(rows), panels_(panels), chunks_(chunks), depth_(depth), random_(7) {
    for (int64_t i = 0; i < chunks; ++i) offsets_.push_back(i * depth);
    a_ = pairs(rows * chunks * depth);
    b_ = pairs(panels * chunks * depth * PanelMicrokernel::kPanel);
  }

  // Computes rows [first, first + count), with sums that start at zero.
  std::vector<float> compute(int64_t first, int64_t count, int64_t chain) const {
    const int64_t k = chunks_ * depth_, row = panels_ * PanelMicrokernel::kPanel;
    Guarded a = guarded_words(a_), b = guarded_words(b_);
    Guarded c(static_cast<size_t>(count * row) * sizeof(float), Placed::kAtEnd, sizeof(float));
    std::memset(c.data(), 0, c.size());
    PanelMicrokernel::Blocks p{};
    p.a = reinterpret_cast<const float*>(a.data()) + first * k;
    p.offsets = offsets_.data();
    p.a_row = k;
    p.chunks = chunks_, p.depth = depth_, p.chain = chain;
    p.b = reinterpret_cast<const float*>(b.data());
    p.b_panel = k * PanelMicrokernel::kPanel;
    p.c = reinterpret_cast<float*>(c.data());
    p.c_row = row, p.c_panel = PanelMicrokernel::kPanel;
    const PanelMicrokernel* const microkernel = PanelMicrokernel::get_bf16_dot();
    microkernel->run(microkernel->row_blocks(count), panels_, p);
    const auto* const sums = reinterpret_cast<const float*>(c.data());
    return {sums, sums + count * row};
  }

  // Largest error of an element, relative to the size of its terms.
  double largest_error(const std::vector<float>& c) const {
    const int64_t k = chunks_ * depth_, row = panels_ * PanelMicrokernel::kPanel;
    double largest = 0;
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t j = 0; j < row; ++j) {
        double exact = 0, size = 0;
        for (int64_t i = 0; i < k; ++i)
          for (const bool high : {false, true}) {
            const int64_t at = (j / 16 * k + i) * 16 + j % 16;
            const double term = bf16_half(a_[static_cast<size_t>(r * k + i)], high) *
                                bf16_half(b_[static_cast<size_t>(at)], high);
            exact += term;
            size += std::fabs(term);
          }
        const auto got = static_cast<double>(c[static_cast<size_t>(r * row + j)]);
        largest = std::max(largest, std::fabs(got - exact) / size);
      }
    return largest;
  }

 private:
  std::vector<uint32_t> pairs(int64_t n) {
    std::normal_distribution<float> normal;
    std::vector<float> numbers(static_cast<size_t>(2 * n));
    for (float& x : numbers) x = normal(random_);
    std::vector<uint32_t> out(static_cast<size_t>(n));
    cpu::to_bf16_pairs(numbers.data(), 2 * n, out.data());
    return out;
  }
  int64_t rows_, panels_, chunks_, depth_;
  std::mt19937_64 random_;
  std::vector<int64_t> offsets_;
  std::vector<uint32_t> a_, b_;
};

TEST_F(Bf16Dot, is_near_the_exact_sums_and_a_row_has_the_same_bits_beside_others) {
  const PanelMicrokernel* const microkernel = PanelMicrokernel::get_bf16_dot();
  if (microkernel == nullptr) GTEST_SKIP() << "code cannot be made executable";
  constexpr struct {
    int64_t chunks, depth, chain;
  } kSums[] = {{1, 1, 1}, {1, 8, 1}, {1, 67, 1}, {4, 64, 1}, {9, 3, 1}, {6, 5, 2}, {15, 9, 3}};
  for (const auto& s : kSums)
    for (int64_t rows = 1; rows <= microkernel->rows(); ++rows)
      for (int64_t panels = 1; panels <= microkernel->panels(rows); ++panels) {
        const PairOperands operands(rows, panels, s.chunks, s.depth);
        const std::vector<float> got = operands.compute(0, rows, s.chain);
        const double roundings = static_cast<double>(2 * s.chain * s.depth + s.chunks / s.chain);
        EXPECT_LE(operands.largest_error(got), roundings * 0x1p-24)
            << rows << " rows, " << panels << " panels, " << s.chunks << " chunks of " << s.depth;
        const std::vector<float> last = operands.compute(rows - 1, 1, s.chain);
        EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), got.rbegin()));
      }
}

TEST_F(Bf16Dot, numbers_become_the_nearest_pairs_and_nothing_else_is_touched) {
  Random random(3);
  for (int64_t n = 1; n < 70; ++n) {
    std::vector<float> numbers(static_cast<size_t>(n));
    for (float& x : numbers) x = static_cast<float>(random.uniform(-3, 3));
    numbers[static_cast<size_t>(random.below(n))] = -17.3f;  // the largest number
    Guarded in(numbers.size() * sizeof(float), Placed::kAtEnd, sizeof(float));
    std::memcpy(in.data(), numbers.data(), in.size());
    in.make_read_only();
    const auto* const from = reinterpret_cast<const float*>(in.data());
    Guarded out(static_cast<size_t>(cpu::bf16_pairs(n)) * sizeof(uint32_t), Placed::kAtEnd,
                sizeof(uint32_t));
    auto* const pairs = reinterpret_cast<uint32_t*>(out.data());
    EXPECT_EQ(cpu::to_bf16_pairs(from, n, pairs), std::bit_cast<uint32_t>(17.3f) >> 16);
    const Values wanted = rounded(PFRT_DTYPE_BFLOAT16, Values(numbers.begin(), numbers.end()));
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(bf16_half(pairs[i / 2], i % 2 == 1), wanted[static_cast<size_t>(i)]) << n;
    if (n % 2 == 1) {
      EXPECT_EQ(pairs[n / 2] >> 16, 0u);
    }
    Guarded zipped(numbers.size() * sizeof(uint32_t), Placed::kAtEnd, sizeof(uint32_t));
    auto* const both = reinterpret_cast<uint32_t*>(zipped.data());
    for (const float* second : {from, static_cast<const float*>(nullptr)}) {
      cpu::zip_bf16_pairs(from, second, n, both);
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(bf16_half(both[i], false), wanted[static_cast<size_t>(i)]);
        EXPECT_EQ(bf16_half(both[i], true), second == nullptr ? 0 : wanted[static_cast<size_t>(i)]);
      }
    }
  }
}

TEST_F(Bf16Dot, lines_become_pairs_of_neighbours_in_place_or_apart) {
  Random random(9);
  for (const int64_t lines : {1, 2, 3, 8, 37}) {
    std::vector<float> numbers(static_cast<size_t>(16 * lines));
    for (float& x : numbers) x = static_cast<float>(random.uniform(-3, 3));
    const Values wanted = rounded(PFRT_DTYPE_BFLOAT16, Values(numbers.begin(), numbers.end()));
    for (const bool in_place : {false, true}) {
      Guarded in(numbers.size() * sizeof(float), Placed::kAtEnd, sizeof(float));
      std::memcpy(in.data(), numbers.data(), in.size());
      Guarded apart(static_cast<size_t>(cpu::bf16_pairs(lines)) * 64, Placed::kAtEnd, 4);
      auto* const pairs = reinterpret_cast<uint32_t*>(in_place ? in.data() : apart.data());
      cpu::pair_lines(reinterpret_cast<const float*>(in.data()), lines, pairs);
      for (int64_t i = 0; i < 32 * cpu::bf16_pairs(lines); ++i) {
        const int64_t k = i / 32 * 2 + i % 2, at = 16 * k + i % 32 / 2;
        EXPECT_EQ(bf16_half(pairs[i / 2], i % 2 == 1),
                  k < lines ? wanted[static_cast<size_t>(at)] : 0)
            << lines << " lines, " << i;
      }
    }
  }
}

// Convolutions of kSide x kSide pixels with |taps| x |taps| taps.
class Bf16Conv : public Bf16Dot {
 protected:
  void SetUp() override {
    Bf16Dot::SetUp();
    if (!IsSkipped() && cpu::split_matmul_usable())
      GTEST_SKIP() << "convolutions are better off on tiles";
  }

  static constexpr int64_t kSide = 13;

  void make(int64_t in, int64_t out, int64_t taps) {
    Random random(5);
    in_ = in, out_ = out, taps_ = taps;
    c_ = {};
    c_.inputs = {random.data(PFRT_DTYPE_FLOAT32, {1, in, kSide, kSide}),
                 random.data(PFRT_DTYPE_FLOAT32, {out, in, taps, taps})};
    c_.inputs[1].constant = true;
    c_.outputs = {{PFRT_DTYPE_FLOAT32,
                   {1, out, kSide, kSide},
                   Values(static_cast<size_t>(out * kSide * kSide)),
                   false}};
    const int64_t pad = taps / 2;
    c_.attrs = {{"pads", Dims{pad, pad, pad, pad}}, {"kernel_shape", Dims{taps, taps}}};
  }
  double& pixel(int64_t channel, int64_t y, int64_t x) {
    return c_.inputs[0].values[static_cast<size_t>((channel * kSide + y) * kSide + x)];
  }
  std::vector<double> exact() const {
    const std::vector<float> got = floats_by("conv_implicit_gemm", c_, Precision::kIeee);
    return {got.begin(), got.end()};
  }
  std::vector<double> of_rounded_factors() const {
    Case c = c_;
    for (Data& factor : c.inputs) factor.values = rounded(PFRT_DTYPE_BFLOAT16, factor.values);
    const std::vector<float> got = floats_by("conv_implicit_gemm", c, Precision::kIeee);
    return {got.begin(), got.end()};
  }
  std::vector<float> got(const char* name) const {
    return floats_by(name, c_, Precision::kBfloat16);
  }

  Case c_;
  int64_t in_ = 0, out_ = 0, taps_ = 0;
};

TEST_F(Bf16Conv, direct_sums_are_those_of_rounded_factors) {
  const int64_t shapes[][3] = {{3, 16, 7}, {2, 24, 3},  {5, 8, 1},    {16, 16, 1}, {17, 33, 3},
                               {24, 9, 5}, {64, 40, 3}, {130, 48, 1}, {15, 64, 3}};
  for (const auto& [in, out, taps] : shapes) {
    make(in, out, taps);
    const std::vector<double> want = of_rounded_factors();
    double largest = 0, worst = 0;
    const std::vector<float> sums = got("conv_direct_bf16");
    ASSERT_EQ(sums.size(), want.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      largest = std::max(largest, std::fabs(want[i]));
      worst = std::max(worst, std::fabs(static_cast<double>(sums[i]) - want[i]));
    }
    EXPECT_LE(worst, 4e-6 * largest) << in << " to " << out << ", " << taps << " x " << taps;
    EXPECT_GT(rms_error(sums, exact()), 100 * rms_error(sums, want));
  }
}

TEST_F(Bf16Conv, winograd_errs_little_more_than_rounded_factors) {
  make(96, 40, 3);
  const std::vector<double> want = exact();
  const double direct = rms_error(got("conv_direct_bf16"), want);
  const double winograd = rms_error(got("conv_winograd_bf16"), want);
  EXPECT_GT(winograd, direct);
  EXPECT_LE(winograd, 2 * direct);
}

TEST_F(Bf16Conv, numbers_stay_with_the_positions_that_see_them) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const char* const name : {"conv_direct_bf16", "conv_winograd_bf16"})
    for (const double odd : {kInfinity, -kInfinity, static_cast<double>(NAN), 3.4028e38, 1e20}) {
      make(40, 40, 3);
      pixel(5, 7, 8) = odd;
      const std::vector<double> plain = exact();
      const std::vector<float> sums = got(name);
      for (size_t i = 0; i < sums.size(); ++i) {
        const auto at = static_cast<int64_t>(i) % (kSide * kSide);
        const bool sees = std::abs(at / kSide - 7) <= 1 && std::abs(at % kSide - 8) <= 1;
        if (std::isnan(plain[i]))
          EXPECT_TRUE(std::isnan(sums[i])) << name << ", " << odd << " at " << i;
        else if (std::isinf(plain[i]))
          EXPECT_EQ(static_cast<double>(sums[i]), plain[i]) << name << ", " << odd << " at " << i;
        else
          EXPECT_NEAR(static_cast<double>(sums[i]), plain[i], sees ? 0.03 * odd + 10 : 10)
              << name << ", " << odd << " at " << i;
      }
    }
}

TEST_F(Bf16Conv, very_small_factors_keep_their_size) {
  for (const char* const name : {"conv_direct_bf16", "conv_winograd_bf16"})
    for (const bool image : {false, true}) {
      make(48, 32, 3);
      const std::vector<double> plain = exact();
      for (double& x : c_.inputs[image ? 0 : 1].values) x *= 0x1p-120;
      for (double& x : c_.inputs[image ? 1 : 0].values) x *= 0x1p30;
      std::vector<float> sums = got(name);
      for (float& sum : sums) sum *= 0x1p90f;
      double size = 0;
      for (const double x : plain) size += x * x;
      size = std::sqrt(size / static_cast<double>(plain.size()));
      EXPECT_LE(rms_error(sums, plain), 0.01 * size) << name << (image ? ", image" : ", weights");
    }
}

TEST_F(Bf16Conv, is_only_where_the_session_allows_it) {
  make(48, 32, 3);
  size_t found = 0;
  for (std::span<const cpu::KernelRow> family : cpu::kernels())
    for (const cpu::KernelRow& row : family) {
      if (row.name != "conv_direct_bf16" && row.name != "conv_winograd_bf16") continue;
      ++found;
      for (const Precision precision :
           {Precision::kRowsAlone, Precision::kIeee, Precision::kFloat32, Precision::kFast})
        EXPECT_NE(run(row, c_, {.precision = precision}).refused, "") << row.name;
      EXPECT_EQ(run(row, c_, {.precision = Precision::kBfloat16}).refused, "") << row.name;
    }
  EXPECT_EQ(found, 2u);
}

TEST_F(Bf16Conv, has_the_same_bits_on_any_number_of_threads) {
  for (const char* const name : {"conv_direct_bf16", "conv_winograd_bf16"})
    for (std::span<const cpu::KernelRow> family : cpu::kernels())
      for (const cpu::KernelRow& row : family) {
        if (row.name != name) continue;
        make(70, 100, 3);
        pixel(5, 7, 8) = std::numeric_limits<double>::infinity();
        const Outcome one = run(row, c_, {.precision = Precision::kBfloat16});
        for (const uint32_t workers : {2u, 5u}) {
          const Outcome more =
              run(row, c_, {.workers = workers, .precision = Precision::kBfloat16});
          EXPECT_EQ(
              std::memcmp(one.outputs[0].data(), more.outputs[0].data(), one.outputs[0].size()), 0)
              << name << ", " << workers << " threads";
        }
      }
}

}  // namespace
}  // namespace pfrt::test
