// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

// Returns the operators left of |op| with |constant| as operand |side|, between an Exp and a Sqrt.
std::string left_of(const std::string& op, double constant, size_t side, const Dims& dims = {},
                    pfrt_dtype dtype = PFRT_DTYPE_FLOAT32,
                    const std::vector<std::map<std::string, int64_t>>& sizes = {{{"N", 2}},
                                                                                {{"N", 0}}}) {
  PassGraph g;
  const std::string x = g.node("Exp", {g.input("x", {"N", "3"}, dtype)});
  const std::vector<double> elements(static_cast<size_t>(element_count(dims.data(), dims.size())),
                                     constant);
  const std::string c = g.constant(elements, dims, dtype);
  std::vector<std::string> inputs{x, c};
  if (side == 0) std::swap(inputs[0], inputs[1]);
  g.output(g.node("Sqrt", {g.node(op, inputs)}));
  return g.optimised(sizes);
}

TEST(Algebra, neutral_operands_go) {
  EXPECT_EQ(left_of("Mul", 1, 1), "Exp, Sqrt");
  EXPECT_EQ(left_of("Mul", 1, 0, {3}), "Exp, Sqrt");
  EXPECT_EQ(left_of("Div", 1, 1, {1, 1}), "Exp, Sqrt");
  EXPECT_EQ(left_of("Pow", 1, 1), "Exp, Sqrt");
  EXPECT_EQ(left_of("Sub", 0, 1), "Exp, Sqrt");
  EXPECT_EQ(left_of("Add", -0.0, 1), "Exp, Sqrt");
  EXPECT_EQ(left_of("Mul", 1, 1, {}, PFRT_DTYPE_FLOAT16), "Exp, Sqrt");
}

TEST(Algebra, what_changes_numbers_or_shapes_stays) {
  EXPECT_EQ(left_of("Mul", 2, 1), "Exp, Mul, Sqrt");
  EXPECT_EQ(left_of("Div", 1, 0), "Exp, Div, Sqrt");
  EXPECT_EQ(left_of("Pow", 1, 0), "Exp, Pow, Sqrt");
  EXPECT_EQ(left_of("Sub", 0, 0), "Exp, Sub, Sqrt");
  // -0 + 0 is 0, so the sum changes a number.
  EXPECT_EQ(left_of("Add", 0.0, 1), "Exp, Add, Sqrt");
  EXPECT_EQ(left_of("Mul", 1, 1, {4, 1, 3}), "Exp, Mul, Sqrt");
  // N may be 1, and then the result has 2 rows.
  EXPECT_EQ(left_of("Mul", 1, 1, {2, 1}, PFRT_DTYPE_FLOAT32, {{{"N", 2}}, {{"N", 1}}}),
            "Exp, Mul, Sqrt");
}

TEST(Algebra, sums_of_integers_with_zero_go) {
  PassGraph g;
  const std::string x = g.node("Abs", {g.input("x", {"N"}, PFRT_DTYPE_INT64)});
  g.output(g.node("Neg", {g.node("Add", {x, g.ints({0})})}));
  EXPECT_EQ(g.optimised({{{"N", 4}}}), "Abs, Neg");
}

TEST(Algebra, an_output_of_the_graph_keeps_its_name_and_an_input_is_no_output) {
  PassGraph g;
  const std::string x = g.input("x", {"2"});
  const std::string same = g.node("Mul", {x, g.constant({1})});
  g.output(same);
  EXPECT_EQ(g.optimised(), "Mul");
  PassGraph h;
  const std::string out = h.node("Mul", {h.node("Exp", {h.input("x", {"2"})}), h.constant({1})});
  h.output(out);
  EXPECT_EQ(h.optimised(), "Exp");
  EXPECT_EQ(h.graph().at(h.graph().outputs[0]).name, out);
}

TEST(Algebra, operators_of_one_operand_and_clip_without_bounds_go) {
  PassGraph g;
  std::string x = g.node("Exp", {g.input("x", {"N", "2"})});
  for (const char* op : {"Sum", "Mean", "Max", "Min", "Clip"}) x = g.node(op, {x});
  const double end = std::numeric_limits<double>::infinity();
  x = g.node("Clip", {x, g.constant({-end}), g.constant({end})});
  g.output(g.node("Sqrt", {x}));
  EXPECT_EQ(g.optimised({{{"N", 3}}}), "Exp, Sqrt");
  PassGraph h;
  h.output(h.node("Clip", {h.input("x", {"N"}), h.constant({-1}), h.constant({end})}));
  EXPECT_EQ(h.optimised({{{"N", 3}}}), "Clip");
}

TEST(Algebra, a_sum_of_two_is_an_addition) {
  PassGraph g;
  const std::string x = g.node("Exp", {g.input("x", {"N", "2"})});
  g.output(g.node("Sqrt", {g.node("Sum", {x, g.input("y", {"2"})})}));
  g.output(g.node("Sum", {x, x, g.input("z", {"2"})}));
  EXPECT_EQ(g.optimised({{{"N", 3}}}), "Exp, Add, Sqrt, Sum");
}

// A normalisation takes scales and shifts of its channels, as a convolution does.
TEST(Algebra, scales_and_shifts_move_into_a_normalisation) {
  PassGraph g;
  const std::string x = g.node("Exp", {g.input("x", {"N", "3", "4"})});
  std::string y = g.node("BatchNormalization", {x, g.weights({3}), g.weights({3}), g.weights({3}),
                                                g.weights({3}, 0.5, 2)});
  y = g.node("Mul", {y, g.weights({3, 1})});
  y = g.node("Sub", {g.weights({1, 3, 1}), y});
  g.output(g.node("Relu", {y}));
  EXPECT_EQ(g.optimised({{{"N", 2}}}), "Exp, BatchNormalization, Relu");
  // A factor for each pixel is not one for each channel.
  PassGraph h;
  const std::string n =
      h.node("BatchNormalization", {h.input("x", {"N", "3", "3"}), h.weights({3}), h.weights({3}),
                                    h.weights({3}), h.weights({3}, 0.5, 2)});
  h.output(h.node("Mul", {n, h.weights({3})}));
  EXPECT_EQ(h.optimised({{{"N", 2}}}), "BatchNormalization, Mul");
}

TEST(Algebra, what_is_done_twice_is_done_once_or_not_at_all) {
  PassGraph g;
  const std::string x = g.input("x", {"N"});
  g.output(g.node("Relu", {g.node("Relu", {x})}));
  g.output(g.node("Exp", {g.node("Neg", {g.node("Neg", {x})})}));
  const std::string b = g.input("b", {"N"}, PFRT_DTYPE_BOOL);
  g.output(g.node("Cast", {g.node("Not", {g.node("Not", {b})})},
                  {Attribute::of_int("to", PFRT_DTYPE_INT32)}));
  EXPECT_EQ(g.optimised({{{"N", 5}}}), "Relu, Exp, Cast");
}

TEST(Algebra, a_constant_condition_has_chosen) {
  PassGraph g;
  const std::string a = g.node("Exp", {g.input("a", {"N", "2"})});
  const std::string b = g.node("Abs", {g.input("b", {"N", "2"})});
  const auto condition = [&](bool value) {
    return g.node("Cast", {g.ints({value})}, {Attribute::of_int("to", PFRT_DTYPE_BOOL)});
  };
  g.output(g.node("Sqrt", {g.node("Where", {condition(true), a, b})}));
  g.output(g.node("Neg", {g.node("Where", {condition(false), a, b})}));
  EXPECT_EQ(g.optimised({{{"N", 3}}}), "Exp, Abs, Sqrt, Neg");
  PassGraph h;
  const std::string row = h.node("Exp", {h.input("row", {"2"})});
  const std::string all = h.node("Abs", {h.input("all", {"N", "2"})});
  const std::string yes = h.node("Cast", {h.ints({1})}, {Attribute::of_int("to", PFRT_DTYPE_BOOL)});
  h.output(h.node("Where", {yes, row, all}));  // becomes larger than the row
  EXPECT_EQ(h.optimised({{{"N", 3}}}), "Exp, Abs, Where");
}

}  // namespace
}  // namespace pfrt::test
