// SPDX-License-Identifier: Apache-2.0
//
// A convolution with the MaxPool of its output in one step has the bits of two steps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/status.h"
#include "providers/cpu/isa/isa.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

struct Axis {
  int64_t size, kernel, stride, dilation, begin, end;
  int64_t out(bool ceil) const {
    const int64_t room = size + begin + end - (kernel - 1) * dilation - 1;
    if (room < 0) return 0;
    int64_t n = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (n - 1) * stride >= size + begin) --n;  // this window would begin behind the image
    return n;
  }
};

Axis axis(Random& random, int64_t size, int64_t most, bool dilated) {
  Axis a{size, random.from_to(1, most), random.from_to(1, 3), 1, 0, 0};
  if (dilated && random.once_in(4)) a.dilation = 2;
  a.begin = random.below(a.kernel);
  a.end = random.below(a.kernel);
  return a;
}

std::vector<Attr> window_attrs(const Axis& y, const Axis& x) {
  return {{"kernel_shape", Dims{y.kernel, x.kernel}},
          {"strides", Dims{y.stride, x.stride}},
          {"dilations", Dims{y.dilation, x.dilation}},
          {"pads", Dims{y.begin, x.begin, y.end, x.end}}};
}

// Builds a convolution, its pooling and perhaps more; false where nothing of the image is left.
bool build(Graph& g, Random& random, bool large) {
  const int64_t groups = random.once_in(4) ? 2 : 1;
  // Fewer channels, and most constant weights, go to kernels that pool otherwise or not at all.
  const int64_t in = groups * (large ? random.from_to(1, 9) : random.from_to(9, 11)),
                out = groups * random.from_to(2, large ? 70 : 5);
  const int64_t batch = random.from_to(1, 2), most = large ? 60 : 14;
  const Axis y = axis(random, random.from_to(1, most), 5, true),
             x = axis(random, random.from_to(1, most), 5, true);
  const Dims conv{batch, out, y.out(false), x.out(false)};
  const Axis py = axis(random, conv[2], 4, true), px = axis(random, conv[3], 4, true);
  const bool ceil = random.once_in(4);
  const Dims pooled{batch, out, py.out(ceil), px.out(ceil)};
  if (count(conv) == 0 || count(pooled) == 0) return false;
  Data image = random.data(PFRT_DTYPE_FLOAT32, {batch, in, y.size, x.size});
  if (random.once_in(4)) image.values[static_cast<size_t>(random.below(count(image.dims)))] = NAN;
  if (random.once_in(4))
    image.values[static_cast<size_t>(random.below(count(image.dims)))] =
        -std::numeric_limits<double>::infinity();
  std::vector<uint32_t> inputs{g.add(std::move(image))};
  Data weights = random.data(PFRT_DTYPE_FLOAT32, {out, in / groups, y.kernel, x.kernel});
  weights.constant = random.once_in(large ? 2 : 6);
  inputs.push_back(g.add(std::move(weights)));
  if (random.once_in(2)) inputs.push_back(g.add(random.data(PFRT_DTYPE_FLOAT32, {out})));
  std::vector<Attr> attrs = window_attrs(y, x);
  attrs.push_back({"group", groups});
  const uint32_t c = g.add("Conv", inputs, conv, attrs);
  attrs = window_attrs(py, px);
  attrs.push_back({"ceil_mode", int64_t{ceil}});
  uint32_t v = g.add("MaxPool", {c}, pooled, attrs, 1);
  for (int64_t more = random.below(3); more-- > 0;) {
    if (random.once_in(2)) {
      v = g.add("Relu", {v}, pooled, {}, 1);
    } else {
      Data other = random.data(PFRT_DTYPE_FLOAT32, random.once_in(2) ? pooled : Dims{out, 1, 1});
      v = g.add("Add", {v, g.add(std::move(other))}, pooled, {}, 1);
    }
  }
  g.outputs = {v};
  return true;
}

Graph apart(Graph graph) {
  for (GraphNode& node : graph.nodes) node.tail_of = 0;
  return graph;
}

class Pooled : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "epilogues need avx2";
  }
  // Returns the number of graphs that ran in one step.
  int check(uint64_t first, uint64_t seeds, bool large) {
    int together = 0;
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
      Random random(seed);
      Graph g;
      if (!build(g, random, large)) continue;
      const GraphOutcome want = run(apart(g));
      EXPECT_EQ(want.fault, "") << seed << " " << g.text();
      for (uint32_t workers : {1u, 3u}) {
        const GraphOutcome got = run(g, workers);
        EXPECT_EQ(got.fault, "") << seed << " " << g.text();
        if (HasFailure()) return together;
        EXPECT_EQ(got.outputs[0].size(), want.outputs[0].size());
        for (size_t i = 0; i < want.outputs[0].size(); i += sizeof(float)) {
          float a, b;
          std::memcpy(&a, got.outputs[0].data() + i, sizeof a);
          std::memcpy(&b, want.outputs[0].data() + i, sizeof b);
          // Whole large products may run on tiles, but strips of them do not.
          const bool near = large && std::fabs(a - b) <= 1e-5f * (1 + std::fabs(b));
          const bool same =
              near || std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
          EXPECT_TRUE(same) << seed << " " << g.text() << "\n  element " << i / 4 << ": " << a
                            << ", apart " << b;
          if (!same) return together;
        }
        together += got.kernels.size() == 1;
      }
    }
    return together;
  }
};

TEST_F(Pooled, equals_the_two_apart) { EXPECT_GT(check(1, 400, false), 200); }
TEST_F(Pooled, large_ones_are_pooled_in_strips) { EXPECT_GT(check(1000, 40, true), 20); }

TEST_F(Pooled, is_one_step_that_does_not_write_the_convolution) {
  Graph g;
  Random random(5);
  const uint32_t x = g.add(random.data(PFRT_DTYPE_FLOAT32, {1, 3, 20, 20}));
  const uint32_t w = g.add(random.data(PFRT_DTYPE_FLOAT32, {8, 3, 3, 3}));
  const uint32_t c = g.add("Conv", {x, w}, {1, 8, 18, 18}, {{"kernel_shape", Dims{3, 3}}});
  const uint32_t p = g.add("MaxPool", {c}, {1, 8, 9, 9},
                           {{"kernel_shape", Dims{2, 2}}, {"strides", Dims{2, 2}}}, 1);
  g.outputs = {g.add("Relu", {p}, {1, 8, 9, 9}, {}, 1)};
  EXPECT_EQ(refused_epilogue(g, 0), "");
  const GraphOutcome got = run(g);
  ASSERT_EQ(got.fault, "");
  EXPECT_EQ(got.kernels, std::vector<std::string>{"conv_implicit_gemm+max_pool+relu"});
  EXPECT_EQ(got.nodes, (std::vector<std::vector<uint32_t>>{{0, 1, 2}}));
  EXPECT_EQ(got.bytes, 4u * (3 * 400 + 8 * 27 + 8 * 81));
}

TEST_F(Pooled, is_refused_with_a_reason) {
  Graph g;
  Random random(6);
  const uint32_t x = g.add(random.data(PFRT_DTYPE_FLOAT32, {1, 4, 9, 9}));
  const uint32_t w = g.add(random.data(PFRT_DTYPE_FLOAT32, {4, 1, 3, 3}));
  const uint32_t c =
      g.add("Conv", {x, w}, {1, 4, 7, 7}, {{"kernel_shape", Dims{3, 3}}, {"group", int64_t{4}}});
  g.outputs = {g.add("MaxPool", {c}, {1, 4, 6, 6}, {{"kernel_shape", Dims{2, 2}}}, 1)};
  EXPECT_NE(refused_epilogue(g, 0).find("conv_depthwise_rows does not run a pooling of its output"),
            std::string::npos)
      << refused_epilogue(g, 0);
}

}  // namespace
}  // namespace pfrt::test
