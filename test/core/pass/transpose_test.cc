// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/pass/min_cut.h"
#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

Attribute perm(std::vector<int64_t> order) { return Attribute::of_ints("perm", std::move(order)); }
Attribute axis(int64_t at) { return Attribute::of_int("axis", at); }
Attribute keep(bool yes) { return Attribute::of_int("keepdims", yes); }

const std::vector<int64_t> kToFirst{0, 3, 1, 2}, kToLast{0, 2, 3, 1};
const std::vector<std::map<std::string, int64_t>> kBatches{{{"N", 1}}, {{"N", 2}}};

class Islands : public testing::Test {
 protected:
  std::string first(const std::string& x) { return g.node("Transpose", {x}, {perm(kToFirst)}); }
  std::string last(const std::string& x) { return g.node("Transpose", {x}, {perm(kToLast)}); }
  std::string conv(const std::string& x, int64_t from, int64_t to) {
    return g.node("Conv", {x, g.weights({to, from, 3, 3})},
                  {Attribute::of_ints("pads", {1, 1, 1, 1})});
  }
  PassGraph g;
};

TEST(MinCut, parts_where_it_is_cheapest) {
  MinCut cut;
  const uint32_t a = cut.vertex(), b = cut.vertex();
  cut.edge(MinCut::kSource, a, 5);
  cut.edge(MinCut::kSource, b, 2);
  cut.edge(a, b, 3);
  cut.edge(a, MinCut::kSink, 1);
  cut.edge(b, MinCut::kSink, 9);
  EXPECT_EQ(cut.solve(), 6);
  EXPECT_FALSE(cut.sink_side()[a]);
  EXPECT_TRUE(cut.sink_side()[b]);
}

// As tf2onnx writes a network in NHWC.
TEST_F(Islands, a_network_keeps_the_transposes_at_its_ends) {
  std::string x = first(g.input("x", {"N", "8", "8", "4"}));
  x = last(conv(x, 4, 6));
  x = g.node("Add", {x, g.weights({6})});
  const std::string kept = g.node("LeakyRelu", {x});
  x = last(conv(first(kept), 6, 6));
  x = g.node("Add", {g.node("Mul", {x, g.weights({1, 1, 1, 6})}), kept});
  x = g.node("Pad", {x, g.ints({0, 1, 1, 0, 0, 1, 1, 0})});
  x = last(g.node("MaxPool", {first(x)}, {Attribute::of_ints("kernel_shape", {2, 2})}));
  x = g.node("Concat", {x, g.node("Sigmoid", {x})}, {axis(3)});
  g.output(g.node("Softmax", {x}, {axis(-1)}));
  g.optimised(kBatches, 1e-4);
  size_t transposes = 0;
  for (NodeId id : g.graph().node_ids()) transposes += g.graph().node(id)->op == "Transpose";
  EXPECT_EQ(transposes, 2u);
}

TEST_F(Islands, a_mean_over_the_image_takes_the_transpose_away) {
  for (const bool kept : {false, true}) {
    PassGraph h(18);
    const std::string x =
        h.node("Conv", {h.input("x", {"N", "3", "8", "8"}), h.weights({4, 3, 1, 1})});
    const std::string y = h.node("Transpose", {x}, {perm(kToLast)});
    h.output(h.node("ReduceMean", {h.node("Exp", {y}), h.ints({1, 2})}, {keep(kept)}));
    EXPECT_EQ(h.optimised(kBatches),
              kept ? "Conv, Exp, ReduceMean, Reshape" : "Conv, Exp, ReduceMean");
  }
}

TEST_F(Islands, what_can_work_in_any_order_does) {
  std::string x = g.node("Exp", {first(g.input("x", {"N", "6", "5", "4"}))});
  x = g.node("Slice", {x, g.ints({1, 0}), g.ints({3, 4}), g.ints({1, 2}), g.ints({1, 2})});
  x = g.node("Tile", {x, g.ints({1, 2, 1, 1})});
  x = g.node("Clip", {x, g.constant({0}), g.constant({1})});
  x = g.node("Softmax", {x}, {axis(1)});
  const std::string cut = g.node("Split", {x, g.ints({1, 3})}, {axis(1)}, 2);
  x = g.node("Concat", {cut + "_1", cut, g.weights({2, 4, 3, 5})}, {axis(1)});
  g.output(last(g.node("Where", {g.node("Less", {x, g.weights({4, 1, 5})}), x, g.constant({2})})));
  // The batch is 2 where a constant joins.
  EXPECT_EQ(g.optimised({{{"N", 2}}}).find("Transpose"), std::string::npos);
}

TEST_F(Islands, squeeze_argmax_and_gather_drop_dimensions_on_the_way) {
  const std::string x = first(g.input("x", {"N", "6", "1", "4"}));  // N 4 6 1
  const std::string y = g.node("Abs", {x});
  g.output(g.node("Transpose", {g.node("Squeeze", {y, g.ints({3})})}, {perm({0, 2, 1})}));
  const std::string z = first(g.input("z", {"N", "6", "5", "4"}));  // N 4 6 5
  g.output(g.node("ArgMax", {g.node("Neg", {z})}, {axis(1), keep(false)}));
  g.output(g.node("Gather", {g.node("Exp", {z}), g.ints({1, 0})}, {axis(3)}));
  const std::string ops = g.optimised(kBatches);
  size_t transposes = 0;
  for (NodeId id : g.graph().node_ids()) transposes += g.graph().node(id)->op == "Transpose";
  EXPECT_LE(transposes, 1u) << ops;
}

TEST_F(Islands, transposes_merge_and_cancel) {
  const std::string x = g.node("Exp", {g.input("x", {"N", "3", "4", "5"})});
  g.output(g.node("Neg", {first(last(x))}));
  g.output(last(last(x)));
  EXPECT_EQ(g.optimised(kBatches), "Exp, Neg, Transpose");
}

TEST_F(Islands, dimensions_of_one_move_without_work) {
  const std::string x = g.node("Exp", {g.input("x", {"N", "4", "1", "1"})});
  g.output(last(x));
  EXPECT_EQ(g.optimised(kBatches), "Exp, Reshape");
}

TEST_F(Islands, what_others_need_in_its_order_stays) {
  const std::string x = g.input("x", {"N", "8", "8", "4"});
  const std::string y = g.node("Relu", {first(x)});
  g.output(y);
  g.output(conv(y, 4, 2));
  EXPECT_EQ(g.optimised(kBatches), "Transpose, Relu, Conv");
}

TEST_F(Islands, a_row_that_is_no_constant_is_left_alone) {
  const std::string x = first(g.input("x", {"N", "8", "8", "4"}));
  const std::string row = g.input("row", {"8"});
  g.output(last(g.node("Add", {x, row})));
  EXPECT_EQ(g.optimised(kBatches), "Transpose, Add, Transpose");
}

TEST_F(Islands, fewer_bytes_decide) {
  // One side of the sum is transposed, the other is not; the sum is transposed back.
  const std::string x = first(g.input("x", {"N", "8", "8", "4"}));
  const std::string y = g.node("Relu", {g.input("y", {"N", "4", "8", "1"})});
  g.output(last(g.node("Add", {x, y})));
  EXPECT_EQ(g.optimised(kBatches), "Relu, Transpose, Add");
}

TEST(Products, read_columns_instead_of_transposed_matrices) {
  PassGraph g;
  const std::string a = g.input("a", {"K", "M"}), b = g.input("b", {"M", "K"});
  const std::string at = g.node("Transpose", {a}, {perm({1, 0})});
  const std::string bt = g.node("Transpose", {b}, {perm({1, 0})});
  g.output(g.node("MatMul", {at, bt}));
  g.output(g.node("Gemm", {at, b, g.constant({1})}, {Attribute::of_int("transB", 1)}));
  EXPECT_EQ(g.optimised({{{"K", 7}, {"M", 3}}}, 1e-4), "Gemm, Gemm");
}

TEST(Products, of_batches_keep_their_transposes) {
  PassGraph g;
  const std::string a = g.input("a", {"N", "5", "4"});
  g.output(g.node("MatMul", {a, g.node("Transpose", {a}, {perm({0, 2, 1})})}));
  EXPECT_EQ(g.optimised(kBatches, 1e-4), "Transpose, MatMul");
}

}  // namespace
}  // namespace pfrt::test
