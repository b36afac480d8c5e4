// SPDX-License-Identifier: Apache-2.0
//
// Sigmoid and Tanh of recurrent layers, compared with double precision over the whole range of
// float32; and rows of a layer, whose bits depend on nothing but themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/kernels/recurrent/activation_vectors.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

using cpu::ActivationVectors;

// Finite floats at regular distances, and floats around 0 and 1.
std::vector<float> sample() {
  std::vector<float> out{0.0f, -0.0f};
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 4093)
    for (const uint32_t sign : {0u, 0x80000000u}) out.push_back(std::bit_cast<float>(bits | sign));
  for (int i = -40000; i < 40000; ++i) out.push_back(static_cast<float>(i) / 4096);
  return out;
}

// Returns the largest error, in units in the last place of the exact value.
double worst(void (*activation)(float*, int64_t), double (*exact)(double)) {
  const std::vector<float> x = sample();
  std::vector<float> y = x;
  activation(y.data(), static_cast<int64_t>(y.size()));
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = exact(static_cast<double>(x[i]));
    const float size = std::fabs(static_cast<float>(want));
    const double unit = static_cast<double>(std::nextafter(size, 2.0f)) - static_cast<double>(size);
    const double off = std::fabs(static_cast<double>(y[i]) - want) / unit;
    most = std::isnan(y[i]) ? std::numeric_limits<double>::infinity() : std::max(most, off);
  }
  return most;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

class RecurrentActivations : public testing::Test {
 protected:
  void SetUp() override {
    math_ = ActivationVectors::here();
    if (math_ == nullptr) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  }
  const ActivationVectors* math_ = nullptr;
};

TEST_F(RecurrentActivations, are_within_their_units) {
  EXPECT_LE(worst(math_->sigmoid, sigmoid), 2);
  EXPECT_LE(worst(math_->tanh, [](double x) { return std::tanh(x); }), 1.1);
}

TEST_F(RecurrentActivations, keep_nan_and_limits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float x[] = {-kInfinity, kInfinity, NAN, -200, 200};
  float y[std::size(x)];
  std::memcpy(y, x, sizeof y);
  math_->sigmoid(y, std::size(y));
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 1);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 0);
  EXPECT_EQ(y[4], 1);
  math_->tanh(x, std::size(x));
  EXPECT_EQ(x[0], -1);
  EXPECT_EQ(x[1], 1);
  EXPECT_TRUE(std::isnan(x[2]));
  EXPECT_EQ(x[3], -1);
  EXPECT_EQ(x[4], 1);
}

TEST_F(RecurrentActivations, do_not_depend_on_neighbours) {
  for (const auto& activation : {math_->sigmoid, math_->tanh})
    for (int64_t n = 1; n <= 19; ++n) {
      std::vector<float> together;
      for (int64_t i = 0; i < n; ++i) together.push_back(static_cast<float>(i - 9) * 0.37f);
      std::vector<float> apart = together;
      activation(together.data(), n);
      for (float& x : apart) activation(&x, 1);
      EXPECT_EQ(std::memcmp(together.data(), apart.data(), apart.size() * sizeof(float)), 0) << n;
    }
}

// An LSTM in both directions of as many sequences as |lengths|, of which the last ones have other
// inputs where |other|. Rows are of several passes of the products.
Graph layer_of(const std::vector<double>& lengths, bool constant, bool other = false) {
  constexpr int64_t kTime = 5, kFeatures = 300, kHidden = 19;
  const auto batch = static_cast<int64_t>(lengths.size());
  Random random(3);
  Data w = random.data(PFRT_DTYPE_FLOAT32, {2, 4 * kHidden, kFeatures}, -0.2, 0.2);
  Data r = random.data(PFRT_DTYPE_FLOAT32, {2, 4 * kHidden, kHidden}, -0.2, 0.2);
  w.constant = r.constant = constant;
  Data x{PFRT_DTYPE_FLOAT32, {kTime, batch, kFeatures}, {}};
  for (int64_t i = 0; i < kTime * batch * kFeatures; ++i) {
    const int64_t time = i / (batch * kFeatures), row = i / kFeatures % batch, at = i % kFeatures;
    const double value = static_cast<double>((time * 31 + row * 7 + at * 13) % 41 - 20) / 20;
    x.values.push_back(other && row >= 2 ? -value / 3 : value);
  }
  Graph g;
  const uint32_t n = PFRT_NO_INDEX;
  g.outputs = {g.add(
      "LSTM", {g.add(x), g.add(w), g.add(r), n, g.add(Data{PFRT_DTYPE_INT32, {batch}, lengths})},
      {kTime, 2, batch, kHidden},
      {{"hidden_size", kHidden},
       {"layout", int64_t{0}},
       {"direction", std::string("bidirectional")},
       {"activations",
        std::vector<std::string>{"Sigmoid", "Tanh", "Tanh", "Sigmoid", "Tanh", "Tanh"}},
       {"input_forget", int64_t{0}}})};
  return g;
}

// The first two sequences of a layer's output.
std::vector<float> first_two(const Graph& g) {
  const GraphOutcome outcome = run(g);
  EXPECT_EQ(outcome.fault, "");
  std::vector<float> all(outcome.outputs.at(0).size() / sizeof(float)), out;
  std::memcpy(all.data(), outcome.outputs.at(0).data(), outcome.outputs.at(0).size());
  const Dims& dims = g.values.at(g.outputs[0]).dims;
  const int64_t row = dims[3], rows = dims[2] * row;
  for (auto at = all.begin(); at != all.end(); at += rows) out.insert(out.end(), at, at + 2 * row);
  return out;
}

TEST(Recurrent, sequences_have_the_same_bits_whatever_the_others_are) {
  if (cpu::split_matmul_usable())
    GTEST_SKIP() << "whether tiles multiply goes by the number of rows";
  for (const bool constant : {false, true}) {
    const std::vector<float> want = first_two(layer_of({5, 5}, constant));
    for (const std::vector<double>& lengths : {std::vector<double>{5, 5, 5},
                                               {5, 5, 2},
                                               std::vector<double>(9, 5),
                                               std::vector<double>(40, 5),
                                               {5, 5, 0, 5, 5, 5, 5, 5}}) {
      const std::vector<float> got = first_two(layer_of(lengths, constant, true));
      ASSERT_EQ(got.size(), want.size());
      EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0)
          << lengths.size() << " sequences, constant: " << constant;
    }
  }
}

}  // namespace
}  // namespace pfrt::test
