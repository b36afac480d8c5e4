// SPDX-License-Identifier: Apache-2.0
//
// Normalisations in the step that makes their input have the bits of two steps, whichever thread
// finishes a row, and whether or not others use the normalised value.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/base/status.h"
#include "providers/cpu/epilogue/norm_rows.h"
#include "providers/cpu/isa/isa.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

Graph apart(Graph graph) {
  for (GraphNode& node : graph.nodes) node.tail_of = 0;
  return graph;
}

Data weights(Random& random, Dims dims) {
  Data data = random.data(PFRT_DTYPE_FLOAT32, std::move(dims));
  data.constant = true;
  return data;
}

// Adds a LayerNormalization or RMSNormalization of the last dimension of |x|, in the step of node
// 0.
uint32_t add_norm(Graph& g, Random& random, uint32_t x, const Dims& dims) {
  const bool centered = random.once_in(2);
  std::vector<uint32_t> inputs{x, g.add(weights(random, {dims.back()}))};
  if (centered && random.once_in(2)) inputs.push_back(g.add(weights(random, {dims.back()})));
  const int64_t axis = random.once_in(2) ? -1 : std::ssize(dims) - 1;
  return g.add(centered ? "LayerNormalization" : "RMSNormalization", inputs, dims,
               {{"axis", axis}, {"epsilon", 1e-3F}}, 1);
}

// A product or a Gather, perhaps with an epilogue, whose rows are normalised.
Graph build(Random& random, bool large) {
  Graph g;
  const int64_t columns = random.from_to(1, large ? 900 : 40);
  const int64_t rows = random.from_to(1, large ? 70 : 9), depth = random.from_to(1, 12);
  Dims dims{random.from_to(1, 2), rows, columns};
  uint32_t v;
  if (random.once_in(3)) {
    Data indices = integers({dims[0], rows}, Dims(static_cast<size_t>(dims[0] * rows)), false);
    for (double& i : indices.values) i = static_cast<double>(random.below(depth));
    const uint32_t table = g.add(random.data(PFRT_DTYPE_FLOAT32, {depth, columns}));
    v = g.add("Gather", {table, g.add(std::move(indices))}, dims, {{"axis", int64_t{0}}});
  } else {
    const uint32_t a = g.add(random.data(PFRT_DTYPE_FLOAT32, {dims[0], rows, depth}));
    v = g.add("MatMul", {a, g.add(weights(random, {depth, columns}))}, dims);
  }
  for (int64_t more = random.below(3); more-- > 0;) {
    if (random.once_in(2)) {
      v = g.add("Add", {v, g.add(random.data(PFRT_DTYPE_FLOAT32, dims))}, dims, {}, 1);
    } else {
      v = g.add("Relu", {v}, dims, {}, 1);
    }
  }
  const uint32_t norm = add_norm(g, random, v, dims);
  g.outputs = {norm};
  if (random.once_in(3)) g.outputs.push_back(v);
  if (random.once_in(3)) g.outputs.push_back(g.add("Neg", {v}, dims));
  return g;
}

bool same(const std::vector<char>& got, const std::vector<char>& want) {
  return got.size() == want.size() && std::memcmp(got.data(), want.data(), want.size()) == 0;
}

class RowNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "epilogues need avx2";
  }
  void check(uint64_t first, uint64_t seeds, bool large) {
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
      Random random(seed);
      const Graph g = build(random, large);
      const GraphOutcome want = run(apart(g));
      ASSERT_EQ(want.fault, "") << seed << " " << g.text();
      for (uint32_t workers : {1u, 3u}) {
        const GraphOutcome got = run(g, workers);
        ASSERT_EQ(got.fault, "") << seed << " " << g.text();
        for (size_t i = 0; i < g.outputs.size(); ++i)
          ASSERT_TRUE(same(got.outputs[i], want.outputs[i]))
              << seed << " " << g.text() << "\n  output " << i << ", " << workers << " workers";
        const size_t more = g.nodes.back().op == "Neg";
        EXPECT_EQ(got.kernels.size(), 1 + more) << seed << " " << g.text();
      }
    }
  }
};

TEST_F(RowNorm, equals_the_two_apart) { check(1, 400, false); }
TEST_F(RowNorm, rows_that_several_finish) { check(1000, 30, true); }

TEST_F(RowNorm, overwrites_what_nothing_else_uses) {
  Graph g;
  Random random(2);
  const uint32_t a = g.add(random.data(PFRT_DTYPE_FLOAT32, {4, 3}));
  const uint32_t m = g.add("MatMul", {a, g.add(weights(random, {3, 8}))}, {4, 8});
  g.outputs = {g.add("LayerNormalization", {m, g.add(weights(random, {8}))}, {4, 8}, {}, 1)};
  EXPECT_EQ(refused_epilogue(g, 0), "");
  const GraphOutcome got = run(g);
  ASSERT_EQ(got.fault, "");
  ASSERT_EQ(got.kernels.size(), 1u);
  EXPECT_NE(got.kernels[0].find("+layer_normalization"), std::string::npos) << got.kernels[0];
  EXPECT_EQ(got.bytes, 4u * (12 + 24 + 8 + 32 + 4));  // a, weights, scale, the result, counters
}

TEST_F(RowNorm, is_refused_with_a_reason) {
  struct {
    const char* reason;
    void (*add)(Graph& g, uint32_t x, Random& random);
  } const kCases[] = {
      {"only the last dimension",
       [](Graph& g, uint32_t x, Random& random) {
         g.add("LayerNormalization", {x, g.add(weights(random, {8, 8}))}, {8, 8},
               {{"axis", int64_t{0}}}, 1);
       }},
      {"is no constant",
       [](Graph& g, uint32_t x, Random& random) {
         const uint32_t scale = g.add(random.data(PFRT_DTYPE_FLOAT32, {8}));
         g.add("LayerNormalization", {x, scale}, {8, 8}, {}, 1);
       }},
      {"with an element for each",
       [](Graph& g, uint32_t x, Random& random) {
         g.add("RMSNormalization", {x, g.add(weights(random, {1}))}, {8, 8}, {}, 1);
       }},
      {"with an element for each",  // a factor for each row has as many elements
       [](Graph& g, uint32_t x, Random& random) {
         g.add("RMSNormalization", {x, g.add(weights(random, {8, 1}))}, {8, 8}, {}, 1);
       }},
  };
  for (const auto& c : kCases) {
    Graph g;
    Random random(3);
    const uint32_t a = g.add(random.data(PFRT_DTYPE_FLOAT32, {8, 3}));
    c.add(g, g.add("MatMul", {a, g.add(weights(random, {3, 8}))}, {8, 8}), random);
    EXPECT_NE(refused_epilogue(g, 0).find(c.reason), std::string::npos) << refused_epilogue(g, 0);
  }
}

TEST(NormRows, vectors_have_the_bits_of_plain_code) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "no AVX2 here";
  Random random(8);
  for (int64_t n = 1; n <= 200; n += n < 70 ? 1 : 13) {
    const auto numbers = [&](float size) {
      Guarded memory(static_cast<size_t>(n) * sizeof(float), Placed::kAtEnd, sizeof(float));
      auto* const x = reinterpret_cast<float*>(memory.data());
      for (int64_t i = 0; i < n; ++i)
        x[i] = (static_cast<float>(random.below(1 << 20)) * 0x1p-19F - 1) * size + size / 3;
      return memory;
    };
    const auto of = [](Guarded& memory) { return reinterpret_cast<float*>(memory.data()); };
    Guarded x = numbers(7), scale = numbers(2), bias = numbers(0.5F), plain = numbers(1),
            vectors = numbers(1);
    for (const bool centered : {false, true})
      for (const bool has_bias : {false, true}) {
        const float* const added = has_bias ? of(bias) : nullptr;
        double mean[2], inverse[2];
        cpu::Pace pace;
        for (const bool avx2 : {false, true})
          cpu::normalise_row(pace, {n, 1e-5, centered, avx2}, of(x), of(scale), added,
                             avx2 ? of(vectors) : of(plain), &mean[avx2], &inverse[avx2]);
        EXPECT_EQ(mean[0], mean[1]) << n;
        EXPECT_EQ(inverse[0], inverse[1]) << n;
        EXPECT_EQ(std::memcmp(plain.data(), vectors.data(), plain.size()), 0) << n;
      }
  }
}

}  // namespace
}  // namespace pfrt::test
