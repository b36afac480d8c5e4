// SPDX-License-Identifier: Apache-2.0
//
// float32 products of a few rows, by wide tiles or by panels. They are exact except for rounding,
// and a row has the same bits for any layout of the columns and any other rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "providers/cpu/kernels/matmul/gemm.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"
#include "test/providers/cpu/step_host.h"

namespace pfrt::test {
namespace {

struct Product {
  int64_t m, n, k;
  std::vector<float> a, b;  // b: [k][n]

  Product(int64_t rows, int64_t cols, int64_t depth) : m(rows), n(cols), k(depth) {
    Random random(static_cast<uint64_t>(n + k));
    for (int64_t i = 0; i < k * n; ++i) b.push_back(static_cast<float>(random.uniform(-1, 1)));
    for (int64_t i = 0; i < m * k; ++i) a.push_back(static_cast<float>(random.uniform(-1, 1)));
  }

  // |step| is the distance from column to column.
  std::vector<float> compute(int64_t step = 1) const {
    std::vector<float> strided(b.size() * static_cast<size_t>(step));
    for (size_t i = 0; i < b.size(); ++i) strided[i * static_cast<size_t>(step)] = b[i];
    const cpu::Gemm<float> gemm(m, n, k);
    const StepHost host({}, 1, gemm.scratch_bytes());
    const cpu::Run run(host.context(), nullptr, nullptr, {.precision = Precision::kIeee});
    const cpu::StridedSource<float> rows(a.data(), PFRT_DTYPE_FLOAT32, 0, k, 1),
        columns(strided.data(), PFRT_DTYPE_FLOAT32, 0, step, n * step);
    std::vector<float> c(static_cast<size_t>(m * n), NAN);
    for (int64_t i = 0; i < gemm.tiles(); ++i) {
      const cpu::GemmTile tile = gemm.tile(i);
      gemm.compute(run, tile, rows, columns, c.data() + tile.row * n + tile.col, n,
                   run.scratch<float>(0));
    }
    return c;
  }

  // Computes with a node of constant columns; with |any_rows|, compile does not know the number of
  // rows.
  std::vector<float> compute_in_graph(bool any_rows = true) const {
    Graph graph;
    const uint32_t rows = graph.add(Data{PFRT_DTYPE_FLOAT32, {m, k}, Values(a.begin(), a.end())});
    const uint32_t columns =
        graph.add(Data{PFRT_DTYPE_FLOAT32, {k, n}, Values(b.begin(), b.end()), true});
    graph.outputs = {graph.add("MatMul", {rows, columns}, {m, n})};
    graph.hints = PFRT_COMPILE_PLAIN;  // tiles have other errors, and are for many rows
    if (any_rows) graph.told = {{rows, {-2, k}}, {graph.outputs.front(), {-2, n}}};
    const GraphOutcome outcome = test::run(graph, 2);
    EXPECT_EQ(outcome.fault, "");
    std::vector<float> c(outcome.outputs.front().size() / sizeof(float));
    std::memcpy(c.data(), outcome.outputs.front().data(), outcome.outputs.front().size());
    return c;
  }

  void expect_near(const std::vector<float>& got) const {
    ASSERT_EQ(got.size(), static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double exact = 0, size = 0;
        for (int64_t l = 0; l < k; ++l) {
          const double term = static_cast<double>(a[static_cast<size_t>(i * k + l)]) *
                              static_cast<double>(b[static_cast<size_t>(l * n + j)]);
          exact += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(static_cast<double>(got[static_cast<size_t>(i * n + j)]), exact,
                    260 * 0x1p-24 * size)
            << m << " x " << k << " x " << n << " at " << i << ", " << j;
      }
  }
};

// The columns fill wide tiles, end inside a vector, or are fewer than a vector; k takes one pass or
// more.
constexpr std::array<int64_t, 2> kSizes[] = {{7013, 300}, {33001, 9}, {2050, 513},
                                             {31, 700},   {5, 257},   {400, 1}};

// The columns are read where they lie or packed; the last ones are no whole panel, and there may be
// several passes of k.
TEST(ManyRows, are_exact_and_have_the_same_bits_for_any_layout_and_any_other_rows) {
  for (const int64_t n : {8, 9, 15, 16, 17, 24, 31, 130, 520})
    for (const int64_t k : {16, 49, 257, 600}) {
      const Product most(100, n, k);
      const std::vector<float> all = most.compute();
      most.expect_near(all);
      for (const int64_t m : {5, 13, 50}) {
        const Product p(m, n, k);
        for (const int64_t step : {1, 3}) {
          const std::vector<float> got = p.compute(step);
          EXPECT_EQ(std::memcmp(got.data(), all.data(), got.size() * sizeof(float)), 0)
              << m << " x " << n << " x " << k << " by columns " << step << " apart";
        }
      }
    }
}

TEST(FewRows, match_double_precision) {
  for (const auto& [n, k] : kSizes)
    for (int64_t m = 1; m <= 5; ++m) {
      const Product p(m, n, k);
      ASSERT_NO_FATAL_FAILURE(p.expect_near(p.compute()));
    }
}

TEST(FewRows, by_panels_have_the_same_bits_beside_other_rows) {
  for (const auto& [n, k] : {std::pair{int64_t{533}, int64_t{300}}, {97, 64}, {40, 700}, {8, 1}}) {
    const Product most(13, n, k);
    const std::vector<float> all = most.compute_in_graph();
    ASSERT_NO_FATAL_FAILURE(most.expect_near(all));
    for (int64_t m = 1; m < most.m; ++m) {
      const std::vector<float> got = Product(m, n, k).compute_in_graph();
      ASSERT_EQ(got.size(), static_cast<size_t>(m * n));
      EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin())) << m << " x " << k << " x " << n;
    }
  }
}

// Many rows are multiplied pass by pass where k takes several. A row has the bits that it has among
// few, also where steps of k are at distances that share sets of the cache (1024).
TEST(FewRows, of_long_sums_have_the_bits_of_many_rows) {
  for (const auto& [n, k] : {std::pair{int64_t{533}, int64_t{700}}, {40, 1024}, {16, 2051}}) {
    const Product many(203, n, k);
    const std::vector<float> all = many.compute_in_graph();
    ASSERT_NO_FATAL_FAILURE(many.expect_near(all));
    for (const int64_t m : {1, 5, 12, 49, 130}) {
      const std::vector<float> got = Product(m, n, k).compute_in_graph();
      ASSERT_EQ(got.size(), static_cast<size_t>(m * n));
      EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin())) << m << " x " << k << " x " << n;
    }
  }
}

TEST(FewRows, of_many_columns_have_the_bits_of_more_rows) {
  for (const auto& [n, k] : {std::pair{int64_t{2053}, int64_t{513}}, {8229, 129}}) {
    const Product most(5, n, k);
    const std::vector<float> all = most.compute_in_graph(false);
    ASSERT_NO_FATAL_FAILURE(most.expect_near(all));
    for (int64_t m = 1; m < most.m; ++m) {
      const std::vector<float> got = Product(m, n, k).compute_in_graph(false);
      ASSERT_EQ(got.size(), static_cast<size_t>(m * n));
      EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin())) << m << " x " << k << " x " << n;
    }
  }
}

TEST(FewRows, columns_may_lie_anyhow) {
  for (const auto& [n, k] : kSizes)
    for (int64_t m = 1; m <= 4; ++m) {
      const Product p(m, n, k);
      EXPECT_EQ(p.compute(2), p.compute()) << m << " x " << k << " x " << n;
    }
}

TEST(FewRows, have_the_same_bits_beside_other_rows) {
  for (const auto& [n, k] : kSizes) {
    const std::vector<float> four = Product(4, n, k).compute();
    for (int64_t m = 1; m < 4; ++m) {
      const std::vector<float> got = Product(m, n, k).compute();
      EXPECT_TRUE(std::equal(got.begin(), got.end(), four.begin()))
          << m << " x " << k << " x " << n;
    }
  }
}

}  // namespace
}  // namespace pfrt::test
