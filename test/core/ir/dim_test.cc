// SPDX-License-Identifier: Apache-2.0
#include "core/ir/dim.h"

#include <gtest/gtest.h>

namespace pfrt {
namespace {

TEST(Dim, numbers_are_computed) {
  SymbolTable t;
  EXPECT_TRUE(t.add(3, 4).is(7));
  EXPECT_TRUE(t.sub(3, 4).is(-1));
  EXPECT_TRUE(t.mul(3, -4).is(-12));
  EXPECT_TRUE(t.floor_div(7, 2).is(3));
  EXPECT_TRUE(t.floor_div(-7, 2).is(-4));
  EXPECT_TRUE(t.floor_div(7, -2).is(-4));
  EXPECT_TRUE(t.ceil_div(7, 2).is(4));
  EXPECT_TRUE(t.ceil_div(-7, 2).is(-3));
  EXPECT_TRUE(t.min(7, 2).is(2));
  EXPECT_TRUE(t.max(7, 2).is(7));
  EXPECT_TRUE(t.product({2, 3, 4}).is(24));
  EXPECT_TRUE(t.product({2, 3, 4}, 1, 2).is(3));
  EXPECT_TRUE(t.product({}).is(1));
}

TEST(Dim, nothing_is_known_of_what_cannot_be) {
  SymbolTable t;
  EXPECT_TRUE(t.floor_div(7, 0).unknown());
  EXPECT_TRUE(t.ceil_div(7, 0).unknown());
  EXPECT_FALSE(t.mul(INT64_MAX, 2).known());
  EXPECT_FALSE(t.add(INT64_MAX, 1).known());
  EXPECT_FALSE(t.sub(INT64_MIN, 1).known());
  EXPECT_FALSE(t.floor_div(INT64_MIN, -1).known());
  EXPECT_FALSE(t.ceil_div(INT64_MIN, -1).known());
  EXPECT_TRUE(t.add(Dim(), 1).unknown());
  EXPECT_FALSE(Dim() == Dim());
}

TEST(Dim, equal_expressions_are_equal_dimensions) {
  SymbolTable t;
  const Dim n = t.symbol("N"), m = t.symbol("M");
  EXPECT_TRUE(n == t.symbol("N"));
  EXPECT_FALSE(n == m);
  EXPECT_TRUE(t.mul(n, 4) == t.mul(4, n));
  EXPECT_TRUE(t.add(n, m) == t.add(m, n));
  EXPECT_FALSE(t.sub(n, m) == t.sub(m, n));
  EXPECT_FALSE(t.mul(n, 4) == t.mul(n, 5));
  EXPECT_TRUE(t.mul(n, 1) == n);
  EXPECT_TRUE(t.add(n, 0) == n);
  EXPECT_TRUE(t.sub(n, 0) == n);
  EXPECT_TRUE(t.floor_div(n, 1) == n);
  EXPECT_TRUE(t.mul(n, 0).is(0));
  EXPECT_TRUE(t.max(n, n) == n);
}

TEST(Dim, text_is_a_number_a_name_or_a_question_mark) {
  SymbolTable t;
  EXPECT_EQ(t.text(Dim(5)), "5");
  EXPECT_EQ(t.text(t.symbol("batch")), "batch");
  EXPECT_EQ(t.text(Dim()), "?");
  EXPECT_EQ(t.text(Shape{t.symbol("N"), 3, Dim()}), "[N,3,?]");
  EXPECT_TRUE(t.symbol("").unknown()) << "a dimension without a name";
}

TEST(Dim, without_a_name_is_equal_to_itself_alone) {
  SymbolTable t;
  const Dim a = t.fresh(), b = t.fresh();
  EXPECT_TRUE(a == a);
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(t.mul(a, 2) == t.mul(2, a));
  EXPECT_FALSE(t.mul(a, 2) == t.mul(b, 2));
  EXPECT_EQ(t.given_name(a), "");
  EXPECT_EQ(t.given_name(t.mul(a, 2)), "");
  EXPECT_EQ(t.given_name(t.mul(t.symbol("N"), 2)), "(2*N)");
  EXPECT_EQ(t.given_name(Dim(3)), "");
  EXPECT_TRUE(t.symbol("?").unknown()) << "exporters write that for what has no name";
  EXPECT_TRUE(t.symbol(t.text(a)).unknown()) << "read back from a file";
}

}  // namespace
}  // namespace pfrt
