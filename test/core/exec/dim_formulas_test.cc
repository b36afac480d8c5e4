// SPDX-License-Identifier: Apache-2.0
#include "core/exec/dim_formulas.h"

#include <gtest/gtest.h>

namespace pfrt {
namespace {

using Values = std::vector<int64_t>;

class Formulas : public testing::Test {
 protected:
  std::optional<DimFormulas> of(const std::vector<Shape>& shapes) {
    return DimFormulas::of(s_, n_, shapes);
  }
  SymbolTable s_;
  const Dim n_ = s_.symbol("N");
};

TEST_F(Formulas, have_the_values_of_their_expressions) {
  const Dim longer = s_.add(n_, 3);
  const auto formulas = of({{1, n_, 64},
                            {longer, s_.mul(longer, longer)},
                            {},
                            {s_.min(n_, 8), s_.max(n_, 8), s_.floor_div(s_.mul(n_, 6), 3)}});
  ASSERT_TRUE(formulas);
  EXPECT_EQ(formulas->at(5), (Values{1, 5, 64, 8, 64, 5, 8, 10}));
  EXPECT_EQ(formulas->at(9), (Values{1, 9, 64, 12, 144, 8, 9, 18}));
}

TEST_F(Formulas, leave_to_inference_what_only_it_can_tell) {
  EXPECT_FALSE(of({{Dim()}}));
  EXPECT_FALSE(of({{s_.add(n_, s_.symbol("M"))}}));
  const auto halves = of({{s_.floor_div(n_, 2)}});
  ASSERT_TRUE(halves);
  EXPECT_EQ(halves->at(6), Values{3});
  EXPECT_FALSE(halves->at(7));
  const auto both = of({{s_.broadcast(n_, 4)}});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->at(1), Values{4});
  EXPECT_EQ(both->at(4), Values{4});
  EXPECT_FALSE(both->at(3));
  const auto square = of({{s_.mul(n_, n_)}});
  ASSERT_TRUE(square);
  EXPECT_FALSE(square->at(int64_t{1} << 40));
}

}  // namespace
}  // namespace pfrt
