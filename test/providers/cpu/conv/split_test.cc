// SPDX-License-Identifier: Apache-2.0
//
// float32 products on bfloat16 tiles are as near to the exact product as plain float32 ones, and
// equal to these for numbers that tiles treat otherwise.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/matmul/gemm.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/code/tile_emulator.h"
#include "test/providers/cpu/one_node.h"
#include "test/providers/cpu/step_host.h"

namespace pfrt::test {
namespace {

using cpu::Gemm;

struct Product {
  int64_t m, n, k;
  std::vector<float> a, b;

  Product(int64_t rows, int64_t cols, int64_t depth, uint64_t seed) : m(rows), n(cols), k(depth) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < m * k; ++i) a.push_back(normal(engine));
    for (int64_t i = 0; i < k * n; ++i) b.push_back(normal(engine));
  }

  // With |columns|, B is given as [n][k], in every other element.
  std::vector<float> compute(bool plain, bool columns = false) const {
    const Gemm<float> gemm(m, n, k);
    std::vector<float> turned(columns ? static_cast<size_t>(2 * n * k) : 0);
    for (int64_t i = 0; columns && i < n * k; ++i)
      turned[static_cast<size_t>(2 * i)] = b[static_cast<size_t>(i % k * n + i / k)];
    std::vector<float> c(static_cast<size_t>(m * n));
    StepHost host({}, 1, gemm.scratch_bytes());
    const cpu::Run run(host.context(), nullptr, nullptr,
                       {.precision = plain ? Precision::kIeee : Precision::kFloat32});
    const cpu::StridedSource<float> rows(a.data(), PFRT_DTYPE_FLOAT32, 0, k, 1),
        cols(columns ? turned.data() : b.data(), PFRT_DTYPE_FLOAT32, 0, columns ? 2 * k : 1,
             columns ? 2 : n);
    for (int64_t i = 0; i < gemm.tiles(); ++i) {
      const cpu::GemmTile tile = gemm.tile(i);
      gemm.compute(run, tile, rows, cols, c.data() + tile.row * n + tile.col, n,
                   run.scratch<float>(0));
    }
    return c;
  }

  // Returns the root mean square and the largest of the errors of |c|, against double precision.
  std::pair<double, double> errors(const std::vector<float>& c) const {
    double squares = 0, largest = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double exact = 0;
        for (int64_t l = 0; l < k; ++l)
          exact += static_cast<double>(a[static_cast<size_t>(i * k + l)]) *
                   static_cast<double>(b[static_cast<size_t>(l * n + j)]);
        const double error =
            std::fabs(static_cast<double>(c[static_cast<size_t>(i * n + j)]) - exact);
        squares += error * error;
        largest = std::max(largest, error);
      }
    return {std::sqrt(squares / static_cast<double>(m * n)), largest};
  }
};

class Split : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAmx)
      GTEST_SKIP() << "PFRT_ISA has no tiles, or the machine not what comes before them";
    ASSERT_TRUE(cpu::split_matmul_usable());
  }

 private:
  TileEmulator emulator_;
};

bool same(float x, float y) {
  return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
}

TEST_F(Split, errs_no_more_than_plain_arithmetic) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{64, 96, 64}, {128, 128, 512}, {77, 130, 900}, {48, 33, 2000}}) {
    const Product p(m, n, k, static_cast<uint64_t>(m + n + k));
    const std::vector<float> split = p.compute(false), plain = p.compute(true);
    EXPECT_NE(std::memcmp(split.data(), plain.data(), split.size() * 4), 0)
        << "tiles were not used";
    const auto [split_rms, split_most] = p.errors(split);
    const auto [plain_rms, plain_most] = p.errors(plain);
    EXPECT_LE(split_rms, plain_rms) << m << " x " << k << " x " << n;
    EXPECT_LE(split_most, 1.5 * plain_most) << m << " x " << k << " x " << n;
  }
}

TEST_F(Split, columns_may_lie_anyhow) {
  const Product p(64, 80, 900, 11);
  EXPECT_EQ(p.compute(false, true), p.compute(false, false));
}

// All numbers have one sign, so errors of one sign would add up.
TEST_F(Split, has_no_bias) {
  Product p(64, 64, 1000, 3);
  for (float& x : p.a) x = std::fabs(x);
  for (float& x : p.b) x = std::fabs(x);
  const std::vector<float> split = p.compute(false), plain = p.compute(true);
  EXPECT_LE(p.errors(split).first, p.errors(plain).first);
}

TEST_F(Split, numbers_that_tiles_treat_otherwise) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float most = std::numeric_limits<float>::max();
  struct {
    const char* what;
    float a, b;
  } const cases[] = {
      {"infinity", infinity, 2},       {"infinity times 0", infinity, 0}, {"not a number", NAN, 1},
      {"beyond the largest", most, 4}, {"the largest", most, 1},
  };
  for (const auto& c : cases) {
    Product p(64, 64, 64, 9);
    p.a[3 * 64 + 5] = c.a;
    p.b[5 * 64 + 7] = c.b;
    const std::vector<float> split = p.compute(false), plain = p.compute(true);
    EXPECT_TRUE(same(split[3 * 64 + 7], plain[3 * 64 + 7]))
        << c.what << ": " << split[3 * 64 + 7] << ", plainly " << plain[3 * 64 + 7];
    for (size_t i = 0; i < split.size(); ++i)
      EXPECT_EQ(std::isfinite(split[i]), std::isfinite(plain[i])) << c.what << " at " << i;
  }
}

TEST_F(Split, very_small_numbers_keep_their_bits) {
  for (const auto& [of_a, of_b] : {std::pair{1e-25f, 1e-8f},
                                   {1e-38f, 1e10f},
                                   {1e-33f, 1.0f},
                                   {1.0f, 1e-36f},
                                   {1e-17f, 1e-20f}}) {
    Product p(64, 64, 128, 17);
    for (float& x : p.a) x *= of_a;
    for (float& x : p.b) x *= of_b;
    const std::vector<float> split = p.compute(false), plain = p.compute(true);
    const double split_rms = p.errors(split).first, plain_rms = p.errors(plain).first;
    EXPECT_LE(split_rms, plain_rms) << of_a << " and " << of_b;
  }
}

TEST_F(Split, products_below_the_normal_range_count_as_zeros_or_better) {
  Product p(64, 64, 128, 17);
  for (float& x : p.a) x *= 1e-20f;
  for (float& x : p.b) x *= 1e-20f;
  EXPECT_LE(p.errors(p.compute(false)).second, 128 * 1.2e-38);
}

TEST_F(Split, zeros_stay_zeros) {
  Product p(64, 64, 64, 5);
  for (size_t i = 0; i < 64 * 32; ++i) p.a[i] = 0;
  const std::vector<float> c = p.compute(false);
  for (size_t i = 0; i < 64 * 32; ++i) EXPECT_EQ(c[i], 0.0f);
}

TEST_F(Split, convolutions_of_numbers_that_tiles_treat_otherwise) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double odd : {infinity, -infinity, static_cast<double>(NAN), 3e38, 1e-39}) {
    Random random(7);
    Case c;
    c.inputs = {random.data(PFRT_DTYPE_FLOAT32, {1, 32, 20, 20}),
                random.data(PFRT_DTYPE_FLOAT32, {32, 32, 3, 3})};
    c.inputs[1].constant = true;
    if (std::fabs(odd) < 1)
      for (double& x : c.inputs[0].values) x *= odd;
    else
      c.inputs[0].values[20 * 20 * 5 + 33] = odd;
    c.outputs = {{PFRT_DTYPE_FLOAT32, {1, 32, 20, 20}, Values(32 * 400), false}};
    c.attrs = {{"pads", Dims{1, 1, 1, 1}}, {"kernel_shape", Dims{3, 3}}};
    const std::vector<float> tiles = floats_by("conv_tiles", c);
    c.inputs[1].constant = false;
    const std::vector<float> plain = floats_by("conv_implicit_gemm", c);
    ASSERT_EQ(tiles.size(), plain.size());
    const double slack = 1e-3 * std::min(1.0, std::fabs(odd));  // allows for sums that cancel
    size_t strange = 0;
    for (size_t i = 0; i < tiles.size(); ++i) {
      strange += !std::isfinite(plain[i]);
      if (std::isfinite(plain[i]))
        EXPECT_NEAR(tiles[i], plain[i], 1e-4 * std::fabs(plain[i]) + slack) << odd << " at " << i;
      else
        EXPECT_TRUE(same(tiles[i], plain[i])) << odd << " at " << i;
    }
    EXPECT_EQ(strange > 0, !(std::fabs(odd) < 1)) << odd;
  }
}

}  // namespace
}  // namespace pfrt::test
