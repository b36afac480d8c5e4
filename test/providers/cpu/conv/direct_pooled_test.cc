// SPDX-License-Identifier: Apache-2.0
//
// Direct convolutions that include their pooling, row-major and in nChw16c, have the bits of two
// separate steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "providers/cpu/isa/amx.h"
#include "providers/cpu/isa/isa.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

class Builder {
 public:
  explicit Builder(Random& random) : random_(random) {}

  // A convolution with its pooling. It may come after a convolution to nChw16c, have more in its
  // epilogue, and feed another convolution.
  Graph build() {
    const int64_t batch = random_.from_to(1, 2);
    uint32_t x =
        g_.add(random_.data(PFRT_DTYPE_FLOAT32, {batch, random_.from_to(1, 40),
                                                 random_.from_to(4, 30), random_.from_to(4, 40)}));
    if (random_.once_in(2)) x = conv(x, 16 * random_.from_to(1, 2), 1, 1);
    const int64_t groups = g_.values[x].dims[1] % 2 == 0 && random_.once_in(4) ? 2 : 1;
    const int64_t channels =
        random_.once_in(2) ? 16 * random_.from_to(1, 3) : random_.from_to(1, 40);
    x = conv(x, groups * channels, 2 + 2 * random_.below(2), groups);
    const auto head = static_cast<uint32_t>(g_.nodes.size());
    x = pool(x, head);
    if (random_.once_in(2)) x = g_.add("Relu", {x}, g_.values[x].dims, {}, head);
    if (random_.once_in(2)) x = conv(x, 16 * random_.from_to(1, 2), 1, 1);
    g_.outputs = {x};
    return std::move(g_);
  }

 private:
  uint32_t constant(const Dims& dims) {
    Data data = random_.data(PFRT_DTYPE_FLOAT32, dims);
    data.constant = true;
    return g_.add(std::move(data));
  }

  uint32_t conv(uint32_t x, int64_t channels, int64_t side, int64_t groups) {
    const Dims in = g_.values[x].dims;
    const int64_t stride = side > 1 && random_.once_in(4) ? 2 : 1, pad = random_.below(side);
    const auto size = [&](int64_t n) { return (n + 2 * pad - side) / stride + 1; };
    std::vector<uint32_t> inputs{x, constant({channels, in[1] / groups, side, side})};
    if (random_.once_in(2)) inputs.push_back(constant({channels}));
    return g_.add("Conv", inputs, {in[0], channels, size(in[2]), size(in[3])},
                  {{"kernel_shape", Dims{side, side}},
                   {"strides", Dims{stride, stride}},
                   {"pads", Dims{pad, pad, pad, pad}},
                   {"group", groups}});
  }

  uint32_t pool(uint32_t x, uint32_t head) {
    Dims dims = g_.values[x].dims, kernel, strides;
    const bool ceil = random_.once_in(2);
    for (size_t d = 2; d < 4; ++d) {
      const int64_t k = random_.from_to(1, std::min<int64_t>(3, dims[d]));
      const int64_t s = random_.from_to(k, 4);
      int64_t n = (dims[d] - k + (ceil ? s - 1 : 0)) / s + 1;
      if (ceil && (n - 1) * s >= dims[d]) --n;
      kernel.push_back(k), strides.push_back(s);
      dims[d] = n;
    }
    return g_.add("MaxPool", {x}, dims,
                  {{"kernel_shape", kernel}, {"strides", strides}, {"ceil_mode", int64_t{ceil}}},
                  head);
  }

  Random& random_;
  Graph g_;
};

TEST(DirectPooled, equals_the_two_apart) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  if (cpu::amx_usable()) GTEST_SKIP() << "convolutions are on tiles here";
  std::map<std::string, int> seen;
  constexpr uint64_t kSeeds = 300;
  for (uint64_t seed = 1; seed <= kSeeds + 100; ++seed) {
    Random random(seed);
    Graph together = Builder(random).build();
    if (seed > kSeeds) together.hints = PFRT_COMPILE_BF16;
    Graph apart = together;
    for (GraphNode& node : apart.nodes) node.tail_of = 0;
    const GraphOutcome want = run(apart);
    ASSERT_EQ(want.fault, "") << seed << " " << apart.text();
    for (const uint32_t workers : {1u, 3u}) {
      const GraphOutcome got = run(together, workers);
      ASSERT_EQ(got.fault, "") << seed << " " << together.text();
      ASSERT_EQ(got.outputs[0], want.outputs[0]) << seed << " " << together.text();
      for (const std::string& kernel : got.kernels)
        if (const size_t end = kernel.find("+max_pool"); end != kernel.npos)
          ++seen[kernel.substr(0, end)];
    }
  }
  EXPECT_GT(seen["conv_direct"], 100);
  EXPECT_GT(seen["conv_direct_nchw16c"], 100);
  if (cpu::isa() < cpu::Isa::kAvx512Bf16) return;
  EXPECT_GT(seen["conv_direct_bf16"], 30);
  EXPECT_GT(seen["conv_direct_bf16_nchw16c"], 30);
}

TEST(DirectPooled, refuses_windows_that_overlap) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  if (cpu::amx_usable()) GTEST_SKIP() << "convolutions are on tiles here";
  Random random(3);
  Graph g;
  Data weights = random.data(PFRT_DTYPE_FLOAT32, {16, 4, 5, 5});
  weights.constant = true;
  const uint32_t x = g.add(random.data(PFRT_DTYPE_FLOAT32, {1, 4, 12, 12}));
  const uint32_t c =
      g.add("Conv", {x, g.add(std::move(weights))}, {1, 16, 8, 8}, {{"kernel_shape", Dims{5, 5}}});
  g.outputs = {g.add("MaxPool", {c}, {1, 16, 3, 3},
                     {{"kernel_shape", Dims{3, 3}}, {"strides", Dims{2, 2}}}, 1)};
  EXPECT_NE(refused_epilogue(g, 0).find("do not overlap"), std::string::npos)
      << refused_epilogue(g, 0);
}

}  // namespace
}  // namespace pfrt::test
