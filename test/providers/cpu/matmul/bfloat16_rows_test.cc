// SPDX-License-Identifier: Apache-2.0
//
// Products with constant columns in bfloat16: of a few rows, by panels or by dot products. They are
// the exact product with rounded columns, and for dot products rounded rows, except for float32
// sums. They are used only where the session allows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

constexpr uint32_t kRows = 0, kColumns = 1;  // values of the graph

// Rounds to eight significant bits, to nearest even.
double nearest_bfloat16(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - 8, -133);
  const double nearest = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
  return std::fabs(nearest) < 0x1p128 ? nearest
                                      : std::copysign(std::numeric_limits<double>::infinity(), x);
}

// True when products of more than a few rows are dot products of rounded factors.
bool has_dot() { return cpu::PanelMicrokernel::get_bf16_dot() != nullptr; }

std::vector<float> floats_of(const GraphOutcome& outcome) {
  const std::vector<char>& from = outcome.outputs.front();
  std::vector<float> out(from.size() / sizeof(float));
  std::memcpy(out.data(), from.data(), from.size());
  return out;
}

struct Product {
  int64_t m, n, k;
  bool gemm = false, transposed = false;  // a Gemm with transB
  Graph graph;

  Product(int64_t rows, int64_t cols, int64_t depth, uint64_t seed, bool as_gemm = false,
          bool as_transposed = false)
      : m(rows), n(cols), k(depth), gemm(as_gemm), transposed(as_transposed) {
    Random random(seed);
    graph.add(random.data(PFRT_DTYPE_FLOAT32, {m, k}));
    graph.add(random.data(PFRT_DTYPE_FLOAT32, transposed ? Dims{n, k} : Dims{k, n}));
    graph.values[kColumns].constant = true;
    graph.hints = PFRT_COMPILE_BF16;
    if (gemm) {
      const uint32_t added = graph.add(random.data(PFRT_DTYPE_FLOAT32, {n}));
      graph.outputs = {
          graph.add("Gemm", {kRows, kColumns, added}, {m, n},
                    {{"transB", int64_t{transposed}}, {"alpha", 0.5f}, {"beta", 2.0f}})};
    } else {
      graph.outputs = {graph.add("MatMul", {kRows, kColumns}, {m, n})};
    }
  }

  double& row(int64_t i, int64_t l) {
    return graph.values[kRows].values[static_cast<size_t>(i * k + l)];
  }
  double& column(int64_t l, int64_t j) {
    return graph.values[kColumns].values[static_cast<size_t>(transposed ? j * k + l : l * n + j)];
  }

  // Tells compile that the number of rows is unknown.
  Product& with_any_rows() {
    graph.told = {{kRows, {-2, k}}, {graph.outputs.front(), {-2, n}}};
    return *this;
  }
  void round_columns() {
    for (double& number : graph.values[kColumns].values) number = nearest_bfloat16(number);
  }
  void round_rows() {
    for (double& number : graph.values[kRows].values) number = nearest_bfloat16(number);
  }
  std::string name() const {
    const char* const more = has_dot() ? "_bf16_dot" : "_bf16_panels";
    return std::string(gemm ? "gemm" : "matmul") + (m > 4 ? more : "_bf16_rows");
  }

  GraphOutcome run(uint32_t workers = 1) const {
    GraphOutcome outcome = test::run(graph, workers);
    EXPECT_EQ(outcome.fault, "") << graph.text();
    return outcome;
  }
  std::string kernel() const {
    const GraphOutcome outcome = run();
    return outcome.kernels.empty() ? "" : outcome.kernels.front();
  }
  std::vector<float> floats() const {
    const GraphOutcome outcome = run();
    EXPECT_EQ(outcome.kernels, std::vector<std::string>{name()});
    return floats_of(outcome);
  }

  void expect_near_exact() {
    const std::vector<float> got = floats();
    ASSERT_EQ(got.size(), static_cast<size_t>(m * n));
    round_columns();
    if (m > 4 && has_dot()) round_rows();
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double exact = 0, size = 0;
        for (int64_t l = 0; l < k; ++l) {
          const double term = row(i, l) * column(l, j);
          exact += term;
          size += std::fabs(term);
        }
        if (gemm) {
          const double added = 2 * graph.values[2].values[static_cast<size_t>(j)];
          exact = 0.5 * exact + added;
          size += std::fabs(added);
        }
        // A sum has chains of 64 products or pairs, and a chain of their sums.
        const double roundings = 128.0 + 4 + static_cast<double>(k) / 64;
        ASSERT_NEAR(static_cast<double>(got[static_cast<size_t>(i * n + j)]), exact,
                    roundings * 0x1p-24 * size)
            << graph.text() << " row " << i << " column " << j;
      }
  }
};

void expect_the_same_on_threads(int64_t m) {
  const Product p(m, 1003, 517, 3, m % 2 == 0);
  const GraphOutcome alone = p.run(1);
  for (const uint32_t workers : {2u, 5u})
    EXPECT_EQ(p.run(workers).outputs, alone.outputs) << m << " rows, " << workers << " threads";
}

void expect_the_same_where_columns_are_turned(int64_t m) {
  Product p(m, 333, 257, 4, true), turned(m, 333, 257, 4, true, true);
  for (int64_t l = 0; l < p.k; ++l)
    for (int64_t j = 0; j < p.n; ++j) turned.column(l, j) = p.column(l, j);
  turned.graph.values[kRows] = p.graph.values[kRows];
  turned.graph.values[2] = p.graph.values[2];
  EXPECT_EQ(turned.floats(), p.floats());
}

class Bfloat16Rows : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  }
};

TEST_F(Bfloat16Rows, multiply_exact_rows_by_rounded_columns) {
  Random random(5);
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const int64_t n = seed % 3 == 0 ? random.from_to(16, 40) : random.from_to(41, 1100);
    const int64_t k = (int64_t{65536} + n - 1) / n + random.below(300);
    const bool gemm = random.once_in(2), transposed = gemm && random.once_in(2);
    Product p(1 + static_cast<int64_t>(seed % 4), n, k, seed, gemm, transposed);
    ASSERT_NO_FATAL_FAILURE(p.expect_near_exact());
  }
}

// Skips where products of more than a few rows run on tiles.
class Bfloat16Panels : public Bfloat16Rows {
 protected:
  void SetUp() override {
    Bfloat16Rows::SetUp();
    if (!IsSkipped() && (cpu::split_matmul_usable() || cpu::PanelMicrokernel::get() == nullptr))
      GTEST_SKIP() << "the machine has tiles, or code cannot be made executable";
  }
};

TEST_F(Bfloat16Panels, multiply_rows_by_rounded_columns) {
  Random random(6);
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const int64_t n = seed % 3 == 0 ? random.from_to(16, 40) : random.from_to(41, 1100);
    const int64_t k = (int64_t{65536} + n - 1) / n + random.below(300);
    const int64_t m = seed % 4 == 0 ? random.from_to(5, 200) : random.from_to(1, 30);
    const bool gemm = random.once_in(2), transposed = gemm && random.once_in(2);
    Product p(m, n, k, seed, gemm, transposed);
    if (seed % 5 != 0) p.with_any_rows();
    ASSERT_NO_FATAL_FAILURE(p.expect_near_exact());
  }
}

TEST_F(Bfloat16Panels, have_the_bits_of_float32_panels_of_the_rounded_columns) {
  if (has_dot()) GTEST_SKIP() << "rows are rounded, too";
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{5, 333, 257}, {13, 80, 1025}, {131, 20, 4000}}) {
    Product p(m, n, k, 9, m % 2 == 0, m % 2 == 0);
    const std::vector<float> got = p.floats();
    p.round_columns();
    p.graph.hints = 0;
    EXPECT_EQ(p.kernel(), "matmul_panels");
    EXPECT_EQ(floats_of(p.run()), got) << p.graph.text();
  }
}

TEST_F(Bfloat16Panels, of_one_session_take_any_number_of_rows) {
  for (const bool gemm : {false, true}) {
    std::vector<Graph> graphs;
    std::vector<std::string> names;
    std::vector<std::vector<float>> alone;
    for (const int64_t m : {1, 5, 4, 200, 2, 3, 17}) {
      Product p(m, 259, 301, 11, gemm, gemm);
      if (!graphs.empty()) p.graph.values[kColumns] = graphs.front().values[kColumns];
      if (gemm && !graphs.empty()) p.graph.values[2] = graphs.front().values[2];
      alone.push_back(p.floats());  // compile knows its number of rows
      names.push_back(p.name());
      graphs.push_back(p.with_any_rows().graph);
    }
    const std::vector<GraphOutcome> outcomes = run_each(graphs, 2);
    for (size_t i = 0; i < graphs.size(); ++i) {
      ASSERT_EQ(outcomes[i].fault, "") << graphs[i].text();
      EXPECT_EQ(outcomes[i].kernels, std::vector<std::string>{names[i]});
      EXPECT_EQ(floats_of(outcomes[i]), alone[i]) << graphs[i].text();
    }
  }
}

TEST_F(Bfloat16Panels, have_the_same_bits_on_any_number_of_threads) {
  for (const int64_t m : {5, 150}) expect_the_same_on_threads(m);
}

TEST_F(Bfloat16Panels, columns_may_lie_either_way) { expect_the_same_where_columns_are_turned(7); }

TEST_F(Bfloat16Rows, leading_dimensions_are_rows) {
  Product p(3, 257, 300, 1);
  const std::vector<float> flat = p.floats();
  p.graph.values[kRows].dims = {3, 1, 300};
  p.graph.values[p.graph.outputs.front()].dims = {3, 1, 257};
  EXPECT_EQ(p.floats(), flat);
}

TEST_F(Bfloat16Rows, have_the_same_bits_on_any_number_of_threads) {
  for (const int64_t m : {1, 2, 3, 4}) expect_the_same_on_threads(m);
}

TEST_F(Bfloat16Rows, have_the_same_bits_beside_other_rows) {
  Product p(4, 300, 611, 8);
  const std::vector<float> four = p.floats();
  for (int64_t m = 1; m < 4; ++m) {
    Product fewer(m, 300, 611, 8);
    fewer.graph.values[kColumns] = p.graph.values[kColumns];
    std::copy_n(p.graph.values[kRows].values.begin(), m * 611,
                fewer.graph.values[kRows].values.begin());
    const std::vector<float> got = fewer.floats();
    EXPECT_TRUE(std::equal(got.begin(), got.end(), four.begin())) << m << " rows";
  }
}

TEST_F(Bfloat16Rows, columns_may_lie_either_way) { expect_the_same_where_columns_are_turned(2); }

// Multiplies each number by a factor in each of |m| rows.
void expect_every_kind_of_number_rounded_to_nearest_even(int64_t m) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double numbers[] = {
      1 + 0x1p-8,                         // midway: rounds down, to even
      1 + 3 * 0x1p-8,                     // midway: rounds up, to even
      1 + 0x1p-8 + 0x1p-23,               // above the midpoint
      std::numeric_limits<float>::max(),  // rounds to infinity
      0x1p128 - 0x1p119,                  // midway between the largest and infinity
      0x1p128 - 0x1p119 - 0x1p104,        // rounds to the largest
      0x1p-126 * 0.75,                    // below the normal range
      0x1p-149,                           // rounds to zero
      infinity,
      -infinity,
      std::numeric_limits<double>::quiet_NaN(),
      std::bit_cast<double>(0x7fffffffffffffff),  // NaN whose bits would overflow in rounding
      std::bit_cast<double>(0xffffffffffffffff),
  };
  for (const bool transposed : {false, true})
    for (const int64_t at : {0, 1, 300})
      for (const double number : numbers) {
        Product p(m, 230, 301, 2, transposed, transposed);
        for (int64_t l = 0; l < p.k; ++l) p.column(l, 17) = 0;
        p.column(at, 17) = number;
        const double factor = std::isfinite(number) && std::fabs(number) < 1 ? 0x1p100 : 1;
        for (int64_t i = 0; i < m; ++i) p.row(i, at) = factor;
        const std::vector<float> got = p.floats();
        double want = nearest_bfloat16(number) * factor;
        if (p.gemm) want = 0.5 * want + 2 * p.graph.values[2].values[17];
        const auto wanted = static_cast<float>(want);
        for (size_t j = 0; j < got.size(); ++j) {
          if (j % 230 != 17)
            EXPECT_TRUE(std::isfinite(got[j])) << number << ", element " << j;
          else if (std::isnan(number))
            EXPECT_TRUE(std::isnan(got[j])) << number << " at " << at;
          else
            EXPECT_FLOAT_EQ(got[j], wanted) << number << " at " << at;
        }
      }
}

TEST_F(Bfloat16Rows, round_every_kind_of_number_to_nearest_even) {
  expect_every_kind_of_number_rounded_to_nearest_even(1);
}

TEST_F(Bfloat16Panels, round_every_kind_of_number_to_nearest_even) {
  expect_every_kind_of_number_rounded_to_nearest_even(5);
}

// A row with numbers that bfloat16 lacks, or that dot products lose, is multiplied without
// rounding.
TEST_F(Bfloat16Panels, take_rows_of_every_kind_of_number) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double largest = static_cast<double>(std::numeric_limits<float>::max());
  for (const double number : {infinity, -infinity, static_cast<double>(NAN), largest, -largest})
    for (const int64_t at : {0, 300}) {
      Product p(7, 230, 301, 2);
      const std::vector<float> before = p.floats();
      p.row(3, at) = number;
      for (int64_t j = 0; j < p.n; ++j) p.column(at, j) = j % 3 == 0 ? 0 : 0.5;
      const std::vector<float> got = p.floats();
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
          const float sum = got[static_cast<size_t>(i * p.n + j)];
          const double want = number * (j % 3 == 0 ? 0 : 0.5);
          if (i != 3)
            EXPECT_TRUE(std::isfinite(sum)) << number << " at " << at << ", row " << i;
          else if (std::isnan(want))
            EXPECT_TRUE(std::isnan(sum)) << number << " at " << at << ", column " << j;
          else if (std::isfinite(number) && j % 3 == 0)
            EXPECT_LT(std::fabs(sum), 1e4f) << number << " at " << at << ", column " << j;
          else
            EXPECT_FLOAT_EQ(sum, static_cast<float>(want)) << number << ", column " << j;
        }
    }
}

TEST_F(Bfloat16Panels, very_small_rows_and_columns_keep_their_size) {
  for (const bool rows : {false, true}) {
    Product p(6, 240, 300, 12);
    const std::vector<float> plain = p.floats();
    // Their products are normal numbers, though one of the factors is not.
    for (int64_t l = 0; l < p.k; ++l) {
      for (int64_t i = 0; i < p.m; ++i) p.row(i, l) = p.row(i, l) * (rows ? 0x1p-128 : 0x1p60);
      for (int64_t j = 0; j < p.n; ++j)
        p.column(l, j) = nearest_bfloat16(p.column(l, j)) * (rows ? 0x1p60 : 0x1p-128);
    }
    const std::vector<float> got = p.floats();
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(static_cast<double>(got[i]) * 0x1p68, static_cast<double>(plain[i]), 3)
          << (rows ? "rows" : "columns") << ", element " << i;
  }
}

void expect_epilogue_taken(int64_t m) {
  Product p(m, 300, 400, 6);
  const std::vector<float> plain = p.floats();
  const uint32_t other = p.graph.add(Random(1).data(PFRT_DTYPE_FLOAT32, {m, 300}));
  const uint32_t sum = p.graph.add("Add", {p.graph.outputs.front(), other}, {m, 300}, {}, 1);
  p.graph.outputs = {p.graph.add("Relu", {sum}, {m, 300}, {}, 1)};
  const GraphOutcome outcome = p.run(3);
  ASSERT_EQ(outcome.kernels, std::vector<std::string>{p.name() + "+add+relu"});
  for (size_t i = 0; i < plain.size(); ++i) {
    float got = 0;
    std::memcpy(&got, outcome.outputs.front().data() + i * sizeof got, sizeof got);
    EXPECT_EQ(got, std::max(plain[i] + static_cast<float>(p.graph.values[other].values[i]), 0.0f));
  }
}

TEST_F(Bfloat16Rows, take_epilogues) { expect_epilogue_taken(3); }

TEST_F(Bfloat16Panels, take_epilogues) { expect_epilogue_taken(21); }

TEST_F(Bfloat16Rows, are_only_where_the_session_allows_them) {
  EXPECT_EQ(Product(4, 256, 256, 1).kernel(), "matmul_bf16_rows");
  EXPECT_EQ(Product(4, 256, 256, 1, true).kernel(), "gemm_bf16_rows");
  EXPECT_EQ(Product(4, 256, 256, 1).with_any_rows().kernel(), "matmul_bf16_rows");
  const auto refused = [](const char* what, Product p) {
    EXPECT_EQ(p.kernel().find("bf16"), std::string::npos) << what;
  };
  if (cpu::split_matmul_usable()) {
    refused("more rows, beside tiles", Product(5, 256, 256, 1));
    refused("more rows of any number, beside tiles", Product(5, 256, 256, 1).with_any_rows());
  }
  refused("a small matrix", Product(1, 255, 256, 1));
  refused("a small matrix of any number of rows", Product(5, 255, 256, 1).with_any_rows());
  refused("a very small matrix", Product(5, 63, 64, 1));
  if (has_dot() && !cpu::split_matmul_usable()) {
    EXPECT_EQ(Product(5, 64, 64, 1).kernel(), "matmul_bf16_dot");
  }
  refused("few columns", Product(1, 15, 20000, 1));
  Product p(1, 256, 256, 1);
  for (const uint64_t hints :
       {uint64_t{0}, uint64_t{PFRT_COMPILE_FAST}, uint64_t{PFRT_COMPILE_PLAIN}}) {
    p.graph.hints = hints;
    refused("another precision", p);
  }
  p.graph.hints = PFRT_COMPILE_BF16 | PFRT_COMPILE_RUN_ONCE;
  refused("a single run", p);
  p.graph.hints = PFRT_COMPILE_BF16;
  p.graph.values[kColumns].constant = false;
  refused("columns that vary", p);
}

}  // namespace
}  // namespace pfrt::test
