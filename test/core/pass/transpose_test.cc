// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/pass/rules/layout/min_cut.h"
#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

Attribute keep(bool yes) { return Attribute::of_int("keepdims", yes); }

const std::vector<int64_t> kToFirst{0, 3, 1, 2}, kToLast{0, 2, 3, 1};
const std::vector<std::map<std::string, int64_t>> kTransposeBatches{{{"N", 1}}, {{"N", 2}}};

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

// This is a network in NHWC as tf2onnx writes it.
// PyTorch's exporter writes a slice that is assigned as three of them, with Identity between.
TEST(MergeTransposes, needs_no_layouts) {
  PassGraph g;
  const auto moved = [&](std::string x, std::vector<int64_t> order) {
    return g.node("Identity", {g.node("Transpose", {x}, {perm(std::move(order))})});
  };
  std::string x = g.node("Relu", {g.input("x", {"N", "3", "4", "5"})});
  x = moved(moved(moved(x, {3, 1, 2, 0}), {2, 1, 3, 0}), {2, 1, 0, 3});
  g.output(g.node("Exp", {x}));
  g.output(moved(moved(g.node("Neg", {x}), {0, 2, 1, 3}), {0, 3, 1, 2}));
  EXPECT_EQ(g.optimised(kTransposeBatches, 1e-5, OptLevel::kExtended), "Relu, Exp, Neg, Transpose");
  EXPECT_EQ(g.optimised(kTransposeBatches, 1e-5, OptLevel::kBasic),
            "Relu, Transpose, Transpose, Transpose, Exp, Neg, Transpose, Transpose");
}

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
  g.optimised(kTransposeBatches, 1e-4);
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
    EXPECT_EQ(h.optimised(kTransposeBatches),
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
  // A constant of batch 2 is joined, so the batch is 2.
  EXPECT_EQ(g.optimised({{{"N", 2}}}).find("Transpose"), std::string::npos);
}

TEST_F(Islands, squeeze_argmax_and_gather_drop_dimensions_on_the_way) {
  const std::string x = first(g.input("x", {"N", "6", "1", "4"}));  // N 4 6 1
  const std::string y = g.node("Abs", {x});
  g.output(g.node("Transpose", {g.node("Squeeze", {y, g.ints({3})})}, {perm({0, 2, 1})}));
  const std::string z = first(g.input("z", {"N", "6", "5", "4"}));  // N 4 6 5
  g.output(g.node("ArgMax", {g.node("Neg", {z})}, {axis(1), keep(false)}));
  g.output(g.node("Gather", {g.node("Exp", {z}), g.ints({1, 0})}, {axis(3)}));
  const std::string ops = g.optimised(kTransposeBatches);
  size_t transposes = 0;
  for (NodeId id : g.graph().node_ids()) transposes += g.graph().node(id)->op == "Transpose";
  EXPECT_LE(transposes, 1u) << ops;
}

TEST_F(Islands, transposes_merge_and_cancel) {
  const std::string x = g.node("Exp", {g.input("x", {"N", "3", "4", "5"})});
  g.output(g.node("Neg", {first(last(x))}));
  g.output(last(last(x)));
  EXPECT_EQ(g.optimised(kTransposeBatches), "Exp, Neg, Transpose");
}

TEST_F(Islands, dimensions_of_one_move_without_work) {
  const std::string x = g.node("Exp", {g.input("x", {"N", "4", "1", "1"})});
  g.output(last(x));
  EXPECT_EQ(g.optimised(kTransposeBatches), "Exp, Reshape");
}

TEST_F(Islands, what_others_need_in_its_order_stays) {
  const std::string x = g.input("x", {"N", "8", "8", "4"});
  const std::string y = g.node("Relu", {first(x)});
  g.output(y);
  g.output(conv(y, 4, 2));
  EXPECT_EQ(g.optimised(kTransposeBatches), "Transpose, Relu, Conv");
}

TEST_F(Islands, a_row_that_is_no_constant_is_left_alone) {
  const std::string x = first(g.input("x", {"N", "8", "8", "4"}));
  const std::string row = g.input("row", {"8"});
  g.output(last(g.node("Add", {x, row})));
  EXPECT_EQ(g.optimised(kTransposeBatches), "Transpose, Add, Transpose");
}

TEST_F(Islands, fewer_bytes_decide) {
  // Only one side of the sum is transposed, and the sum is transposed back.
  const std::string x = first(g.input("x", {"N", "8", "8", "4"}));
  const std::string y = g.node("Relu", {g.input("y", {"N", "4", "8", "1"})});
  g.output(last(g.node("Add", {x, y})));
  EXPECT_EQ(g.optimised(kTransposeBatches), "Relu, Transpose, Add");
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
  EXPECT_EQ(g.optimised(kTransposeBatches, 1e-4), "Transpose, MatMul");
}

// Networks of random operators that work in any order of dimensions, between random transposes.
TEST(RandomIslands, give_the_same_numbers) {
  constexpr int kNetworks = 300;
  for (int seed = 0; seed < kNetworks; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
    PassGraph g(18);
    struct Value {
      std::string name;
      std::vector<int64_t> dims;
    };
    std::vector<Value> values;
    const std::vector<std::vector<int64_t>> shapes{{2, 3, 4, 5}, {1, 4, 3, 1}, {2, 6, 5}};
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<std::string> dims;
      for (int64_t d : shapes[i]) dims.push_back(std::to_string(d));
      values.push_back({g.input("x" + std::to_string(i), dims), shapes[i]});
    }
    const auto add = [&](std::string name, std::vector<int64_t> dims) {
      values.push_back({std::move(name), std::move(dims)});
    };
    for (int step = 0; step < 14; ++step) {
      const Value v = values[values.size() - 1 - pick(std::min<size_t>(values.size(), 4))];
      const size_t rank = v.dims.size();
      if (rank == 0) continue;
      const size_t at = pick(rank);
      const auto here = static_cast<int64_t>(at);
      std::vector<int64_t> dims = v.dims;
      switch (pick(15)) {
        case 0:
        case 1:
        case 2:
        case 3: {
          std::vector<int64_t> order(rank);
          std::iota(order.begin(), order.end(), 0);
          std::shuffle(order.begin(), order.end(), random);
          for (size_t i = 0; i < rank; ++i) dims[i] = v.dims[static_cast<size_t>(order[i])];
          add(g.node("Transpose", {v.name}, {perm(order)}), dims);
          break;
        }
        case 4:
          add(g.node(pick(2) ? "Relu" : "Neg", {v.name}), dims);
          break;
        case 5: {
          std::vector<int64_t> other(v.dims.begin() + static_cast<int64_t>(pick(rank)),
                                     v.dims.end());
          for (int64_t& d : other)
            if (pick(3) == 0) d = 1;
          add(g.node("Mul", {v.name, g.weights(other)}), dims);
          break;
        }
        case 6:
          for (const Value& w : std::vector<Value>(values))
            if (w.dims == v.dims && w.name != v.name) {
              add(g.node("Add", {v.name, w.name}), dims);
              break;
            }
          break;
        case 7:
          add(g.node("Softmax", {v.name}, {axis(here)}), dims);
          break;
        case 8: {
          const bool kept = pick(2);
          add(g.node("ReduceMax", {v.name, g.ints({here})}, {keep(kept)}), dims);
          dims[at] = 1;
          if (!kept) dims.erase(dims.begin() + here);
          values.back().dims = dims;
          break;
        }
        case 9:
          dims[at] *= 2;
          add(g.node("Concat", {v.name, pick(2) ? v.name : g.weights(v.dims)}, {axis(here)}), dims);
          break;
        case 10:
          if (dims[at] < 2) break;
          dims[at] -= 1;
          add(g.node("Slice", {v.name, g.ints({1}), g.ints({INT64_MAX}), g.ints({here})}), dims);
          break;
        case 11: {
          std::vector<int64_t> pads(2 * rank, 0);
          pads[at] = 1;
          pads[rank + pick(rank)] += 2;
          for (size_t i = 0; i < rank; ++i) dims[i] += pads[i] + pads[rank + i];
          add(g.node("Pad", {v.name, g.ints(pads)}), dims);
          break;
        }
        case 12:
          if (rank > 4) break;
          dims.insert(dims.begin() + here, 1);
          add(g.node("Unsqueeze", {v.name, g.ints({here})}), dims);
          break;
        case 13: {
          const int64_t one = dims[at] / 2;
          if (one == 0) break;
          const std::string cut =
              g.node("Split", {v.name, g.ints({one, dims[at] - one})}, {axis(here)}, 2);
          dims[at] = one;
          add(cut, dims);
          dims[at] = v.dims[at] - one;
          add(cut + "_1", dims);
          break;
        }
        default:
          if (pick(2) && dims[at] == 1) {
            dims.erase(dims.begin() + here);
            add(g.node("Squeeze", {v.name, g.ints({here})}), dims);
          } else {
            dims.erase(dims.begin() + here);
            const std::string index = g.node("Squeeze", {g.ints({v.dims[at] - 1}), g.ints({0})});
            add(g.node("Gather", {v.name, index}, {axis(here)}), dims);
          }
      }
    }
    // Some values are also read in the middle.
    for (size_t i = 3; i + 1 < values.size(); ++i)
      if (pick(6) == 0) g.output(values[i].name);
    g.output(values.back().name);
    const std::string ops = g.optimised({{}}, 1e-4);
    EXPECT_EQ(ops.find_first_of(":0123456789'"), std::string::npos)
        << "network " << seed << ": " << ops;
  }
}

}  // namespace
}  // namespace pfrt::test
