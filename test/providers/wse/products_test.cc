// SPDX-License-Identifier: Apache-2.0
//
// Values of products are near those of fp64, and have the bits of a loop in the order that the
// provider's README gives each PE.
#include "providers/wse/schedule/products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "test/providers/wse/values.h"

namespace pfrt::wse::test {
namespace {

constexpr ProductAlgorithm kAlgorithms[] = {ProductAlgorithm::kMeshGemm, ProductAlgorithm::kCannon,
                                            ProductAlgorithm::kSumma, ProductAlgorithm::kMeshGemv};
constexpr ProductAlgorithm kMatrixAlgorithms[] = {
    ProductAlgorithm::kMeshGemm, ProductAlgorithm::kCannon, ProductAlgorithm::kSumma};

int64_t part_of(int64_t size, int64_t grid) { return (size + grid - 1) / grid; }

struct Matrices {
  Matrices(Arithmetic type_in, int64_t m_in, int64_t k_in, int64_t n_in, uint64_t seed)
      : type(type_in),
        m(m_in),
        k(k_in),
        n(n_in),
        a(random_values(m * k, type, seed)),
        b(random_values(k * n, type, seed + 1)),
        c(random_values(m * n, type, seed + 2)) {}

  std::vector<float> run(ProductAlgorithm algorithm, int64_t grid, int64_t group) const {
    std::vector<float> out = c;
    const GemmValues values{algorithm, type, m,        k, n,          grid, group,
                            a.data(),  k,    b.data(), n, out.data(), n};
    EXPECT_TRUE(gemm_values(values, on_this_thread));
    return out;
  }
  float at_a(int64_t i, int64_t j) const { return a[static_cast<size_t>(i * k + j)]; }
  float at_b(int64_t i, int64_t j) const { return b[static_cast<size_t>(i * n + j)]; }
  float at_c(int64_t i, int64_t j) const { return c[static_cast<size_t>(i * n + j)]; }
  std::string text(ProductAlgorithm algorithm, int64_t grid) const {
    return message(name_of(algorithm), " ", name_of(type), " ", m, "x", k, "x", n, " on ", grid);
  }

  Arithmetic type;
  int64_t m, k, n;
  std::vector<float> a, b, c;
};

// Returns the README's ring: 0, 2, 4, ..., 5, 3, 1 or in order.
std::vector<int64_t> ring_by_hand(int64_t count, bool interleaved) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i)
    if (!interleaved || i % 2 == 0) out.push_back(i);
  for (int64_t i = count - 1; interleaved && i > 0; --i)
    if (i % 2 != 0) out.push_back(i);
  return out;
}

// Computes an element like its PE, with blocks of k in the order in which they come.
float element_by_hand(const Matrices& x, ProductAlgorithm algorithm, int64_t grid, int64_t row,
                      int64_t column) {
  const bool in_place = algorithm == ProductAlgorithm::kSumma;
  const auto ring = ring_by_hand(grid, algorithm == ProductAlgorithm::kMeshGemm);
  const auto place = [&](int64_t at) {
    return std::find(ring.begin(), ring.end(), at) - ring.begin();
  };
  const int64_t first = place(column / part_of(x.n, grid)) + place(row / part_of(x.m, grid)),
                part = part_of(x.k, grid);
  float sum = x.at_c(row, column);
  for (int64_t step = 0; step < grid; ++step) {
    const int64_t block = in_place ? step : ring[static_cast<size_t>((first + step) % grid)];
    for (int64_t k = block * part; k < std::min(x.k, (block + 1) * part); ++k)
      sum = fused(x.type, x.at_a(row, k), x.at_b(k, column), sum);
  }
  return sum;
}

// Each of a line of |grid| PEs sums its part of k; the tree joins the sums, and C's old value is
// added.
float vector_element_by_hand(const Matrices& x, int64_t grid, int64_t group, int64_t row,
                             int64_t column) {
  const int64_t part = part_of(x.k, grid);
  std::vector<float> sums(static_cast<size_t>(grid), 0.0F);
  for (int64_t k = 0; k < x.k; ++k) {
    float& sum = sums[static_cast<size_t>(k / part)];
    sum = fused(x.type, x.at_a(row, k), x.at_b(k, column), sum);
  }
  return round_to(x.type, x.at_c(row, column) + tree_join(x.type, sums, group, Join::kAdd));
}

void expect_documented_order(const Matrices& x, ProductAlgorithm algorithm, int64_t grid,
                             int64_t group) {
  const std::vector<float> is = x.run(algorithm, grid, group);
  for (int64_t i = 0; i < x.m; ++i)
    for (int64_t j = 0; j < x.n; ++j) {
      const float expected = algorithm == ProductAlgorithm::kMeshGemv
                                 ? vector_element_by_hand(x, grid, group, i, j)
                                 : element_by_hand(x, algorithm, grid, i, j);
      ASSERT_EQ(std::bit_cast<uint32_t>(is[static_cast<size_t>(i * x.n + j)]),
                std::bit_cast<uint32_t>(expected))
          << x.text(algorithm, grid) << " group " << group << " at " << i << ", " << j;
    }
}

struct ProductSize {
  int64_t m, k, n, grid;
};
constexpr ProductSize kProductSizes[] = {{1, 1, 1, 1},   {1, 1, 1, 4},     {8, 8, 8, 4},
                                         {7, 13, 5, 3},  {7, 13, 5, 4},    {3, 2, 5, 7},
                                         {2, 3, 2, 16},  {17, 40, 23, 5},  {33, 31, 70, 6},
                                         {12, 64, 9, 8}, {1, 100, 130, 9}, {20, 50, 300, 2}};

TEST(Products, values_are_near_those_of_fp64) {
  for (const ProductAlgorithm algorithm : kAlgorithms)
    for (const ProductSize& size : kProductSizes)
      for (const Arithmetic type : {Arithmetic::kFp32, Arithmetic::kFp32Fast}) {
        const Matrices x(type, size.m, size.k, size.n, 1);
        const std::vector<float> is = x.run(algorithm, size.grid, 2);
        for (int64_t i = 0; i < x.m; ++i)
          for (int64_t j = 0; j < x.n; ++j) {
            double sum = x.at_c(i, j), sizes = std::fabs(sum);
            for (int64_t k = 0; k < x.k; ++k) {
              const double product = static_cast<double>(x.at_a(i, k)) * x.at_b(k, j);
              sum += product;
              sizes += std::fabs(product);
            }
            ASSERT_NEAR(is[static_cast<size_t>(i * x.n + j)], sum, 1e-5 * sizes)
                << x.text(algorithm, size.grid);
          }
      }
}

TEST(Products, blocks_are_added_up_in_the_order_of_the_ring) {
  for (const ProductAlgorithm algorithm : kMatrixAlgorithms)
    for (const ProductSize& size : kProductSizes)
      for (const Arithmetic type : {Arithmetic::kFp32, Arithmetic::kFp16, Arithmetic::kBf16})
        expect_documented_order(Matrices(type, size.m, size.k, size.n, 2), algorithm, size.grid, 1);
}

TEST(Products, algorithms_differ_where_their_orders_do) {
  const Matrices x(Arithmetic::kFp16, 32, 64, 32, 3);
  const auto mesh = x.run(ProductAlgorithm::kMeshGemm, 8, 1);
  EXPECT_NE(mesh, x.run(ProductAlgorithm::kCannon, 8, 1));
  EXPECT_NE(mesh, x.run(ProductAlgorithm::kSumma, 8, 1));
  EXPECT_NE(mesh, x.run(ProductAlgorithm::kMeshGemm, 4, 1));
  // On a single PE all algorithms are the same chain.
  EXPECT_EQ(x.run(ProductAlgorithm::kMeshGemm, 1, 1), x.run(ProductAlgorithm::kCannon, 1, 1));
  EXPECT_EQ(x.run(ProductAlgorithm::kMeshGemm, 1, 1), x.run(ProductAlgorithm::kSumma, 1, 1));
}

TEST(Products, parts_of_a_vector_are_joined_by_the_tree) {
  for (const ProductSize& size :
       {ProductSize{1, 1, 1, 1}, ProductSize{1, 16, 9, 4}, ProductSize{3, 15, 9, 4},
        ProductSize{1, 41, 70, 7}, ProductSize{2, 100, 130, 9}, ProductSize{1, 128, 5, 16}})
    for (const int64_t group : {1, 2, 3, 4, 20})
      for (const Arithmetic type : {Arithmetic::kFp32, Arithmetic::kFp16, Arithmetic::kBf16})
        expect_documented_order(Matrices(type, size.m, size.k, size.n, 4),
                                ProductAlgorithm::kMeshGemv, size.grid, group);
}

// k leaves PEs at the end of the line without a part. They take part in the tree all the same,
// since ragged edges are padded.
TEST(Products, a_vector_is_joined_over_the_whole_line) {
  for (const ProductSize& size : {ProductSize{1, 10, 9, 8}, ProductSize{1, 3, 9, 7},
                                  ProductSize{1, 13, 9, 12}, ProductSize{1, 33, 9, 16}})
    for (const int64_t group : {1, 2, 3, 4})
      for (const Arithmetic type : {Arithmetic::kFp32, Arithmetic::kFp16})
        expect_documented_order(Matrices(type, size.m, size.k, size.n, 5),
                                ProductAlgorithm::kMeshGemv, size.grid, group);
}

TEST(Products, empty_ones_leave_the_result_alone) {
  for (const ProductAlgorithm algorithm : kAlgorithms)
    for (const ProductSize& size : {ProductSize{0, 4, 4, 2}, ProductSize{4, 0, 4, 2},
                                    ProductSize{4, 4, 0, 2}, ProductSize{0, 0, 0, 1}}) {
      const Matrices x(Arithmetic::kFp32, size.m, size.k, size.n, 6);
      EXPECT_EQ(x.run(algorithm, size.grid, 1), x.c) << x.text(algorithm, size.grid);
    }
}

TEST(Products, strides_are_kept_and_what_lies_between_is_left_alone) {
  const Matrices x(Arithmetic::kFp16, 6, 11, 10, 7);
  for (const ProductAlgorithm algorithm : kAlgorithms) {
    constexpr int64_t kMore = 3;
    std::vector<float> a(static_cast<size_t>(x.m * (x.k + kMore)), 1e4F),
        b(static_cast<size_t>(x.k * (x.n + kMore)), 1e4F),
        c(static_cast<size_t>(x.m * (x.n + kMore)), 1e4F);
    const auto wide = [](const std::vector<float>& from, std::vector<float>& to, int64_t width) {
      for (size_t i = 0; i < from.size(); ++i) {
        const auto columns = static_cast<size_t>(width);
        to[i / columns * (columns + kMore) + i % columns] = from[i];
      }
    };
    wide(x.a, a, x.k);
    wide(x.b, b, x.n);
    wide(x.c, c, x.n);
    std::vector<float> expected = c;
    wide(x.run(algorithm, 3, 2), expected, x.n);
    const GemmValues values{algorithm, x.type,      x.m,      x.k,         x.n,      3,          2,
                            a.data(),  x.k + kMore, b.data(), x.n + kMore, c.data(), x.n + kMore};
    EXPECT_TRUE(gemm_values(values, on_this_thread));
    EXPECT_EQ(c, expected) << name_of(algorithm);
  }
}

TEST(Products, a_parallel_that_is_to_stop_is_heard) {
  const Matrices x(Arithmetic::kFp32, 4, 4, 4, 8);
  for (const ProductAlgorithm algorithm : kAlgorithms) {
    std::vector<float> c = x.c;
    const GemmValues values{algorithm,  x.type, 4,          4, 4,        2, 1,
                            x.a.data(), 4,      x.b.data(), 4, c.data(), 4};
    EXPECT_FALSE(
        gemm_values(values, [](int64_t, const std::function<void(int64_t)>&) { return false; }));
  }
}

TEST(Products, parts_may_be_computed_in_any_order) {
  const Matrices x(Arithmetic::kFp16, 20, 30, 200, 9);
  for (const ProductAlgorithm algorithm : kAlgorithms) {
    std::vector<float> c = x.c;
    const GemmValues values{algorithm,  x.type, x.m,        x.k, x.n,      10, 3,
                            x.a.data(), x.k,    x.b.data(), x.n, c.data(), x.n};
    EXPECT_TRUE(gemm_values(values, [](int64_t count, const std::function<void(int64_t)>& fn) {
      for (int64_t i = count; i-- > 0;) fn(i);
      return true;
    }));
    EXPECT_EQ(c, x.run(algorithm, 10, 3)) << name_of(algorithm);
  }
}

TEST(Products, neighbours_on_an_interleaved_ring_are_two_hops_apart_at_most) {
  EXPECT_EQ(ring_order(6, true), (std::vector<int32_t>{0, 2, 4, 5, 3, 1}));
  EXPECT_EQ(ring_order(5, true), (std::vector<int32_t>{0, 2, 4, 3, 1}));
  EXPECT_EQ(ring_order(1, true), (std::vector<int32_t>{0}));
  EXPECT_EQ(ring_order(3, false), (std::vector<int32_t>{0, 1, 2}));
  for (int64_t count = 1; count < 70; ++count) {
    const std::vector<int32_t> ring = ring_order(count, true);
    ASSERT_EQ(static_cast<int64_t>(ring.size()), count);
    for (size_t i = 0; i < ring.size(); ++i)
      EXPECT_LE(std::abs(ring[i] - ring[(i + 1) % ring.size()]), 2) << count;
    std::vector<int32_t> sorted = ring;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, ring_order(count, false));
  }
}

TEST(Products, bytes_of_a_pe_have_two_tiles_where_they_shift) {
  const Tile tile{3, 5, 7};
  EXPECT_EQ(gemm_bytes(tile, Arithmetic::kFp16, ProductAlgorithm::kMeshGemm),
            2 * (2 * (15 + 35) + 21));
  EXPECT_EQ(gemm_bytes(tile, Arithmetic::kFp32, ProductAlgorithm::kMeshGemv), 4 * (15 + 35 + 21));
}

}  // namespace
}  // namespace pfrt::wse::test
