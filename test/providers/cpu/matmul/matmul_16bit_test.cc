// SPDX-License-Identifier: Apache-2.0
//
// Products and convolutions of float16 and bfloat16: the exact result of the given numbers, except
// for float32 sums and one rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "providers/cpu/isa/amx.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

constexpr pfrt_dtype k16BitFloats[] = {PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16};
constexpr uint32_t kRows = 0, kColumns = 1, kAdded = 2;  // value ids

class Matmul16Bit : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  }
};

struct Product {
  pfrt_dtype dtype;
  int64_t m, n, k;
  bool gemm, transposed;  // a Gemm, with transB
  Graph graph;

  Product(pfrt_dtype type, int64_t rows, int64_t cols, int64_t depth, uint64_t seed)
      : dtype(type), m(rows), n(cols), k(depth), gemm(seed % 2 != 0), transposed(seed % 4 == 3) {
    Random random(seed);
    graph.add(random.data(dtype, {m, k}));
    graph.add(random.data(dtype, transposed ? Dims{n, k} : Dims{k, n}));
    graph.values[kColumns].constant = true;
    if (gemm) graph.add(random.data(dtype, {n}));
    graph.outputs = {gemm ? graph.add("Gemm", {kRows, kColumns, kAdded}, {m, n},
                                      {{"transB", int64_t{transposed}}, {"beta", 2.0f}})
                          : graph.add("MatMul", {kRows, kColumns}, {m, n})};
    graph.values[graph.outputs[0]].dtype = dtype;
  }
  // Tells compile that the number of rows is unknown.
  Product& with_any_rows() {
    graph.told = {{kRows, {-2, k}}, {graph.outputs[0], {-2, n}}};
    return *this;
  }

  GraphOutcome run(uint32_t workers = 1) const {
    GraphOutcome outcome = test::run(graph, workers);
    EXPECT_EQ(outcome.fault, "") << graph.text();
    return outcome;
  }

  void expect_near_exact(const GraphOutcome& outcome) const {
    ASSERT_EQ(outcome.fault, "");
    const Values got = load(dtype, outcome.outputs[0].data(), static_cast<size_t>(m * n));
    const auto element = [&](uint32_t value, int64_t at) {
      return graph.values[value].values[static_cast<size_t>(at)];
    };
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const double added = gemm ? 2 * element(kAdded, j) : 0;
        double exact = added, size = std::fabs(added);
        for (int64_t l = 0; l < k; ++l) {
          const double term =
              element(kRows, i * k + l) * element(kColumns, transposed ? j * k + l : l * n + j);
          exact += term;
          size += std::fabs(term);
        }
        // A sum has chains of 64 products or pairs, and a chain of their sums. Below the normal
        // range float16 has units of 2^-25.
        const double roundings = 128.0 + 4 + static_cast<double>(k) / 64;
        ASSERT_NEAR(got[static_cast<size_t>(i * n + j)], exact,
                    (1 + 0x1p-12) * epsilon(dtype) * std::fabs(exact) + 0x1p-25 +
                        roundings * 0x1p-24 * size)
            << graph.text() << " row " << i << " column " << j;
      }
  }

  // Columns stay in 16 bits where few rows may read them.
  std::string name() const {
    const std::string product = gemm ? "gemm" : "matmul";
    const std::string type = dtype == PFRT_DTYPE_FLOAT16 ? "_f16" : "_bf16";
    const bool dot =
        dtype == PFRT_DTYPE_BFLOAT16 && cpu::PanelMicrokernel::get_bf16_dot() != nullptr;
    if (m > 4 && dot) return product + "_bf16_dot";
    if (m > 4) return product + (graph.told.empty() ? "" : type) + "_panels";
    return product + type + "_rows";
  }
};

TEST_F(Matmul16Bit, are_rounded_once) {
  Random random(5);
  for (const pfrt_dtype dtype : k16BitFloats)
    for (uint64_t seed = 0; seed < 48; ++seed) {
      const int64_t m = seed % 3 == 0 ? random.from_to(5, 140) : random.from_to(1, 5);
      const int64_t n = random.from_to(8, random.once_in(2) ? 40 : 300);
      const Product p(dtype, m, n, random.from_to(1, random.once_in(2) ? 70 : 700), seed);
      const GraphOutcome outcome = p.run();
      ASSERT_NO_FATAL_FAILURE(p.expect_near_exact(outcome));
      if (m <= 4 || !cpu::amx_usable()) {
        EXPECT_EQ(outcome.kernels, std::vector<std::string>{p.name()}) << p.graph.text();
      }
    }
}

TEST_F(Matmul16Bit, of_one_session_take_any_number_of_rows) {
  for (const pfrt_dtype dtype : k16BitFloats)
    for (uint64_t seed = 0; seed < 4; ++seed) {
      std::vector<Graph> graphs;
      std::vector<Product> products;
      for (const int64_t m : {1, 4, 5, 33, 2}) {
        Product p = Product(dtype, m, 50, 131, seed).with_any_rows();
        // Each session has constants of its own.
        if (!products.empty())
          p.graph.values[kColumns].values = products[0].graph.values[kColumns].values;
        graphs.push_back(p.graph);
        products.push_back(std::move(p));
      }
      const std::vector<GraphOutcome> outcomes = run_each(graphs);
      ASSERT_EQ(outcomes.size(), products.size());
      for (size_t i = 0; i < products.size(); ++i) {
        ASSERT_NO_FATAL_FAILURE(products[i].expect_near_exact(outcomes[i]));
        if (products[i].m <= 4 || !cpu::amx_usable()) {
          EXPECT_EQ(outcomes[i].kernels, std::vector<std::string>{products[i].name()});
        }
      }
    }
}

TEST_F(Matmul16Bit, have_the_same_bits_on_any_number_of_threads) {
  for (const pfrt_dtype dtype : k16BitFloats)
    for (const int64_t m : {1, 3, 200}) {
      const Product p(dtype, m, 1003, 517, static_cast<uint64_t>(m));
      const GraphOutcome alone = p.run(1);
      for (const uint32_t workers : {2u, 5u})
        EXPECT_EQ(p.run(workers).outputs, alone.outputs) << m << " rows, " << workers;
    }
}

// float16 ends at 65504: sums exceed it, and results become infinite or come back.
TEST_F(Matmul16Bit, sums_may_leave_the_range) {
  for (const int64_t m : {2, 9}) {
    Product p(PFRT_DTYPE_FLOAT16, m, 16, 96, 0);
    for (int64_t l = 0; l < p.k; ++l) {
      for (int64_t i = 0; i < m; ++i)
        p.graph.values[kRows].values[static_cast<size_t>(i * p.k + l)] = 60000;
      for (int64_t j = 0; j < p.n; ++j)  // a column sums to 60000, except the last
        p.graph.values[kColumns].values[static_cast<size_t>(l * p.n + j)] =
            j == p.n - 1 ? 1
                         : (l == 0       ? 1
                            : l % 2 == 0 ? 1000
                                         : -1000) *
                               (l == p.k - 1 ? 0 : 1);
    }
    const GraphOutcome outcome = p.run();
    const Values got = load(p.dtype, outcome.outputs[0].data(), static_cast<size_t>(m * p.n));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < p.n; ++j)
        EXPECT_EQ(got[static_cast<size_t>(i * p.n + j)],
                  j == p.n - 1 ? std::numeric_limits<double>::infinity() : 60000)
            << i << " " << j;
  }
}

// Results that Winograd's sums cannot give are computed again from the weights, which have 16 bits
// too.
TEST_F(Matmul16Bit, convolutions_keep_what_is_not_finite_where_it_is_seen) {
  constexpr int64_t kChannels = 64, kSide = 9;
  for (const pfrt_dtype dtype : k16BitFloats) {
    Random random(3);
    Case c;
    c.inputs = {random.data(dtype, {1, kChannels, kSide, kSide}),
                random.data(dtype, {kChannels, kChannels, 3, 3})};
    c.inputs[1].constant = true;
    c.attrs = {{"pads", Dims{1, 1, 1, 1}}, {"kernel_shape", Dims{3, 3}}};
    constexpr int64_t kOdd = 5;  // a channel
    c.inputs[0].values[static_cast<size_t>((kOdd * kSide + 4) * kSide + 3)] =
        std::numeric_limits<double>::infinity();
    Values want;
    for (int64_t o = 0; o < kChannels; ++o)
      for (int64_t y = 0; y < kSide; ++y)
        for (int64_t x = 0; x < kSide; ++x) {
          double sum = 0;
          for (int64_t i = 0; i < kChannels; ++i)
            for (int64_t t = 0; t < 9; ++t) {
              const int64_t row = y + t / 3 - 1, column = x + t % 3 - 1;
              if (row < 0 || row >= kSide || column < 0 || column >= kSide) continue;
              sum += c.inputs[0].values[static_cast<size_t>((i * kSide + row) * kSide + column)] *
                     c.inputs[1].values[static_cast<size_t>((o * kChannels + i) * 9 + t)];
            }
          want.push_back(sum);
        }
    c.outputs = {expected(dtype, {1, kChannels, kSide, kSide}, want)};
    c.relative = 2;
    c.absolute = 100 * step_error(dtype) * kChannels * 9;
    bool ran = false;
    for (const auto family : cpu::kernels())
      for (const cpu::KernelRow& row : family) {
        if (row.name != "conv_winograd") continue;
        const Outcome outcome = run(row, c);
        EXPECT_EQ(outcome.refused + outcome.fault, "");
        EXPECT_EQ(difference(c, outcome), "");
        ran = true;
      }
    EXPECT_TRUE(ran);
  }
}

}  // namespace
}  // namespace pfrt::test
