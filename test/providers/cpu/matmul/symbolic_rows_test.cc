// SPDX-License-Identifier: Apache-2.0
//
// float32 products with constant columns and rows that only a run knows. The columns are packed
// once, and the number of rows decides which kernel reads them. Tests run with tiles, emulated
// where the machine has none, and without.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "providers/cpu/isa/amx.h"
#include "providers/cpu/isa/isa.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/code/tile_emulator.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

struct Form {
  const char* op;
  int64_t n, k;
  bool trans_b = false;
};

class SymbolicRows : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "PFRT_ISA has no panels";
    if (!GetParam()) return;
    emulator_ = std::make_unique<TileEmulator>();
    if (cpu::isa() < cpu::Isa::kAmx)
      GTEST_SKIP() << "PFRT_ISA has no tiles, or the machine not what comes before them";
  }

  Graph graph(const Form& of, int64_t m, const Values& columns) {
    Graph g;
    Values rows;
    for (int64_t i = 0; i < m * of.k; ++i)
      rows.push_back(static_cast<float>(random_.uniform(-1, 1)));
    if (odd_ != 0 && m > 0) rows.back() = odd_;
    const uint32_t a = g.add(Data{PFRT_DTYPE_FLOAT32, {m, of.k}, rows});
    const Dims dims = of.trans_b ? Dims{of.n, of.k} : Dims{of.k, of.n};
    const uint32_t b = g.add(Data{PFRT_DTYPE_FLOAT32, dims, columns, true});
    std::vector<Attr> attrs;
    if (of.trans_b) attrs.push_back({"transB", int64_t{1}});
    g.outputs = {g.add(of.op, {a, b}, {m, of.n}, attrs)};
    g.told = {{a, {-2, of.k}}, {g.outputs.front(), {-2, of.n}}};
    return g;
  }

  void check(const Form& of) {
    Values columns;
    for (int64_t i = 0; i < of.n * of.k; ++i)
      columns.push_back(static_cast<float>(random_.uniform(-1, 1)));
    std::vector<Graph> graphs;
    const std::vector<int64_t> sizes{128, 1, 40, 31, 32, 5, 16, 200, 0, 33};
    for (const int64_t m : sizes) graphs.push_back(graph(of, m, columns));
    const std::vector<GraphOutcome> outcomes = run_each(graphs, 2);
    ASSERT_EQ(outcomes.size(), graphs.size());
    for (size_t i = 0; i < graphs.size(); ++i) {
      SCOPED_TRACE(std::string(of.op) + " of " + std::to_string(sizes[i]) + " rows");
      ASSERT_EQ(outcomes[i].fault, "");
      if (sizes[i] == 0) continue;  // this takes no step
      ASSERT_EQ(outcomes[i].kernels.size(), 1u);
      const char* const ends = cpu::amx_usable() && sizes[i] >= 32 ? "_tiles" : "_panels";
      EXPECT_TRUE(outcomes[i].kernels.front().ends_with(ends)) << outcomes[i].kernels.front();
      expect_right(of, graphs[i], sizes[i], outcomes[i].outputs.front());
    }
  }

  void expect_right(const Form& of, const Graph& g, int64_t m, const std::vector<char>& bytes) {
    const Values &a = g.values[0].values, &b = g.values[1].values;
    const Values c = load(PFRT_DTYPE_FLOAT32, bytes.data(), static_cast<size_t>(m * of.n));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < of.n; ++j) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < of.k; ++k) {
          const double x = a[static_cast<size_t>(i * of.k + k)],
                       y = b[static_cast<size_t>(of.trans_b ? j * of.k + k : k * of.n + j)];
          sum += x * y;
          size += std::abs(x * y);
        }
        const double got = c[static_cast<size_t>(i * of.n + j)];
        if (std::isfinite(sum))
          ASSERT_NEAR(got, sum, 1e-6 * size) << i << ", " << j;
        else
          ASSERT_TRUE(std::isnan(sum) ? std::isnan(got) : got == sum) << i << ", " << j;
      }
  }

  Random random_{11};
  double odd_ = 0;  // replaces the last element of the rows, unless it is 0
  std::unique_ptr<TileEmulator> emulator_;
};

TEST_P(SymbolicRows, choose_the_kernel_of_packed_columns) {
  for (const Form& of : {Form{"MatMul", 96, 80}, Form{"MatMul", 70, 200}, Form{"Gemm", 64, 64},
                         Form{"Gemm", 77, 90, true}})
    check(of);
}

TEST_P(SymbolicRows, give_what_tiles_get_wrong_from_the_panels) {
  for (const double odd : {static_cast<double>(std::numeric_limits<float>::infinity()),
                           std::numeric_limits<double>::quiet_NaN(), 3e38, 1e-40}) {
    odd_ = odd;
    check({"MatMul", 70, 80});
  }
}

INSTANTIATE_TEST_SUITE_P(All, SymbolicRows, testing::Bool(), [](const auto& tiles) {
  return std::string(tiles.param ? "with_tiles" : "without_tiles");
});

}  // namespace
}  // namespace pfrt::test
