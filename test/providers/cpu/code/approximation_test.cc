// SPDX-License-Identifier: Apache-2.0
//
// Operators that the generated loops approximate, compared with double over the whole range of
// float32. Errors are in units in the last place of the exact value.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/softmax/line.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

double softplus(double x) { return std::log1p(std::exp(-std::fabs(x))) + (x > 0 ? x : 0); }

struct Approximated {
  const char* op;
  double (*exact)(double x);
  double units;  // largest error allowed
  // Below |from| rounding the argument weighs more than the function: |growth| more units are
  // allowed for each unit of x^2.
  double from = -std::numeric_limits<double>::infinity(), growth = 0;
  std::vector<Attr> attrs = {};
};

const Approximated kOperators[] = {
    {"Exp", [](double x) { return std::exp(x); }, 1},
    {"Tanh", [](double x) { return std::tanh(x); }, 1},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 2.2},
    {"Swish", [](double x) { return x / (1 + std::exp(-x)); }, 3},
    {"Erf", [](double x) { return std::erf(x); }, 1.5},
    {"Gelu", [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }, 7, -2, 2},
    {"Gelu",
     [](double x) {
       const double inner = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
       return x / (1 + std::exp(-2 * inner));
     },
     12,
     -1,
     12,
     {{"approximate", std::string("tanh")}}},
    {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }, 1.5},
    {"Selu",
     [](double x) {
       const double gamma = 1.05070102214813232421875f, alpha = 1.67326319217681884765625f;
       return gamma * (x < 0 ? alpha * std::expm1(x) : x);
     },
     3},
    {"Celu",
     [](double x) { return x < 0 ? 0.3f * std::expm1(x / 0.3f) : x; },
     2.5,
     -1e30,
     0,
     {{"alpha", 0.3f}}},
    {"Softplus", softplus, 2},
    {"Mish", [](double x) { return x * std::tanh(softplus(x)); }, 5},
};

// Finite floats at regular distances, and floats around 0, 0.5 and 1.
Values sample() {
  Values out{0.0, -0.0};
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 4093) {
    const double x = static_cast<double>(std::bit_cast<float>(bits));
    out.insert(out.end(), {x, -x});
  }
  for (int i = -40000; i < 40000; ++i)
    out.push_back(static_cast<double>(static_cast<float>(i) / 4096));
  return out;
}

class Approximations : public testing::TestWithParam<size_t> {};

TEST_P(Approximations, are_near) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "generated loops need avx2";
  const Approximated& f = kOperators[GetParam()];
  Graph g;
  const Values x = sample();
  const Dims dims{static_cast<int64_t>(x.size())};
  g.outputs = {g.add(f.op, {g.add(Data{PFRT_DTYPE_FLOAT32, dims, x})}, dims, f.attrs)};
  const GraphOutcome outcome = run(g);
  ASSERT_EQ(outcome.fault, "");
  ASSERT_TRUE(outcome.kernels[0].starts_with("elementwise_jit")) << outcome.kernels[0];
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    float got;
    std::memcpy(&got, outcome.outputs[0].data() + 4 * i, sizeof got);
    const double want = f.exact(x[i]);
    const auto rounded = static_cast<float>(want);
    if (got == rounded || std::isinf(rounded)) {
      EXPECT_EQ(got, rounded) << f.op << "(" << x[i] << ")";
      continue;
    }
    const float size = std::fabs(rounded);
    const double unit =
        static_cast<double>(std::nextafter(size, INFINITY)) - static_cast<double>(size);
    const double off = std::fabs(static_cast<double>(got) - want) / unit;
    // Factors below the smallest normal number have fewer digits.
    const double lost = std::fabs(x[i]) * 2 * 0x1p-149 / unit;
    const double allowed = f.units + lost + (x[i] < f.from ? f.growth * x[i] * x[i] : 0);
    if (x[i] >= f.from && lost < 0.01) worst = std::max(worst, off);
    ASSERT_LE(off, allowed) << f.op << "(" << x[i] << ") is " << got << ", not " << want;
  }
  RecordProperty("worst", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(Operators, Approximations,
                         testing::Range(size_t{0}, std::size(kOperators)), [](const auto& each) {
                           return message(kOperators[each.param].op, "_", each.param);
                         });

// NaN stays NaN, and infinities give the functions' limits.
TEST(ApproximationLimits, keep_nan_and_limits) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "generated loops need avx2";
  const double inf = std::numeric_limits<double>::infinity();
  const struct {
    const char* op;
    double below, above;
  } kLimits[] = {
      {"Erf", -1, 1},       {"Elu", -1, inf},   {"Celu", -1, inf},
      {"Softplus", 0, inf}, {"Gelu", NAN, inf},  // -inf times 0, as reference kernels have it
      {"Mish", NAN, inf}};
  for (const auto& each : kLimits) {
    Graph g;
    g.outputs = {g.add(each.op, {g.add(Data{PFRT_DTYPE_FLOAT32, {3}, {-inf, inf, NAN}})}, {3})};
    const GraphOutcome outcome = run(g);
    ASSERT_EQ(outcome.fault, "");
    float got[3];
    std::memcpy(got, outcome.outputs[0].data(), sizeof got);
    EXPECT_TRUE(static_cast<double>(got[0]) == each.below ||
                (std::isnan(got[0]) && std::isnan(each.below)))
        << each.op << "(-inf) is " << got[0];
    EXPECT_EQ(static_cast<double>(got[1]), each.above) << each.op;
    EXPECT_TRUE(std::isnan(got[2])) << each.op << "(NaN) is " << got[2];
  }
}

// The exponential that Softmax uses.
TEST(LineMath, exp_within_its_units) {
  const cpu::LineMath math = cpu::LineMath::here();
  double worst = 0;
  for (int64_t first = -110 * 64; first <= -77; first += 77) {
    float x[77], y[77];
    for (int i = 0; i < 77; ++i) x[i] = static_cast<float>(first + i) / 64 * 1.0009765f;
    const double sum = math.exp(x, y, 77, 0);
    double expected = 0;
    for (int i = 0; i < 77; ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      const double unit = std::max(std::ldexp(1.0, std::ilogb(exact) - 23), 0x1p-149);
      worst = std::max(worst, std::fabs(static_cast<double>(y[i]) - exact) / unit);
      expected += static_cast<double>(y[i]);
    }
    EXPECT_NEAR(sum, expected, 0x1p-22 * expected);
  }
  EXPECT_LE(worst, 1.2);
}

TEST(LineMath, of_numbers_that_are_none) {
  const cpu::LineMath math = cpu::LineMath::here();
  const float infinity = std::numeric_limits<float>::infinity();
  constexpr int kMost = 45;
  float x[kMost], y[kMost];
  for (int n : {19, kMost}) {
    for (int at = 0; at < n; ++at) {
      for (int i = 0; i < n; ++i) x[i] = static_cast<float>(i % 5) - 7;
      EXPECT_EQ(math.greatest(x, n, -infinity), -3);
      EXPECT_EQ(math.greatest(x, n, 2), 2);
      x[at] = infinity;
      EXPECT_EQ(math.greatest(x, n, -infinity), infinity);
      x[at] = NAN;
      EXPECT_TRUE(std::isnan(math.greatest(x, n, -infinity)));
      EXPECT_TRUE(std::isnan(math.exp(x, y, n, 0)));
      for (int i = 0; i < n; ++i) EXPECT_EQ(std::isnan(y[i]), i == at);
      x[at] = -infinity;
      math.exp(x, y, n, 0);
      EXPECT_EQ(y[at], 0);
      math.exp(x, y, n, infinity);
      for (int i = 0; i < n; ++i) EXPECT_EQ(y[i], 0);
    }
    for (float& v : x) v = 3;
    math.scale(x, y, n, 1.0 / 3);
    for (int i = 0; i < n; ++i) EXPECT_EQ(y[i], 1);
  }
}

}  // namespace
}  // namespace pfrt::test
