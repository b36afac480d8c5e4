// SPDX-License-Identifier: Apache-2.0
#include "core/batch/batch_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/op/engine/canonicalise.h"
#include "core/op/engine/operator_def.h"
#include "core/plan/blocks.h"

namespace pfrt {
namespace {

using Port = BatchRows::Port;

// A graph with inputs x [N, 4, 6] and s [4, 6], whose outputs are searched for the batch.
class BatchRowsTest : public testing::Test {
 protected:
  BatchRowsTest() {
    graph_->opsets[""] = 21;
    input("x", {symbol("N"), 4, 6});
    input("s", {4, 6});
  }
  Dim symbol(const char* name) { return graph_->symbols->symbol(name); }
  void input(const std::string& name, Shape shape, pfrt_dtype dtype = PFRT_DTYPE_FLOAT32) {
    const ValueId id = graph_->value(name);
    graph_->at(id).type = Type::tensor(dtype, std::move(shape));
    graph_->inputs.push_back(id);
  }
  std::string int64s(const std::vector<int64_t>& values) {
    return graph_->at(graph_->add_constant("c", Tensor::of_int64(values).take())).name;
  }
  std::string zeros(Dims dims, pfrt_dtype dtype = PFRT_DTYPE_FLOAT32) {
    return graph_->at(graph_->add_constant("z", Tensor::allocate(dtype, std::move(dims)).take()))
        .name;
  }
  std::string node(std::string op, const std::vector<std::string>& inputs,
                   std::vector<Attribute> attrs = {}, size_t outputs = 1) {
    Node n;
    n.op = std::move(op);
    for (const auto& name : inputs) n.inputs.push_back(graph_->value(name));
    for (size_t i = 0; i < outputs; ++i) n.outputs.push_back(graph_->fresh("v"));
    n.attrs = std::move(attrs);
    const std::string first = graph_->at(n.outputs[0]).name;
    EXPECT_TRUE(graph_->add_node(std::move(n)).ok());
    return first;
  }
  // Returns how the only output, |name|, depends on the batch.
  Port port(const std::string& name) {
    graph_->outputs = {graph_->find(name)};
    const std::shared_ptr<Graph> copy = graph_->clone();
    const Status canonical = canonicalise(*copy);
    EXPECT_TRUE(canonical.ok()) << canonical.message();
    auto found = batch_rows(*copy);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (!found.ok()) return Port::kMixed;
    mixed_by_ = found.value().mixed_by[0];
    return found.value().outputs[0];
  }
  // Returns the node that certainly mixes rows, where |name| is the only output.
  std::string mixer(const std::string& name) {
    graph_->outputs = {graph_->find(name)};
    const std::shared_ptr<Graph> copy = graph_->clone();
    drop_unused(*copy);
    const Status canonical = canonicalise(*copy);
    EXPECT_TRUE(canonical.ok()) << canonical.message();
    auto found = mixes_rows(*copy);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? found.take() : "failed";
  }
  // Removes nodes that were added for other outputs.
  static void drop_unused(Graph& graph) {
    std::vector<NodeId> ids = graph.node_ids();
    std::ranges::reverse(ids);  // users come after producers
    for (const NodeId id : ids) {
      std::set<ValueId> used(graph.outputs.begin(), graph.outputs.end());
      for (const NodeId other : graph.node_ids())
        for (const ValueId v : graph.used_by(*graph.node(other))) used.insert(v);
      const std::vector<ValueId>& made = graph.node(id)->outputs;
      if (std::ranges::none_of(made, [&](ValueId v) { return used.contains(v); }))
        graph.remove_node(id);
    }
  }
  bool apart(const std::string& name) { return port(name) == Port::kRows; }

  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>("g");
  std::string mixed_by_;
};

const auto axis = [](int64_t a) { return std::vector{Attribute::of_int("axis", a)}; };
const auto equation = [](const char* text) {
  return std::vector{Attribute::of_string("equation", text)};
};
const auto perm = [](std::vector<int64_t> p) {
  return std::vector{Attribute::of_ints("perm", std::move(p))};
};

TEST_F(BatchRowsTest, elements_are_apart_where_broadcasting_leaves_the_batch_alone) {
  EXPECT_TRUE(apart(node("Relu", {"x"})));
  EXPECT_TRUE(apart(node("Add", {"x", "s"})));
  EXPECT_TRUE(apart(node("Add", {"x", node("Mul", {"x", "x"})})));
  EXPECT_TRUE(apart(node("Where", {node("Less", {"x", "s"}), "x", "s"})));
  EXPECT_FALSE(apart(node("Add", {"x", zeros({5, 4, 6})}))) << "only a batch of 5 fits";
  // Between [N,1] and [N] each row meets all others.
  const std::string column = node("ReduceSum", {"x", int64s({1, 2})});  // [N,1,1]
  const std::string flat = node("Reshape", {column, int64s({-1})});
  EXPECT_TRUE(apart(flat));
  EXPECT_FALSE(apart(node("Add", {column, flat})));
  EXPECT_EQ(port(node("Mul", {"s", "s"})), Port::kSame);
}

TEST_F(BatchRowsTest, what_works_along_the_batch_mixes) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax", "LpNormalization"}) {
    EXPECT_TRUE(apart(node(op, {"x"}, axis(1)))) << op;
    EXPECT_TRUE(apart(node(op, {"x"}, axis(-1)))) << op;
    EXPECT_FALSE(apart(node(op, {"x"}, axis(0)))) << op;
    EXPECT_NE(mixed_by_.find(op), std::string::npos) << mixed_by_;
  }
  for (const char* op : {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"}) {
    EXPECT_TRUE(apart(node(op, {"x", int64s({2})}))) << op;
    EXPECT_TRUE(apart(node(op, {"x", int64s({1, -1})}, {Attribute::of_int("keepdims", 0)}))) << op;
    EXPECT_FALSE(apart(node(op, {"x", int64s({0})}))) << op;
    EXPECT_FALSE(apart(node(op, {"x", int64s({0, 2})}))) << op;
    EXPECT_FALSE(apart(node(op, {"x"}))) << op << " of all";
  }
  EXPECT_TRUE(apart(node("ArgMax", {"x"}, axis(2))));
  EXPECT_FALSE(apart(node("ArgMax", {"x"}, axis(0))));
  EXPECT_TRUE(apart(node("TopK", {"x", int64s({2})}, axis(1), 2)));
  EXPECT_FALSE(apart(node("TopK", {"x", int64s({1})}, axis(0), 2)));
  EXPECT_TRUE(apart(node("CumSum", {"x", int64s({1})})));
  EXPECT_FALSE(apart(node("CumSum", {"x", int64s({0})})));
  EXPECT_TRUE(apart(node("Concat", {"x", "x"}, axis(1))));
  EXPECT_FALSE(apart(node("Concat", {"x", "x"}, axis(0))));
  EXPECT_TRUE(apart(node("Split", {"x"}, {axis(1)[0], Attribute::of_int("num_outputs", 2)}, 2)));
  EXPECT_FALSE(apart(node("Split", {"x"}, {axis(0)[0], Attribute::of_int("num_outputs", 2)}, 2)));
  EXPECT_TRUE(apart(node("Slice", {"x", int64s({1}), int64s({3}), int64s({1})})));
  EXPECT_FALSE(
      apart(node("Slice", {"x", int64s({-1}), int64s({-1000}), int64s({0}), int64s({-1})})))
      << "backwards";
  EXPECT_TRUE(apart(node("Pad", {"x", int64s({0, 1, 0, 0, 1, 0})})));
  EXPECT_FALSE(apart(node("Pad", {"x", int64s({1, 0, 0, -1, 0, 0})}))) << "moved by one row";
  EXPECT_TRUE(apart(node("Trilu", {"x"})));
  const std::string scale = zeros({6}), rows = zeros({4, 6});
  EXPECT_TRUE(apart(node("LayerNormalization", {"x", scale}, axis(-1))));
  EXPECT_TRUE(apart(node("LayerNormalization", {"x", rows}, axis(1))));
  EXPECT_TRUE(apart(node("LayerNormalization", {"x", rows}, axis(-1))));
  EXPECT_TRUE(apart(node("LayerNormalization", {"x", scale, zeros({1, 4, 1})}, axis(-1))));
  EXPECT_FALSE(apart(node("LayerNormalization", {"x", zeros({3, 1, 6})}, axis(-1))))
      << "a scale of each row of the batch";
  EXPECT_FALSE(apart(node("LayerNormalization", {"x", scale, zeros({3, 1, 1})}, axis(-1))));
}

TEST_F(BatchRowsTest, arithmetic_over_rows_is_named) {
  const struct {
    std::string op, output, how;
  } kCases[] = {
      {"DynamicQuantizeLinear", node("DynamicQuantizeLinear", {"x"}, {}, 3), "range of all rows"},
      {"DynamicQuantizeLinear",
       node("DynamicQuantizeLinear", {node("Transpose", {"x"}, perm({2, 1, 0}))}, {}, 3), "range"},
      {"ReduceMean", node("ReduceMean", {"x", int64s({0})}), "reduces over the batch"},
      {"ReduceMax", node("ReduceMax", {"x"}), "reduces over the batch"},
      {"Softmax", node("Softmax", {"x"}, axis(0)), "along the batch"},
      {"TopK", node("TopK", {"x", int64s({1})}, axis(0), 2), "along the batch"},
      {"LayerNormalization", node("LayerNormalization", {"x", zeros({6})}, axis(0)), "along"},
      {"CumSum", node("CumSum", {"x", int64s({0})}), "adds up along the batch"},
      {"MatMul",
       node("MatMul",
            {node("Transpose", {"x"}, perm({1, 2, 0})), node("Transpose", {"x"}, perm({1, 0, 2}))}),
       "adds up over the batch"},
      {"RandomNormalLike", node("RandomNormalLike", {"x"}), "by the place"},
      {"Einsum", node("Einsum", {"x"}, equation("abc->bc")), "adds up over the batch"},
      {"Einsum", node("Einsum", {zeros({6, 2}), "x"}, equation("cd, abc->bd")),
       "adds up over the batch"},
      {"Unique", node("Unique", {"x"}), "compares the rows"},
      {"Unique", node("Unique", {"x"}, axis(-3)), "compares the rows"},
  };
  for (const auto& c : kCases) {
    const std::string found = mixer(c.output);
    EXPECT_EQ(found.find(c.op), 0u) << c.op << ": " << found;
    EXPECT_NE(found.find(c.how), std::string::npos) << c.op << ": " << found;
  }
  EXPECT_EQ(mixer(node("DynamicQuantizeLinear", {"s"}, {}, 3)), "") << "it has no rows";
  EXPECT_EQ(mixer(node("DynamicQuantizeLinear", {zeros({4, 6})}, {}, 3)), "");
  EXPECT_EQ(mixer(node("ReduceMean", {"x", int64s({1})})), "");
  EXPECT_EQ(mixer(node("Softmax", {"x"}, axis(-1))), "");
  EXPECT_EQ(mixer(node("MatMul", {"x", zeros({6, 3})})), "");
  EXPECT_EQ(mixer(node("Einsum", {"x", zeros({6, 2})}, equation("abc,cd"))), "") << "to abd";
  EXPECT_EQ(mixer(node("Einsum", {"x"}, equation("...c->..."))), "") << "not known to";
  EXPECT_EQ(mixer(node("Unique", {"x"}, axis(1))), "") << "not known to";
  EXPECT_EQ(mixer(node("NonZero", {"x"})), "") << "not known to";
}

TEST_F(BatchRowsTest, movement_is_followed) {
  const std::string turned = node("Transpose", {"x"}, perm({1, 0, 2}));
  EXPECT_EQ(port(turned), Port::kMixed) << "the batch is not in front";
  EXPECT_TRUE(apart(node("Transpose", {node("Softmax", {turned}, axis(0))}, perm({1, 0, 2}))));
  EXPECT_FALSE(apart(node("Transpose", {node("Softmax", {turned}, axis(1))}, perm({1, 0, 2}))));
  EXPECT_FALSE(apart(node("Reshape", {turned, int64s({-1, 24})}))) << "rows lie apart in it";
  const std::string joined = node("Reshape", {"x", int64s({-1, 6})});  // [4N, 6]
  EXPECT_TRUE(apart(joined)) << "four rows for each";
  EXPECT_TRUE(apart(node("Reshape", {node("Relu", {joined}), int64s({-1, 4, 6})})));
  EXPECT_FALSE(apart(node("Softmax", {joined}, axis(0))));
  EXPECT_TRUE(apart(node("Flatten", {"x"}, axis(1))));
  EXPECT_TRUE(apart(node("Squeeze", {node("Unsqueeze", {"x", int64s({1})}), int64s({1})})));
  EXPECT_EQ(port(node("Unsqueeze", {"x", int64s({0})})), Port::kMixed);
  const std::string indices =
      graph_->at(graph_->add_constant("i", Tensor::of_int64({2, 0}).take())).name;
  EXPECT_TRUE(apart(node("Gather", {"x", indices}, axis(1))));
  EXPECT_FALSE(apart(node("Gather", {"x", indices}, axis(0))));
  input("ids", {symbol("N"), 3}, PFRT_DTYPE_INT64);
  EXPECT_TRUE(apart(node("Gather", {"s", "ids"}, axis(0)))) << "an embedding";
  EXPECT_FALSE(apart(node("Gather", {"x", "ids"}, axis(0))));
}

TEST_F(BatchRowsTest, products_keep_rows_of_one_side) {
  const std::string w = zeros({6, 5});
  EXPECT_TRUE(apart(node("MatMul", {"x", w})));
  const std::string other = node("Transpose", {"x"}, perm({0, 2, 1}));
  EXPECT_TRUE(apart(node("MatMul", {"x", other})));
  const std::string two = node("ReduceSum", {"x", int64s({1})}, {Attribute::of_int("keepdims", 0)});
  EXPECT_TRUE(apart(node("MatMul", {two, w})));
  EXPECT_FALSE(apart(node("MatMul", {two, node("Transpose", {two}, perm({1, 0}))})))
      << "every row with every other";
  EXPECT_FALSE(apart(node("MatMul", {node("Transpose", {two}, perm({1, 0})), two})))
      << "a sum over rows";
  EXPECT_TRUE(apart(node("Gemm", {two, w, zeros({5})})));
  EXPECT_FALSE(apart(node("Gemm", {two, two}, {Attribute::of_int("transA", 1)})));
  EXPECT_FALSE(apart(node("Gemm", {two, two}, {Attribute::of_int("transB", 1)})));
}

TEST_F(BatchRowsTest, images_and_sequences) {
  input("image", {symbol("N"), 3, symbol("H"), symbol("W")});
  const std::string y = node("Conv", {"image", zeros({8, 3, 3, 3}), zeros({8})});
  EXPECT_TRUE(apart(y));
  EXPECT_TRUE(apart(node("GlobalAveragePool", {y})));
  EXPECT_TRUE(
      apart(node("BatchNormalization", {y, zeros({8}), zeros({8}), zeros({8}), zeros({8})})));
  const Attribute trains = Attribute::of_int("training_mode", 1);
  EXPECT_FALSE(apart(node("BatchNormalization", {y, zeros({8}), zeros({8}), zeros({8}), zeros({8})},
                          {trains}, 3)));
  EXPECT_FALSE(apart(
      node("Conv", {"image", node("Slice", {"image", int64s({0}), int64s({1}), int64s({0})})})))
      << "a kernel made of the batch";
  const std::string steps = node("Transpose", {"x"}, perm({1, 0, 2}));
  const Attribute hidden = Attribute::of_int("hidden_size", 2);
  const std::string last = node("GRU", {steps, zeros({1, 6, 6}), zeros({1, 6, 2})}, {hidden}, 2);
  EXPECT_TRUE(apart(node("Transpose", {last}, perm({2, 0, 1, 3}))));
  EXPECT_FALSE(
      apart(node("Transpose", {node("GRU", {"x", zeros({1, 6, 6}), zeros({1, 6, 2})}, {hidden}, 2)},
                 perm({2, 0, 1, 3}))))
      << "steps of one sequence";
}

TEST_F(BatchRowsTest, sizes_of_the_batch_may_shape_but_not_count) {
  const std::string shape = node("Shape", {"x"});
  const std::string n = node("Gather", {shape, int64s({0})}, axis(0));
  const std::string target = node("Concat", {n, int64s({24})}, axis(0));
  EXPECT_TRUE(apart(node("Reshape", {"x", target})));
  EXPECT_TRUE(apart(node("Add", {"x", node("ConstantOfShape", {shape})})));
  EXPECT_TRUE(apart(node("Add", {"x", node("Expand", {"s", shape})})));
  const std::string mean = node("Cast", {n}, {Attribute::of_int("to", PFRT_DTYPE_FLOAT32)});
  EXPECT_FALSE(apart(node("Div", {"x", mean}))) << "divided by how many there are";
  const std::string four = node("Gather", {shape, int64s({1})}, axis(0));
  EXPECT_TRUE(apart(
      node("Div", {"x", node("Cast", {four}, {Attribute::of_int("to", PFRT_DTYPE_FLOAT32)})})));
}

TEST_F(BatchRowsTest, unknown_is_not_apart) {
  EXPECT_FALSE(apart(node("NonZero", {"x"})));
  EXPECT_FALSE(apart(node("Unique", {"x"})));
  EXPECT_FALSE(apart(node("RandomNormalLike", {"x"})));
  EXPECT_TRUE(apart(node("Dropout", {"x"})));
  const std::string yes =
      graph_
          ->at(graph_->add_constant("yes",
                                    [] {
                                      Tensor t = Tensor::allocate(PFRT_DTYPE_BOOL, {}).take();
                                      *t.as<uint8_t>() = 1;
                                      return t;
                                    }()))
          .name;
  EXPECT_FALSE(apart(node("Dropout", {"x", "", yes}))) << "in training";
  EXPECT_FALSE(apart(node("DynamicQuantizeLinear", {"x"}, {}, 3))) << "a scale for all";
  EXPECT_NE(mixed_by_.find("DynamicQuantizeLinear"), std::string::npos) << mixed_by_;
  input("square", {symbol("N"), symbol("N")});
  EXPECT_FALSE(apart(node("Relu", {"square"})));
  EXPECT_TRUE(apart(node("Relu", {"x"}))) << "beside it";
  Graph fixed;
  fixed.inputs = {fixed.value("x")};
  fixed.at(fixed.inputs[0]).type = Type::tensor(PFRT_DTYPE_FLOAT32, {8, 3});
  fixed.outputs = fixed.inputs;
  EXPECT_EQ(batch_rows(fixed).status().code(), Code::kNOT_FOUND);
}

TEST(Blocks, that_a_planner_placed_are_checked) {
  std::vector<BlockItem> items{
      {100, 64, 0, 1, 0, "a"}, {100, 64, 1, 2, 128, "b"}, {0, 64, 0, 9, 0}};
  EXPECT_TRUE(check_placed(items, 228).ok());
  const auto says = [&](uint64_t bytes, std::initializer_list<std::string_view> parts) {
    const Status status = check_placed(items, bytes);
    EXPECT_EQ(status.code(), Code::kINVALID_ARGUMENT);
    for (const std::string_view part : parts)
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  says(227, {"item 1 ('b', 100 bytes of steps 1 to 2) at 128", "227 bytes"});
  items[1].offset = 32;
  says(500, {"'b'", "no multiple of 64"});
  items[1].offset = 64;
  says(500, {"'b'", "'a'", "overlap"});
  items[1].first = 2;
  EXPECT_TRUE(check_placed(items, 500).ok()) << "one after the other";
  items[1].offset = UINT64_MAX - 63;
  says(500, {"'b'", "not inside"});
  says(UINT64_MAX, {"more than there can be"});
}

}  // namespace
}  // namespace pfrt
