// SPDX-License-Identifier: Apache-2.0
//
// Dimensions about which nothing is known, not even that two are equal, written "?" here; contents
// decide those of inner values. Rewrites that are right for any dimensions are made, and no others.
#include <gtest/gtest.h>

#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

const std::vector<std::map<std::string, int64_t>> kSizes{{{"?", 1}}, {{"?", 3}}, {{"?", 0}}};

TEST(UnknownDims, a_row_is_added_by_the_product) {
  for (const bool matrix : {false, true}) {
    for (const int64_t length : {5, 1}) {
      PassGraph g;
      const std::string product = g.node("MatMul", {g.input("x", {"?", "4"}), g.weights({4, 5})});
      std::vector<std::string> bias = {std::to_string(length)};
      if (matrix) bias.insert(bias.begin(), "1");
      g.output(g.node("Add", {product, g.input("b", bias)}));
      EXPECT_EQ(g.optimised(kSizes), "Gemm");
      EXPECT_EQ(g.applied("Gemm"), 1u);
    }
  }
}

TEST(UnknownDims, what_may_be_more_than_a_row_is_added_apart) {
  const auto left = [](const std::vector<std::string>& bias) {
    PassGraph g;
    const std::string product = g.node("MatMul", {g.input("x", {"?", "4"}), g.weights({4, 1})});
    g.output(g.node("Add", {product, g.input("b", bias)}));
    return g.optimised(kSizes);
  };
  EXPECT_EQ(left({"1"}), "Gemm");
  // Such a bias makes the product wider, or may.
  EXPECT_EQ(left({"5"}), "MatMul, Add");
  EXPECT_EQ(left({"?"}), "MatMul, Add");
  // Such a bias may have more rows than the product, or adds a dimension.
  EXPECT_EQ(left({"?", "1"}), "MatMul, Add");
  EXPECT_EQ(left({"1", "1", "1"}), "MatMul, Add");
}

}  // namespace
}  // namespace pfrt::test
