// SPDX-License-Identifier: Apache-2.0
//
// Images in nChw16c have the bits that the graph gives where every value is an output and thus
// row-major.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "providers/cpu/isa/amx.h"
#include "providers/cpu/isa/isa.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

class Builder {
 public:
  Builder(Graph& graph, Random& random) : g_(graph), random_(random) {}

  uint32_t image(int64_t channels, int64_t height, int64_t width) {
    return g_.add(random_.data(PFRT_DTYPE_FLOAT32, {batch_, channels, height, width}));
  }

  uint32_t constant(Dims dims) {
    Data data = random_.data(PFRT_DTYPE_FLOAT32, std::move(dims));
    data.constant = true;
    return g_.add(std::move(data));
  }

  uint32_t conv(uint32_t x, int64_t outputs) {
    const Dims in = g_.values[x].dims;
    const int64_t groups = in[1] % 32 == 0 && outputs % 32 == 0 && random_.once_in(4) ? 2 : 1;
    const bool small = std::min(in[2], in[3]) < 5;
    const bool plain = random_.once_in(2);  // 3 x 3 taps without strides and dilations
    const auto side = [&] { return small ? 1 : plain ? 3 : random_.from_to(1, 3); };
    const auto step = [&] { return plain ? 1 : random_.from_to(1, 2); };
    const int64_t ky = side(), kx = side(), dy = step(), dx = step(), sy = step(), sx = step();
    const Dims pads{random_.below(ky + 1), random_.below(kx + 2), random_.below(ky),
                    random_.below(kx)};
    const Dims out{in[0], outputs, (in[2] + pads[0] + pads[2] - (ky - 1) * dy - 1) / sy + 1,
                   (in[3] + pads[1] + pads[3] - (kx - 1) * dx - 1) / sx + 1};
    std::vector<uint32_t> inputs{x, constant({outputs, in[1] / groups, ky, kx})};
    if (random_.once_in(2)) inputs.push_back(constant({outputs}));
    return g_.add("Conv", inputs, out,
                  {{"kernel_shape", Dims{ky, kx}},
                   {"strides", Dims{sy, sx}},
                   {"dilations", Dims{dy, dx}},
                   {"pads", pads},
                   {"group", groups}});
  }

  uint32_t depthwise(uint32_t x) {
    const Dims in = g_.values[x].dims;
    const int64_t s = random_.from_to(1, 2), d = random_.from_to(1, 2);
    const Dims pads{random_.below(3), random_.below(5), 2, random_.from_to(2, 4)};
    if (in[2] < 3 || in[3] < 3) return g_.add("Relu", {x}, in);
    const Dims out{in[0], in[1], (in[2] + pads[0] + pads[2] - 2 * d - 1) / s + 1,
                   (in[3] + pads[1] + pads[3] - 2 * d - 1) / s + 1};
    return g_.add("Conv", {x, constant({in[1], 1, 3, 3}), constant({in[1]})}, out,
                  {{"kernel_shape", Dims{3, 3}},
                   {"strides", Dims{s, s}},
                   {"dilations", Dims{d, d}},
                   {"pads", pads},
                   {"group", in[1]}});
  }

  uint32_t pool(uint32_t x, const char* op) {
    Dims out = g_.values[x].dims;
    out[2] = (out[2] + 2 - 3) / 2 + 1;
    out[3] = (out[3] + 2 - 3) / 2 + 1;
    return g_.add(op, {x}, out,
                  {{"kernel_shape", Dims{3, 3}},
                   {"strides", Dims{2, 2}},
                   {"pads", Dims{1, 1, 1, 1}},
                   {"count_include_pad", random_.below(2)},
                   {"ceil_mode", int64_t{0}}});
  }

  // Adds a MaxPool that has as many positions as pixels.
  uint32_t wide_max(uint32_t x) {
    const Dims dims = g_.values[x].dims;
    const int64_t ky = random_.from_to(3, 7), kx = random_.from_to(3, 7);
    const int64_t top = random_.below(ky), left = random_.below(kx);
    return g_.add("MaxPool", {x}, dims,
                  {{"kernel_shape", Dims{ky, kx}},
                   {"strides", Dims{1, 1}},
                   {"pads", Dims{top, left, ky - 1 - top, kx - 1 - left}},
                   {"ceil_mode", int64_t{0}}});
  }

  uint32_t normalized(uint32_t x) {
    const Dims dims = g_.values[x].dims, channels{dims[1]};
    Data variance = random_.data(PFRT_DTYPE_FLOAT32, channels);
    for (double& v : variance.values) v = static_cast<double>(static_cast<float>(std::fabs(v) + 1));
    variance.constant = true;
    return g_.add("BatchNormalization",
                  {x, constant(channels), constant(channels), constant(channels),
                   g_.add(std::move(variance))},
                  dims);
  }

  uint32_t step(uint32_t x) {
    const Dims dims = g_.values[x].dims;
    switch (random_.below(11)) {
      case 8:  // an element for each channel, one for all, or one for each pixel
        return g_.add(random_.once_in(2) ? "PRelu" : "Mul",
                      {x, constant(random_.once_in(3)   ? Dims{}
                                   : random_.once_in(2) ? Dims{dims[1], 1, 1}
                                                        : Dims{dims[2], dims[3]})},
                      dims);
      case 0:
        return g_.add("Relu", {x}, dims);
      case 1:
        return pool(x, "MaxPool");
      case 2:
        return pool(x, "AveragePool");
      case 3:
        return normalized(x);
      case 4:
        return g_.add("Add", {x, g_.add("Sigmoid", {x}, dims)}, dims);
      case 5:
        return depthwise(x);
      case 6: {
        // Joins 48 further channels of the same size, from a kernel of one tap.
        const uint32_t more =
            g_.add("Conv", {x, constant({48, dims[1], 1, 1})}, {dims[0], 48, dims[2], dims[3]},
                   {{"kernel_shape", Dims{1, 1}}});
        return g_.add("Concat", {x, more}, {dims[0], dims[1] + 48, dims[2], dims[3]},
                      {{"axis", int64_t{1}}});
      }
      case 7:
        return g_.add("LRN", {x}, dims, {{"size", random_.from_to(1, 16)}, {"alpha", 0.5f}});
      case 9:
        return wide_max(x);
      default:
        return conv(x, 16 * random_.from_to(1, 5));
    }
  }

 private:
  Graph& g_;
  Random& random_;
  int64_t batch_ = random_.from_to(1, 2);
};

// Returns the graph with all its floats in |dtype|.
Graph retyped(Graph graph, pfrt_dtype dtype) {
  for (Data& value : graph.values) {
    value.dtype = dtype;
    value.values = rounded(dtype, value.values);
  }
  return graph;
}

// Compares graphs with as many images in nChw16c as possible with those that have none. Returns the
// kernels that used the layout.
std::set<std::string> compare_layouts(pfrt_dtype dtype, uint64_t seeds, uint64_t hints = 0) {
  std::set<std::string> nchw16c;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    Graph graph;
    Builder build(graph, random);
    uint32_t x = build.image(random.from_to(1, 40), random.from_to(5, 24), random.from_to(5, 40));
    x = build.conv(x, 16 * random.from_to(1, 4));
    for (int64_t steps = random.from_to(2, 7); steps-- > 0;) x = build.step(x);
    // The layout ends here where the channels are no whole number of blocks.
    x = build.conv(x, random.from_to(12, 40));
    graph.outputs = {x};
    graph = retyped(std::move(graph), dtype);
    graph.hints = hints;
    Graph all = graph;
    for (const GraphNode& node : graph.nodes)
      if (node.outputs[0] != x) all.outputs.push_back(node.outputs[0]);
    const GraphOutcome once = run(graph, 1), apart = run(all, 2);
    EXPECT_EQ(once.fault + apart.fault, "") << "seed " << seed << ": " << graph.text();
    if (!once.fault.empty() || !apart.fault.empty()) break;
    EXPECT_EQ(once.outputs[0], apart.outputs[0]) << "seed " << seed << ": " << graph.text();
    for (const std::string& kernel : once.kernels)
      if (const size_t end = kernel.find("_nchw16c"); end != kernel.npos)
        nchw16c.insert(kernel.substr(0, end));
    for (const std::string& kernel : apart.kernels)
      EXPECT_EQ(kernel.find("_nchw16c"), kernel.npos) << kernel;
  }
  return nchw16c;
}

TEST(Nchw16c, the_bits_of_row_major_images) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  std::set<std::string> all{"average_pool_rows",   "batch_norm_planes", "concat_copy",
                            "conv_depthwise_rows", "conv_direct",       "lrn_channels",
                            "max_pool_rows"};
  if (cpu::amx_usable())
    all.insert("conv_tiles");
  else
    all.insert("conv_winograd");
  EXPECT_EQ(compare_layouts(PFRT_DTYPE_FLOAT32, 80), all);
}

TEST(Nchw16c, the_bits_of_row_major_images_of_16_bits) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  std::set<std::string> all{"average_pool_rows", "concat_copy",   "conv_depthwise_rows",
                            "conv_direct",       "conv_winograd", "max_pool_rows"};
  EXPECT_EQ(compare_layouts(PFRT_DTYPE_FLOAT16, 120), all);
  if (cpu::isa() >= cpu::Isa::kAvx512Bf16 && !cpu::amx_usable()) {
    all.erase("conv_direct"), all.erase("conv_winograd");
    all.insert("conv_direct_bf16");
  }
  EXPECT_EQ(compare_layouts(PFRT_DTYPE_BFLOAT16, 120), all);
}

TEST(Nchw16c, the_bits_of_row_major_images_by_pairs_of_bfloat16) {
  if (cpu::isa() < cpu::Isa::kAvx512Bf16 || cpu::amx_usable())
    GTEST_SKIP() << "needs avx512_bf16, without tiles";
  const std::set<std::string> all{"average_pool_rows", "concat_copy",        "conv_depthwise_rows",
                                  "conv_direct_bf16",  "conv_winograd_bf16", "max_pool_rows"};
  std::set<std::string> found = compare_layouts(PFRT_DTYPE_FLOAT32, 120, PFRT_COMPILE_BF16);
  std::erase_if(found, [&](const std::string& kernel) { return !all.contains(kernel); });
  EXPECT_EQ(found, all);
}

TEST(Nchw16c, global_averages) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(5);
  Graph graph;
  Builder build(graph, random);
  const uint32_t image = build.image(32, 9, 11), x = build.conv(image, 48);
  const Dims dims = graph.values[x].dims;
  const uint32_t mean = graph.add("GlobalAveragePool", {x}, {dims[0], dims[1], 1, 1});
  graph.outputs = {mean};
  Graph all = graph;
  all.outputs.push_back(x);
  const GraphOutcome once = run(graph), apart = run(all);
  ASSERT_EQ(once.fault + apart.fault, "");
  EXPECT_NE(once.kernels.back().find("_nchw16c"), std::string::npos);
  const size_t n = once.outputs[0].size() / sizeof(float);
  ASSERT_EQ(n, static_cast<size_t>(dims[0] * dims[1]));
  for (size_t i = 0; i < n; ++i) {
    float a, b;
    std::memcpy(&a, once.outputs[0].data() + 4 * i, 4);
    std::memcpy(&b, apart.outputs[0].data() + 4 * i, 4);
    EXPECT_NEAR(a, b, 1e-6 * (1 + std::fabs(b))) << i;
  }
}

}  // namespace
}  // namespace pfrt::test
