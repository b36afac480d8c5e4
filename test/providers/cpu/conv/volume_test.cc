// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of three spatial dimensions: sums in doubles, an epilogue that reads the result's
// place, sizes that only the run knows, and the same bits on any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "providers/cpu/isa/isa.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

struct Volume {
  int64_t batch, in, out;  // channels
  Dims image, kernel, strides, dilations, pads;
  int64_t groups = 1;
  const char* auto_pad = "NOTSET";
  const char* family = "conv_volume_direct";

  int64_t size(size_t d) const {
    return (image[d] + pads[d] + pads[d + 3] - (kernel[d] - 1) * dilations[d] - 1) / strides[d] + 1;
  }
};

const Dims kOnes{1, 1, 1}, kPadded{1, 1, 1, 1, 1, 1}, kNoPads(6, 0);
constexpr const char* kTiles = "conv_volume_winograd";
const Volume kVolumes[] = {
    {1, 40, 33, {4, 9, 11}, {3, 3, 3}, kOnes, kOnes, kPadded, 1, "NOTSET", kTiles},
    {2, 33, 40, {1, 8, 8}, {3, 3, 3}, kOnes, kOnes, kPadded, 1, "NOTSET", kTiles},
    {2, 32, 24, {3, 7, 7}, {1, 3, 3}, kOnes, kOnes, {0, 1, 1, 0, 1, 1}, 1, "NOTSET", kTiles},
    {1,
     32,
     24,
     {5, 6, 7},
     {2, 3, 3},
     {1, 1, 1},
     kOnes,
     {1, 1, 1, 0, 1, 1},
     1,
     "SAME_LOWER",
     kTiles},
    {1, 3, 17, {6, 9, 13}, {3, 7, 7}, {1, 2, 2}, kOnes, {1, 3, 3, 1, 3, 3}},
    {2, 5, 16, {7, 5, 6}, {3, 3, 3}, {2, 2, 2}, kOnes, kPadded},
    {1, 16, 32, {9, 8, 8}, {3, 1, 1}, kOnes, kOnes, {1, 0, 0, 1, 0, 0}},
    {2, 16, 32, {9, 4, 5}, {3, 1, 1}, {2, 1, 1}, {2, 1, 1}, {2, 0, 0, 1, 0, 0}},
    {2, 16, 32, {3, 4, 15}, {1, 1, 3}, kOnes, kOnes, {0, 0, 1, 0, 0, 0}},
    {2, 19, 21, {3, 4, 5}, {1, 1, 1}, kOnes, kOnes, kNoPads, 1, "NOTSET", "conv_pointwise"},
    {1, 19, 21, {4, 5, 5}, {1, 1, 1}, {2, 2, 2}, kOnes, kNoPads},
    {1, 24, 32, {6, 7, 5}, {2, 3, 2}, kOnes, {3, 2, 1}, {2, 1, 0, 3, 2, 1}, 2},
    {2, 64, 64, {2, 7, 7}, {3, 3, 3}, kOnes, kOnes, kPadded, 2, "NOTSET", kTiles},
    {1, 8, 16, {2, 5, 5}, {3, 3, 3}, kOnes, kOnes, {4, 1, 1, 3, 1, 1}},
};

Dims with_channels(int64_t a, int64_t b, Dims rest) {
  rest.insert(rest.begin(), {a, b});
  return rest;
}

Graph graph_of(const Volume& of, bool bias, Random& random) {
  Graph g;
  const Dims y = with_channels(of.batch, of.out, {of.size(0), of.size(1), of.size(2)});
  std::vector<uint32_t> inputs{
      g.add(random.data(PFRT_DTYPE_FLOAT32, with_channels(of.batch, of.in, of.image)))};
  Data weights =
      random.data(PFRT_DTYPE_FLOAT32, with_channels(of.out, of.in / of.groups, of.kernel));
  weights.constant = true;
  inputs.push_back(g.add(std::move(weights)));
  if (bias) inputs.push_back(g.add(random.data(PFRT_DTYPE_FLOAT32, {of.out})));
  const uint32_t more = g.add(random.data(PFRT_DTYPE_FLOAT32, y));
  std::vector<Attr> attrs{{"strides", of.strides},
                          {"dilations", of.dilations},
                          {"group", of.groups},
                          {"auto_pad", std::string(of.auto_pad)}};
  if (of.auto_pad == std::string_view("NOTSET")) attrs.push_back({"pads", of.pads});
  const uint32_t sums = g.add("Conv", inputs, y, attrs);
  const uint32_t added = g.add("Add", {sums, more}, y, {}, 1);
  g.outputs = {g.add("Relu", {added}, y, {}, 1)};
  return g;
}

Values wanted(const Graph& g, const Volume& of, bool bias) {
  const Values &x = g.values[0].values, &w = g.values[1].values;
  const Values& more = g.values[bias ? 3 : 2].values;
  const int64_t ins = of.in / of.groups, outs = of.out / of.groups;
  const int64_t D = of.image[0], H = of.image[1], W = of.image[2];
  Values y;
  for (int64_t n = 0; n < of.batch; ++n)
    for (int64_t o = 0; o < of.out; ++o)
      for (int64_t at = 0; at < of.size(0) * of.size(1) * of.size(2); ++at) {
        const int64_t place[] = {at / of.size(2) / of.size(1), at / of.size(2) % of.size(1),
                                 at % of.size(2)};
        double sum = bias ? g.values[2].values[static_cast<size_t>(o)] : 0;
        for (int64_t tap = 0; tap < count(of.kernel); ++tap) {
          const int64_t taps[] = {tap / of.kernel[2] / of.kernel[1],
                                  tap / of.kernel[2] % of.kernel[1], tap % of.kernel[2]};
          int64_t p[3];
          bool inside = true;
          for (size_t d = 0; d < 3; ++d) {
            p[d] = place[d] * of.strides[d] - of.pads[d] + taps[d] * of.dilations[d];
            inside = inside && p[d] >= 0 && p[d] < of.image[d];
          }
          for (int64_t i = 0; inside && i < ins; ++i)
            sum += x[static_cast<size_t>(
                       (((n * of.in + o / outs * ins + i) * D + p[0]) * H + p[1]) * W + p[2])] *
                   w[static_cast<size_t>((o * ins + i) * count(of.kernel) + tap)];
        }
        y.push_back(std::max(sum + more[y.size()], 0.0));
      }
  return y;
}

class ConvVolume : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  }
};

TEST_F(ConvVolume, is_near_plain_sums_with_the_same_bits_for_every_number_of_threads) {
  Random random(41);
  for (const Volume& of : kVolumes)
    for (const bool bias : {false, true})
      for (const int unknown : {0, 4}) {  // the first dimensions beside the channels
        Graph g = graph_of(of, bias, random);
        if (unknown > 0) {
          Dims& told = g.told[0] = g.values[0].dims;
          told[0] = -2;
          for (int i = 1; i < unknown; ++i) told[static_cast<size_t>(i + 1)] = -2 - i;
        }
        const GraphOutcome got = run(g), many = run(g, 4);
        ASSERT_EQ(got.fault, "") << g.text();
        EXPECT_EQ(got.kernels[0], std::string(of.family) + "+add+relu") << g.text();
        EXPECT_EQ(got.outputs, many.outputs) << g.text();
        const Values want = wanted(g, of, bias);
        const auto* const y = reinterpret_cast<const float*>(got.outputs[0].data());
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(static_cast<double>(y[i]), want[i], 1e-4 + 2e-6 * std::fabs(want[i]))
              << g.text() << i;
      }
}

TEST_F(ConvVolume, ieee_sums_are_not_transformed) {
  Random random(43);
  Graph g = graph_of(kVolumes[0], true, random);
  g.hints = PFRT_COMPILE_PLAIN;
  const GraphOutcome got = run(g);
  ASSERT_EQ(got.fault, "");
  EXPECT_EQ(got.kernels[0], "conv_volume_direct+add+relu");
}

TEST_F(ConvVolume, numbers_that_are_not_finite_stay_with_what_sees_them) {
  Random random(47);
  const Volume& of = kVolumes[0];
  for (const double odd : {static_cast<double>(INFINITY), static_cast<double>(NAN)})
    for (const uint32_t value : {0u, 1u}) {
      Graph g = graph_of(of, false, random);
      g.values[value].values[0] = odd;
      const GraphOutcome got = run(g);
      ASSERT_EQ(got.fault, "");
      const Values want = wanted(g, of, false);
      const auto* const y = reinterpret_cast<const float*>(got.outputs[0].data());
      size_t finite = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        // Padding by weights that are not finite is NaN, which the sum in doubles leaves out.
        const bool padded = value == 1 && i < want.size() / static_cast<size_t>(of.out);
        if (padded) continue;
        if (!std::isfinite(want[i])) {
          ASSERT_FALSE(std::isfinite(y[i])) << i;
          continue;
        }
        ++finite;
        ASSERT_NEAR(static_cast<double>(y[i]), want[i], 1e-3) << i;
      }
      EXPECT_GT(finite, 0u);
      EXPECT_TRUE(value == 1 || finite < want.size());
    }
}

TEST_F(ConvVolume, empty_images_and_results_are_empty) {
  Random random(53);
  Volume of = kVolumes[0];
  of.batch = 0;
  const GraphOutcome got = run(graph_of(of, true, random));
  EXPECT_EQ(got.fault, "");
  EXPECT_TRUE(got.outputs[0].empty());
}

}  // namespace
}  // namespace pfrt::test
