// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of bytes and the nodes behind them in quantized models, in one step or several, in
// nChw16c or row-major: the bits are equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "providers/cpu/isa/isa.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

class IntegerChain {
 public:
  explicit IntegerChain(uint64_t seed) : random_(seed) {}

  Graph graph;

  uint32_t constant(pfrt_dtype dtype, Dims dims) {
    Data data = random_.data(dtype, std::move(dims));
    data.constant = true;
    return graph.add(std::move(data));
  }
  uint32_t number(double value) {
    Data data = random_.data(PFRT_DTYPE_FLOAT32, {});
    data.values = {static_cast<double>(static_cast<float>(value))};
    data.constant = true;
    return graph.add(std::move(data));
  }
  uint32_t zero(pfrt_dtype dtype) { return constant(dtype, {}); }
  uint32_t image() {
    return graph.add(random_.data(PFRT_DTYPE_FLOAT32, {batch_, channels_, height_, width_}));
  }
  Dims dims() const { return {batch_, channels_, height_, width_}; }
  void set_channels(int64_t channels) { channels_ = channels; }

  // Attributes of a convolution of |taps| x |taps| that keeps the image's size.
  std::vector<Attr> window(int64_t taps, int64_t groups) {
    return {{"kernel_shape", Dims{taps, taps}},
            {"pads", Dims{taps / 2, taps / 2, taps / 2, taps / 2}},
            {"group", groups}};
  }

  // Adds a convolution of a model that is quantized while it runs; it gives float32.
  uint32_t dynamic(uint32_t x) {
    const uint32_t bytes = typed(PFRT_DTYPE_UINT8, dims()), scale = typed(PFRT_DTYPE_FLOAT32, {}),
                   zeros = typed(PFRT_DTYPE_UINT8, {});
    graph.nodes.push_back({"DynamicQuantizeLinear", {x}, {bytes, scale, zeros}, {}, 0, {}});
    const bool depthwise = random_.once_in(3);
    const int64_t taps = random_.once_in(2) ? 1 : 3;
    const int64_t outs = depthwise ? channels_ : 8 * random_.from_to(1, 6);
    const pfrt_dtype w = random_.once_in(2) ? PFRT_DTYPE_INT8 : PFRT_DTYPE_UINT8;
    const uint32_t weights = constant(w, {outs, depthwise ? 1 : channels_, taps, taps});
    channels_ = outs;
    const uint32_t sums = typed(PFRT_DTYPE_INT32, dims());
    graph.nodes.push_back({"ConvInteger",
                           {bytes, weights, zeros, zero(w)},
                           {sums},
                           window(taps, depthwise ? channels_ : 1),
                           0,
                           {}});
    const auto head = static_cast<uint32_t>(graph.nodes.size());
    uint32_t y = follow("Cast", {sums}, {{"to", int64_t{PFRT_DTYPE_FLOAT32}}}, head);
    y = follow("Mul",
               {y, random_.once_in(2) ? scale : constant(PFRT_DTYPE_FLOAT32, {channels_, 1, 1})},
               {}, head);
    y = follow("Add",
               {y, constant(PFRT_DTYPE_FLOAT32,
                            random_.once_in(2) ? Dims{1, channels_, 1, 1} : Dims{channels_, 1, 1})},
               {}, head);
    return random_.once_in(2) ? follow("Relu", {y}, {}, head) : y;
  }

  uint32_t quantized(uint32_t x) {
    return step("QuantizeLinear", PFRT_DTYPE_UINT8, {x, number(0.03), zero(PFRT_DTYPE_UINT8)});
  }
  uint32_t qlinear(uint32_t x) {
    const bool depthwise = random_.once_in(3);
    const int64_t taps = random_.once_in(2) ? 1 : 3;
    const uint32_t weights =
        constant(PFRT_DTYPE_INT8, {channels_, depthwise ? 1 : channels_, taps, taps});
    return step("QLinearConv", PFRT_DTYPE_UINT8,
                {x, number(0.02), zero(PFRT_DTYPE_UINT8), weights, number(0.01),
                 zero(PFRT_DTYPE_INT8), number(depthwise ? 0.2 : 2), zero(PFRT_DTYPE_UINT8)},
                window(taps, depthwise ? channels_ : 1));
  }
  // Adds two branches in bytes: two convolutions, or a convolution and its input.
  uint32_t residual(uint32_t x) {
    const uint32_t a = qlinear(x);
    const auto head = static_cast<uint32_t>(graph.nodes.size());
    const bool both = random_.once_in(2);
    const uint32_t b = both ? qlinear(x) : x;
    const auto other = static_cast<uint32_t>(graph.nodes.size());
    const uint32_t wide = real(a, head), added = real(b, both ? other : 0);
    uint32_t y = follow("Add", {wide, added}, {}, head);
    if (random_.once_in(2)) y = follow("Relu", {y}, {}, head);
    const uint32_t out = typed(PFRT_DTYPE_UINT8, dims());
    graph.nodes.push_back(
        {"QuantizeLinear", {y, number(0.04), zero(PFRT_DTYPE_UINT8)}, {out}, {}, head, {}});
    return out;
  }
  // Adds a maximum, and quantizes it by other steps.
  uint32_t pooled(uint32_t x) {
    const uint32_t most = step("MaxPool", PFRT_DTYPE_UINT8, {x},
                               {{"kernel_shape", Dims{3, 3}}, {"pads", Dims{1, 1, 1, 1}}});
    const auto head = static_cast<uint32_t>(graph.nodes.size());
    const uint32_t wide = real(most, head), out = typed(PFRT_DTYPE_UINT8, dims());
    graph.nodes.push_back(
        {"QuantizeLinear", {wide, number(0.03), zero(PFRT_DTYPE_UINT8)}, {out}, {}, head, {}});
    return out;
  }
  uint32_t real(uint32_t x, uint32_t head) {
    return follow("DequantizeLinear", {x, number(0.02), zero(PFRT_DTYPE_UINT8)}, {}, head);
  }

 private:
  uint32_t typed(pfrt_dtype dtype, Dims of) {
    Data data;
    data.dtype = dtype;
    data.dims = std::move(of);
    return graph.add(std::move(data));
  }
  uint32_t step(std::string op, pfrt_dtype dtype, std::vector<uint32_t> inputs,
                std::vector<Attr> attrs = {}) {
    const uint32_t out = typed(dtype, dims());
    graph.nodes.push_back({std::move(op), std::move(inputs), {out}, std::move(attrs), 0, {}});
    return out;
  }
  uint32_t follow(std::string op, std::vector<uint32_t> inputs, std::vector<Attr> attrs,
                  uint32_t head) {
    const uint32_t out = typed(PFRT_DTYPE_FLOAT32, dims());
    graph.nodes.push_back({std::move(op), std::move(inputs), {out}, std::move(attrs), head, {}});
    return out;
  }

  Random random_;
  int64_t batch_ = random_.from_to(1, 2), channels_ = 16 * random_.from_to(1, 3),
          height_ = random_.from_to(1, 12), width_ = random_.from_to(1, 20);
};

// Compares with the graph whose every value is an output, so that nothing is fused and images are
// row-major.
void compare_apart(const Graph& graph, uint64_t seed, bool& joined, bool& nchw16c) {
  Graph all = graph;
  for (const GraphNode& node : graph.nodes)
    for (const uint32_t value : node.outputs)
      if (value != graph.outputs[0]) all.outputs.push_back(value);
  const GraphOutcome once = run(graph, 1), threads = run(graph, 3), apart = run(all, 1);
  ASSERT_EQ(once.fault + threads.fault + apart.fault, "") << "seed " << seed << graph.text();
  EXPECT_EQ(once.outputs[0], apart.outputs[0]) << "seed " << seed << ": " << graph.text();
  EXPECT_EQ(once.outputs[0], threads.outputs[0]) << "seed " << seed << ": " << graph.text();
  for (const std::string& kernel : once.kernels) {
    if (kernel.find("conv") == kernel.npos) continue;
    joined |= kernel.find('+') != kernel.npos;
    nchw16c |= kernel.find("_nchw16c") != kernel.npos && kernel.find('+') != kernel.npos;
  }
}

constexpr uint64_t kChains = 60;

TEST(IntegerEpilogues, of_convolutions_quantized_in_the_run) {
  bool joined = false, nchw16c = false;
  for (uint64_t seed = 1; seed <= kChains; ++seed) {
    IntegerChain chain(seed);
    uint32_t x = chain.image();
    for (int i = 0; i < 3; ++i) x = chain.dynamic(x);
    chain.graph.outputs = {x};
    compare_apart(chain.graph, seed, joined, nchw16c);
    if (HasFatalFailure()) return;
  }
  if (cpu::isa() < cpu::Isa::kAvx2) return;
  EXPECT_TRUE(joined);
  EXPECT_TRUE(nchw16c);
}

TEST(IntegerEpilogues, of_residual_sums) {
  bool joined = false, nchw16c = false;
  for (uint64_t seed = 1; seed <= kChains; ++seed) {
    IntegerChain chain(seed);
    uint32_t x = chain.quantized(chain.image());
    for (int i = 0; i < 3; ++i) {
      x = chain.residual(x);
      if (seed % 3 == 0) x = chain.pooled(x);
    }
    chain.graph.outputs = {x};
    compare_apart(chain.graph, seed, joined, nchw16c);
    if (HasFatalFailure()) return;
  }
  if (cpu::isa() < cpu::Isa::kAvx2) return;
  EXPECT_TRUE(joined);
  EXPECT_TRUE(nchw16c);
}

}  // namespace
}  // namespace pfrt::test
