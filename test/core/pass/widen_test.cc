// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of float16 in float32, with what follows them.
#include <gtest/gtest.h>

#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

constexpr pfrt_dtype kHalf = PFRT_DTYPE_FLOAT16;
constexpr double kRounding = 2e-2;  // of float16, after each operator

class HalfGraph : public PassGraph {
 public:
  HalfGraph() { in_session = true; }

  std::string image(const std::string& name, const std::string& channels) {
    return input(name, {"N", channels, "12", "12"}, kHalf);
  }
  std::string conv(const std::string& x, int64_t from, int64_t to, int64_t taps = 1) {
    std::vector<Attribute> attrs;
    if (taps == 3) attrs = {Attribute::of_ints("pads", {1, 1, 1, 1})};
    return node("Conv",
                {x, weights({to, from, taps, taps}, -0.3, 0.3, kHalf), weights({to}, -1, 1, kHalf)},
                attrs);
  }
  std::string result(const std::vector<std::map<std::string, int64_t>>& shapes = {{{"N", 2}},
                                                                                  {{"N", 0}}}) {
    return optimised(shapes, kRounding);
  }
};

TEST(WidenConv, a_chain_is_widened_once_and_rounded_once) {
  HalfGraph g;
  std::string x = g.node("Relu", {g.conv(g.image("x", "16"), 16, 32, 3)});
  x = g.node("MaxPool", {x}, {Attribute::of_ints("kernel_shape", {2, 2})});
  x = g.node("HardSwish", {g.conv(x, 32, 16)});
  g.output(x);
  EXPECT_EQ(g.result(), "Cast, Conv, MaxPool, Relu, Conv, HardSwish, Cast");
  EXPECT_EQ(g.applied("WidenConv"), 2u);
}

TEST(WidenConv, a_normalisation_is_folded_in_float32) {
  HalfGraph g;
  const std::string x = g.conv(g.image("x", "8"), 8, 8);
  g.output(g.node("BatchNormalization",
                  {x, g.weights({8}, 0.5, 1.5, kHalf), g.weights({8}, -1, 1, kHalf),
                   g.weights({8}, -1, 1, kHalf), g.weights({8}, 0.5, 2, kHalf)}));
  EXPECT_EQ(g.result(), "Cast, Conv, Cast");
  const Node* const conv = g.find("Conv");
  EXPECT_EQ(g.graph().constant(conv->inputs[1])->dtype, PFRT_DTYPE_FLOAT32);
}

// Convolutions of one position would take less time with weights of 16 bits, but not with casts.
TEST(WidenConv, squeeze_and_excite_stays_with_its_image) {
  HalfGraph g;
  const std::string x = g.node("Relu", {g.conv(g.image("x", "16"), 16, 64, 3)});
  std::string s = g.node("GlobalAveragePool", {x});
  s = g.node("Sigmoid", {g.conv(g.node("Relu", {g.conv(s, 64, 8)}), 8, 64)});
  g.output(g.conv(g.node("Mul", {x, s}), 64, 16));
  const std::string ops = g.result();
  EXPECT_EQ(ops.find("Cast"), 0u) << ops;
  EXPECT_EQ(ops.find("Cast", 1), ops.size() - 4) << ops;
}

TEST(WidenConv, branches_and_movements_follow) {
  HalfGraph g;
  const std::string x = g.node("Relu", {g.conv(g.image("x", "16"), 16, 32)});
  const std::string halves =
      g.node("Split", {x, g.ints({16, 16})}, {Attribute::of_int("axis", 1)}, 2);
  const std::string left = g.conv(halves, 16, 16, 3), right = halves + "_1";
  const std::string joined = g.node("Concat", {left, right}, {axis(1)});
  const std::string groups = g.node("Reshape", {joined, g.ints({0, 2, 16, 12, 12})});
  const std::string shuffled = g.node("Transpose", {groups}, {perm({0, 2, 1, 3, 4})});
  const std::string back = g.node("Reshape", {shuffled, g.ints({0, 32, 12, 12})});
  g.output(g.node("Add", {g.conv(back, 32, 32), x}));
  const std::string ops = g.result({{{"N", 3}}});
  EXPECT_EQ(ops.find("Cast"), 0u) << ops;
  EXPECT_EQ(ops.find("Cast", 1), ops.size() - 4) << ops;
}

TEST(WidenConv, others_read_what_was_rounded) {
  HalfGraph g;
  const std::string x = g.conv(g.image("x", "16"), 16, 32);
  g.output(x);
  g.output(g.node("MatMul", {x, g.weights({12, 5}, -1, 1, kHalf)}));
  g.output(g.node("Relu", {x}));
  g.output(g.node("Add", {x, g.image("y", "32")}));
  g.result({{{"N", 2}}});
  EXPECT_EQ(g.graph().at(g.find("MatMul")->outputs[0]).type.dtype, kHalf);
  EXPECT_EQ(g.graph().at(g.find("Add")->outputs[0]).type.dtype, kHalf);
  EXPECT_EQ(g.graph().at(g.find("Relu")->outputs[0]).type.dtype, PFRT_DTYPE_FLOAT32);
}

TEST(WidenConv, stays_in_files_in_other_types_and_without_constants) {
  HalfGraph file;
  file.in_session = false;
  file.output(file.node("Relu", {file.conv(file.image("x", "16"), 16, 32, 3)}));
  EXPECT_EQ(file.result(), "Conv, Relu");

  HalfGraph given;
  given.output(
      given.node("Conv", {given.image("x", "16"), given.input("w", {"8", "16", "1", "1"}, kHalf)}));
  EXPECT_EQ(given.result(), "Conv");

  HalfGraph wide;
  const std::string w = wide.weights({8, 16, 1, 1});
  wide.output(wide.node("Conv", {wide.input("x", {"N", "16", "12", "12"}), w}));
  EXPECT_EQ(wide.result(), "Conv");
}

// What a file rounds by itself is left alone where no convolution comes before it.
TEST(WidenConv, casts_of_the_file_stay_without_a_convolution) {
  HalfGraph g;
  const std::string x =
      g.node("Cast", {g.node("Exp", {g.input("x", {"N", "8"})})}, {Attribute::of_int("to", kHalf)});
  g.output(g.node("Mul", {x, g.weights({8}, -1, 1, kHalf)}));
  EXPECT_EQ(g.result(), "Exp, Cast, Mul");
}

}  // namespace
}  // namespace pfrt::test
