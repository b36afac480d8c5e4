// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose window is the image are products of the batch by the weights, with an
// epilogue, for a batch that only the run knows, and on any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

struct OnePosition {
  int64_t batch, in, out;
  Dims kernel;
};
const OnePosition kOnePositions[] = {
    {1, 40, 10, {1, 1}}, {1, 1152, 48, {1, 1}}, {3, 48, 1152, {1, 1}}, {8, 17, 33, {1, 1}},
    {40, 64, 96, {1}},   {2, 9, 300, {3, 5}},   {1, 3, 1, {2, 1, 2}},  {130, 96, 65, {1, 1}},
};

Graph graph_of(const OnePosition& of, bool constant, bool bias, Random& random) {
  Graph g;
  Dims x{of.batch, of.in}, w{of.out, of.in}, y{of.batch, of.out};
  x.insert(x.end(), of.kernel.begin(), of.kernel.end());
  w.insert(w.end(), of.kernel.begin(), of.kernel.end());
  y.resize(x.size(), 1);
  std::vector<uint32_t> inputs{g.add(random.data(PFRT_DTYPE_FLOAT32, x))};
  Data weights = random.data(PFRT_DTYPE_FLOAT32, w);
  weights.constant = constant;
  inputs.push_back(g.add(std::move(weights)));
  if (bias) inputs.push_back(g.add(random.data(PFRT_DTYPE_FLOAT32, {of.out})));
  const uint32_t sums = g.add("Conv", inputs, y, {{"kernel_shape", of.kernel}});
  g.outputs = {g.add("Relu", {sums}, y, {}, 1)};
  return g;
}

// Sums of the graph in doubles.
Values wanted(const Graph& g, const OnePosition& of, bool bias) {
  const Values &x = g.values[0].values, &w = g.values[1].values;
  const int64_t depth = of.in * count(of.kernel);
  Values y;
  for (int64_t n = 0; n < of.batch; ++n)
    for (int64_t o = 0; o < of.out; ++o) {
      double sum = bias ? g.values[2].values[static_cast<size_t>(o)] : 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += x[static_cast<size_t>(n * depth + k)] * w[static_cast<size_t>(o * depth + k)];
      y.push_back(std::max(sum, 0.0));
    }
  return y;
}

TEST(ConvOnePosition, is_a_product_with_the_same_bits_for_every_number_of_threads) {
  Random random(23);
  for (const OnePosition& of : kOnePositions)
    for (const bool constant : {false, true})
      for (const bool bias : {false, true})
        for (const bool told : {true, false}) {
          Graph g = graph_of(of, constant, bias, random);
          if (!told) {
            g.told[0] = g.values[0].dims;
            g.told[0][0] = -2;
          }
          const GraphOutcome got = run(g), many = run(g, 4);
          ASSERT_EQ(got.fault, "") << g.text();
          ASSERT_FALSE(got.kernels.empty());
          EXPECT_TRUE(got.kernels[0].starts_with("conv_one_position")) << got.kernels[0];
          EXPECT_EQ(got.outputs, many.outputs) << g.text();
          const Values want = wanted(g, of, bias);
          const auto* const y = reinterpret_cast<const float*>(got.outputs[0].data());
          for (size_t i = 0; i < want.size(); ++i)
            ASSERT_NEAR(static_cast<double>(y[i]), want[i],
                        1e-6 * static_cast<double>(of.in * count(of.kernel)) + 1e-6)
                << g.text() << i;
        }
}

// The image's size, which decides on the kernel, is told by the run alone; weights were packed for
// another kernel.
TEST(ConvOnePosition, images_whose_size_only_the_run_knows_are_products_too) {
  Random random(29);
  for (const OnePosition& of : kOnePositions) {
    Graph g = graph_of(of, true, true, random);
    g.told[0] = g.values[0].dims;
    for (size_t i = 2; i < g.told[0].size(); ++i) g.told[0][i] = -2 - static_cast<int64_t>(i);
    const GraphOutcome got = run(g);
    ASSERT_EQ(got.fault, "") << g.text();
    const Values want = wanted(g, of, true);
    const auto* const y = reinterpret_cast<const float*>(got.outputs[0].data());
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(static_cast<double>(y[i]), want[i],
                  1e-6 * static_cast<double>(of.in * count(of.kernel)) + 1e-6)
          << g.text() << i;
  }
}

TEST(ConvOnePosition, other_windows_are_for_other_kernels) {
  Random random(31);
  const auto refused = [&](const Dims& image, const Dims& kernel, const Dims& y,
                           std::vector<Attr> attrs) {
    Case c;
    const auto dims = [](int64_t a, int64_t b, const Dims& rest) {
      Dims out{a, b};
      out.insert(out.end(), rest.begin(), rest.end());
      return out;
    };
    const int64_t groups =
        attrs.empty() || attrs[0].name != "group" ? 1 : std::get<int64_t>(attrs[0].value);
    c.inputs = {random.data(PFRT_DTYPE_FLOAT32, dims(1, 4, image)),
                random.data(PFRT_DTYPE_FLOAT32, dims(4, 4 / groups, kernel))};
    const Dims out = dims(1, 4, y);
    c.outputs = {{PFRT_DTYPE_FLOAT32, out, Values(static_cast<size_t>(count(out))), false}};
    c.attrs = std::move(attrs);
    for (std::span<const cpu::KernelRow> family : cpu::kernels())
      for (const cpu::KernelRow& row : family)
        if (row.name == "conv_one_position") return !run(row, c).refused.empty();
    return false;
  };
  EXPECT_FALSE(refused({1, 1}, {1, 1}, {1, 1}, {}));
  EXPECT_TRUE(refused({1, 1}, {1, 1}, {1, 1}, {{"group", int64_t{2}}}));
  EXPECT_TRUE(refused({2, 1}, {1, 1}, {2, 1}, {}));
  EXPECT_TRUE(refused({1, 1}, {1, 1}, {3, 1}, {{"pads", Dims{1, 0, 1, 0}}}));
  EXPECT_TRUE(refused({3}, {2}, {1}, {{"dilations", Dims{2}}}));
}

}  // namespace
}  // namespace pfrt::test
