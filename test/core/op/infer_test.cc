// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/infer.h"

#include <gtest/gtest.h>

#include "core/ir/verify.h"
#include "core/op/engine/canonicalise.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/knowable.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "test/core/op/dtypes.h"

namespace pfrt {
namespace {

// A graph of one opset; nodes are added by names, the output is the last node's first.
class OpTest : public testing::Test {
 protected:
  void start(int64_t opset) {
    graph = std::make_shared<Graph>("g");
    graph->opsets[""] = opset;
  }
  ValueId input(const std::string& name, pfrt_dtype dtype, Shape shape) {
    const ValueId id = graph->value(name);
    graph->at(id).type = Type::tensor(dtype, std::move(shape));
    graph->inputs.push_back(id);
    return id;
  }
  void constant(const std::string& name, Tensor tensor) {
    graph->set_constant(graph->value(name), Value::of(std::move(tensor)));
  }
  void node(std::string op, std::vector<std::string> inputs, std::vector<std::string> outputs,
            std::vector<Attribute> attrs = {}) {
    Node n;
    n.op = std::move(op);
    n.name = "node";
    for (const auto& name : inputs) n.inputs.push_back(graph->value(name));
    for (const auto& name : outputs) n.outputs.push_back(graph->value(name));
    n.attrs = std::move(attrs);
    ASSERT_TRUE(graph->add_node(std::move(n)).ok());
    graph->outputs = {graph->find(outputs[0])};
  }
  Status run() {
    Status status = canonicalise(*graph);
    if (status.ok()) {
      EXPECT_TRUE(verify(*graph).ok()) << verify(*graph).message();
    }
    return status;
  }
  void run_ok() {
    const Status status = run();
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::string type(const std::string& name) const {
    return type_text(graph->at(graph->find(name)).type, *graph->symbols);
  }
  // Returns the only node with this operator.
  const Node* find(const std::string& op) const {
    const Node* found = nullptr;
    for (NodeId id : graph->node_ids())
      if (graph->node(id)->op == op) {
        EXPECT_EQ(found, nullptr) << "two of " << op;
        found = graph->node(id);
      }
    return found;
  }
  std::vector<int64_t> numbers(const Node& n, size_t i) const {
    if (!n.has_input(i) || !graph->constant(n.inputs[i])) return {-999};
    return to_int64s(*graph->constant(n.inputs[i]));
  }
  float real(const Node& n, size_t i) const {
    if (!n.has_input(i) || !graph->constant(n.inputs[i])) return -999;
    return *graph->constant(n.inputs[i])->as<float>();
  }
  Dim symbol(const char* name) { return graph->symbols->symbol(name); }

  std::shared_ptr<Graph> graph;
};

using Canonicalise = OpTest;

TEST_F(Canonicalise, add_with_a_broadcast_axis_becomes_numpy_broadcasting) {
  start(6);
  input("a", kFloat, {2, 3, 4, 5});
  input("b", kFloat, {3, 4});
  node("Add", {"a", "b"}, {"y"}, {Attribute::of_int("broadcast", 1), Attribute::of_int("axis", 1)});
  run_ok();
  EXPECT_EQ(type("y"), "float32[2,3,4,5]");
  const Node* add = find("Add");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(add->attr("axis"), nullptr);
  EXPECT_EQ(add->attr("broadcast"), nullptr);
  EXPECT_EQ(type(graph->at(add->inputs[1]).name), "float32[3,4,1]");
}

TEST_F(Canonicalise, old_softmax_flattens_and_new_softmax_does_not) {
  for (const int64_t opset : {11, 13}) {
    SCOPED_TRACE(opset);
    start(opset);
    input("x", kFloat, {2, 3, 4});
    node("Softmax", {"x"}, {"y"}, {Attribute::of_int("axis", 1)});
    run_ok();
    EXPECT_EQ(type("y"), "float32[2,3,4]");
    const Node* softmax = find("Softmax");
    ASSERT_NE(softmax, nullptr);
    const Type& in = graph->at(softmax->inputs[0]).type;
    const int64_t axis = softmax->attr_int("axis", -1);
    // The old operator took the rest as a row, so it becomes one along an axis of 12; the new one
    // has an axis of 3.
    ASSERT_LT(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(in.shape.size()) : axis),
              in.shape.size());
    const auto at = axis < 0 ? axis + static_cast<int64_t>(in.shape.size()) : axis;
    EXPECT_TRUE(in.shape[static_cast<size_t>(at)].is(opset == 11 ? 12 : 3));
  }
}

TEST_F(Canonicalise, squeeze_axes_become_an_input) {
  start(11);
  input("x", kFloat, {1, 3, 1});
  node("Squeeze", {"x"}, {"y"}, {Attribute::of_ints("axes", {-1})});
  run_ok();
  EXPECT_EQ(type("y"), "float32[1,3]");
  const Node* squeeze = find("Squeeze");
  ASSERT_NE(squeeze, nullptr);
  EXPECT_EQ(numbers(*squeeze, 1), std::vector<int64_t>{2});
  EXPECT_EQ(squeeze->attr("axes"), nullptr);
}

TEST_F(Canonicalise, unsqueeze_axes_become_an_input) {
  start(11);
  input("x", kFloat, {3});
  node("Unsqueeze", {"x"}, {"y"}, {Attribute::of_ints("axes", {0, 2})});
  run_ok();
  EXPECT_EQ(type("y"), "float32[1,3,1]");
  EXPECT_EQ(numbers(*find("Unsqueeze"), 1), (std::vector<int64_t>{0, 2}));
}

// Adding the rank to -4 twice would make it the last axis of rank 3.
TEST_F(Canonicalise, axes_before_the_first_are_refused) {
  for (const char* op : {"Unsqueeze", "CenterCropPad"}) {
    start(18);
    input("x", kFloat, {1, 2, 3});
    const bool unsqueeze = std::string_view(op) == "Unsqueeze";
    constant("numbers", Tensor::of_int64({unsqueeze ? -5 : 2}).take());
    node(op, {"x", "numbers"}, {"y"},
         unsqueeze ? std::vector<Attribute>{}
                   : std::vector<Attribute>{Attribute::of_ints("axes", {-4})});
    const Status status = canonicalise(*graph);
    EXPECT_FALSE(status.ok()) << op;
  }
}

TEST_F(Canonicalise, clip_limits_become_inputs) {
  start(6);
  input("x", kFloat, {3});
  node("Clip", {"x"}, {"y"}, {Attribute::of_float("min", -1.5f), Attribute::of_float("max", 2.5f)});
  run_ok();
  const Node* clip = find("Clip");
  ASSERT_NE(clip, nullptr);
  EXPECT_EQ(real(*clip, 1), -1.5f);
  EXPECT_EQ(real(*clip, 2), 2.5f);
  EXPECT_EQ(clip->attr("min"), nullptr);
}

TEST_F(Canonicalise, reduction_axes_become_an_input) {
  start(11);
  input("x", kFloat, {2, 3, 4});
  node("ReduceMean", {"x"}, {"y"},
       {Attribute::of_ints("axes", {-1, 0}), Attribute::of_int("keepdims", 0)});
  run_ok();
  EXPECT_EQ(type("y"), "float32[3]");
  EXPECT_EQ(find("ReduceMean")->attr("axes"), nullptr);
}

TEST_F(Canonicalise, old_batch_normalizations_have_the_inference_form) {
  for (const int64_t opset : {1, 6, 7, 9, 14, 15}) {
    SCOPED_TRACE(opset);
    start(opset);
    input("x", kFloat, {symbol("N"), 4, 8, 8});
    for (const char* name : {"s", "b", "m", "v"})
      constant(name, Tensor::of_float({1, 1, 1, 1}).take());
    std::vector<Attribute> attrs;
    if (opset == 1) attrs.push_back(Attribute::of_ints("consumed_inputs", {0, 0, 0, 1, 1}));
    if (opset < 7) attrs.push_back(Attribute::of_int("is_test", 1));
    if (opset < 9) attrs.push_back(Attribute::of_int("spatial", 1));
    node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, attrs);
    run_ok();
    EXPECT_EQ(type("y"), "float32[N,4,8,8]");
    const Node* norm = find("BatchNormalization");
    ASSERT_NE(norm, nullptr);
    for (const char* gone : {"consumed_inputs", "is_test", "spatial"})
      EXPECT_EQ(norm->attr(gone), nullptr) << gone;
    EXPECT_EQ(norm->inputs.size(), 5u);
  }
}

// With spatial = 0 there are statistics for every element of an image.
TEST_F(Canonicalise, batch_normalization_by_position_goes_over_flat_images) {
  for (const int64_t length : {4 * 8 * 8, 4}) {
    SCOPED_TRACE(length);
    start(7);
    input("x", kFloat, {2, 4, 8, 8});
    for (const char* name : {"s", "b", "m", "v"})
      constant(name, Tensor::of_float(std::vector<float>(static_cast<size_t>(length), 1)).take());
    node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {Attribute::of_int("spatial", 0)});
    if (length == 4) {
      const Status status = run();
      EXPECT_NE(status.message().find("shape [4], expected [256]"), std::string::npos)
          << status.message();
      continue;
    }
    run_ok();
    EXPECT_EQ(type("y"), "float32[2,4,8,8]");
    ASSERT_NE(find("BatchNormalization"), nullptr);
    EXPECT_NE(find("Flatten"), nullptr);
  }
}

TEST_F(Canonicalise, upsample_becomes_resize) {
  for (const int64_t opset : {7, 9}) {
    SCOPED_TRACE(opset);
    start(opset);
    input("x", kFloat, {1, 1, 4, 4});
    if (opset == 7) {
      node("Upsample", {"x"}, {"y"}, {Attribute::of_floats("scales", {1, 1, 2, 3})});
    } else {
      constant("scales", Tensor::of_float({1, 1, 2, 3}).take());
      node("Upsample", {"x", "scales"}, {"y"}, {Attribute::of_string("mode", "linear")});
    }
    run_ok();
    EXPECT_EQ(type("y"), "float32[1,1,8,12]");
    EXPECT_NE(find("Resize"), nullptr);
    EXPECT_EQ(find("Upsample"), nullptr);
  }
}

TEST_F(Canonicalise, automatic_padding_becomes_pads_where_sizes_are_known) {
  start(17);
  input("x", kFloat, {1, 1, 7, 8});
  constant("w", Tensor::allocate(kFloat, {1, 1, 3, 3}).take());
  node("Conv", {"x", "w"}, {"y"},
       {Attribute::of_string("auto_pad", "SAME_UPPER"), Attribute::of_ints("strides", {2, 2})});
  run_ok();
  EXPECT_EQ(type("y"), "float32[1,1,4,4]");
  const Node* conv = find("Conv");
  ASSERT_NE(conv->attr_ints("pads"), nullptr);
  EXPECT_EQ(*conv->attr_ints("pads"), (std::vector<int64_t>{1, 0, 1, 1}));
}

TEST_F(Canonicalise, windows_beyond_the_end_count_by_less_than_a_stride_when_rounded_up) {
  const auto positions = [this](int64_t size, int64_t kernel, int64_t stride) -> std::string {
    start(22);
    input("x", kFloat, {1, 1, size});
    node("MaxPool", {"x"}, {"y"},
         {Attribute::of_ints("kernel_shape", {kernel}), Attribute::of_ints("strides", {stride}),
          Attribute::of_int("ceil_mode", 1)});
    return run().ok() ? type("y") : "refused";
  };
  EXPECT_EQ(positions(2, 3, 2), "float32[1,1,1]");
  EXPECT_EQ(positions(2, 4, 3), "float32[1,1,1]");
  EXPECT_EQ(positions(5, 3, 2), "float32[1,1,2]");
  EXPECT_EQ(positions(6, 3, 2), "float32[1,1,3]");
  EXPECT_EQ(positions(1, 3, 2), "refused");  // no window starts where one could end
  EXPECT_EQ(positions(2, 3, 1), "refused");
}

TEST_F(Canonicalise, a_transposed_convolution_of_nothing_is_as_large_as_its_kernel_leaves) {
  start(11);
  input("x", kFloat, {1, 1, 0, 3});
  input("w", kFloat, {1, 2, 3, 3});
  node("ConvTranspose", {"x", "w"}, {"y"});
  run_ok();
  EXPECT_EQ(type("y"), "float32[1,2,2,5]");
}

TEST_F(Canonicalise, automatic_padding_stays_where_sizes_are_symbols) {
  start(17);
  input("x", kFloat, {1, 1, symbol("H"), symbol("W")});
  constant("w", Tensor::allocate(kFloat, {1, 1, 3, 3}).take());
  node("Conv", {"x", "w"}, {"y"},
       {Attribute::of_string("auto_pad", "SAME_UPPER"), Attribute::of_ints("strides", {2, 2})});
  run_ok();
  EXPECT_EQ(find("Conv")->attr_string("auto_pad", ""), "SAME_UPPER");
}

TEST_F(Canonicalise, constant_nodes_become_initializers) {
  start(13);
  node("Constant", {}, {"k"}, {Attribute::of_ints("value_ints", {1, 2})});
  input("x", kInt64, {2});
  node("Add", {"x", "k"}, {"y"});
  run_ok();
  EXPECT_EQ(find("Constant"), nullptr);
  ASSERT_NE(graph->constant(graph->find("k")), nullptr);
  EXPECT_EQ(to_int64s(*graph->constant(graph->find("k"))), (std::vector<int64_t>{1, 2}));
}

TEST_F(Canonicalise, twice_changes_nothing) {
  start(6);
  input("a", kFloat, {2, 3, 4});
  input("b", kFloat, {3});
  node("Add", {"a", "b"}, {"c"}, {Attribute::of_int("broadcast", 1), Attribute::of_int("axis", 1)});
  node("Clip", {"c"}, {"y"}, {Attribute::of_float("min", 0)});
  run_ok();
  const std::string once = print(*graph);
  run_ok();
  EXPECT_EQ(print(*graph), once);
}

using Infer = OpTest;

// Exporters cut a table of positions so. The sum is valid only where no dimension is broadcast.
TEST_F(Infer, a_table_cut_to_a_length_has_that_length_in_a_sum) {
  start(17);
  input("x", PFRT_DTYPE_FLOAT32, {symbol("N")});
  input("table", PFRT_DTYPE_FLOAT32, {64});
  constant("zero", Tensor::of_int64({0}).take());
  node("Shape", {"x"}, {"length"});
  node("Slice", {"table", "zero", "length"}, {"cut"});
  node("Add", {"cut", "x"}, {"y"});
  run_ok();
  EXPECT_EQ(type("cut"), "float32[(64 min N)]");
  EXPECT_EQ(type("y"), "float32[N]");
}

TEST_F(Infer, dimension_names_go_through_a_network) {
  start(17);
  input("x", kFloat, {symbol("N"), 3, symbol("H"), 32});
  constant("w", Tensor::allocate(kFloat, {8, 3, 3, 3}).take());
  constant("f", Tensor::allocate(kFloat, {10, 5}).take());
  node("Conv", {"x", "w"}, {"c"}, {Attribute::of_ints("pads", {1, 1, 1, 1})});
  node("GlobalAveragePool", {"c"}, {"g"});
  node("Concat", {"g", "g"}, {"cc"}, {Attribute::of_int("axis", 1)});
  run_ok();
  EXPECT_EQ(type("c"), "float32[N,8,H,32]");
  EXPECT_EQ(type("g"), "float32[N,8,1,1]");
  EXPECT_EQ(type("cc"), "float32[N,16,1,1]");
}

TEST_F(Infer, shape_arithmetic_keeps_symbols) {
  start(17);
  input("x", kFloat, {symbol("N"), 4, 6});
  node("Shape", {"x"}, {"s"});
  constant("zero", Tensor::scalar_int64(0).take());
  constant("axes", Tensor::of_int64({0}).take());
  constant("rest", Tensor::of_int64({-1}).take());
  node("Gather", {"s", "zero"}, {"n"});
  node("Unsqueeze", {"n", "axes"}, {"n1"});
  node("Concat", {"n1", "rest"}, {"target"}, {Attribute::of_int("axis", 0)});
  node("Reshape", {"x", "target"}, {"y"});
  run_ok();
  EXPECT_EQ(type("s"), "int64[3]");
  EXPECT_EQ(type("y"), "float32[N,24]");
}

TEST_F(Infer, contradiction_names_the_node_and_the_sizes) {
  start(17);
  input("a", kFloat, {2, 3});
  input("b", kFloat, {4, 5});
  node("MatMul", {"a", "b"}, {"y"});
  const Status status = run();
  EXPECT_EQ(status.code(), Code::kSHAPE_MISMATCH);
  for (const char* part : {"MatMul", "'node'", "3", "4"})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST_F(Infer, broadcasting_takes_the_number_where_one_side_is_a_symbol) {
  start(17);
  input("a", kFloat, {symbol("N"), 1});
  input("b", kFloat, {4, symbol("M")});
  node("Mul", {"a", "b"}, {"y"});
  run_ok();
  EXPECT_EQ(type("y"), "float32[4,M]");
}

TEST_F(Infer, knowable_tells_shapes_from_contents) {
  start(17);
  input("x", kFloat, {symbol("N"), 4});
  input("shape", kInt64, {2});
  node("Shape", {"x"}, {"s"});
  node("NonZero", {"x"}, {"where"});
  node("Reshape", {"x", "shape"}, {"r"});
  node("Reshape", {"x", "s"}, {"same"});
  node("Neg", {"where"}, {"after"});
  run_ok();
  const auto order = graph->topological_order();
  ASSERT_TRUE(order.ok());
  const Knowable known = knowable(*graph, order.value());
  EXPECT_TRUE(known.data[graph->find("s")]);
  EXPECT_TRUE(known.dims[graph->find("same")]);
  EXPECT_FALSE(known.dims[graph->find("where")]);
  EXPECT_FALSE(known.dims[graph->find("after")]);
  EXPECT_FALSE(known.data[graph->find("shape")]);
  EXPECT_FALSE(known.dims[graph->find("r")]);
}

TEST_F(Infer, numbers_of_a_run_replace_symbols) {
  start(17);
  const ValueId x = input("x", kFloat, {symbol("N"), 4});
  node("Flatten", {"x"}, {"y"}, {Attribute::of_int("axis", 0)});
  run_ok();
  const auto order = graph->topological_order();
  InferState state = initial_state(*graph);
  state.types[x] = Type::tensor(kFloat, {5, 4});
  ASSERT_TRUE(infer(*graph, order.value(), state).ok());
  EXPECT_EQ(type_text(state.types[graph->find("y")], *graph->symbols), "float32[1,20]");
}

// An input of [4, 3] must not be taken for [3, 4], which would fit the coefficients.
TEST_F(Infer, a_linear_models_input_keeps_its_rows) {
  start(17);
  graph->opsets["ai.onnx.ml"] = 3;
  const ValueId x = graph->value("x");
  graph->at(x).type = Type::tensor(kFloat);
  graph->inputs.push_back(x);
  Node regressor;
  regressor.op = "LinearRegressor";
  regressor.domain = "ai.onnx.ml";
  regressor.inputs = {x};
  regressor.outputs = {graph->value("y")};
  regressor.attrs = {Attribute::of_floats("coefficients", {1, 2, 3, 4})};
  ASSERT_TRUE(graph->add_node(std::move(regressor)).ok());
  graph->outputs = {graph->find("y")};
  run_ok();
  const auto order = graph->topological_order();
  for (const auto& [shape, fits] : std::vector<std::pair<Shape, bool>>{
           {{4, 3}, false}, {{3, 4}, true}, {{4}, true}, {{3}, false}}) {
    InferState state = initial_state(*graph);
    state.types[x] = Type::tensor(kFloat, shape);
    EXPECT_EQ(infer(*graph, order.value(), state).ok(), fits) << shape.size();
  }
}

// An axis below the first, counted from the front, must not pass for one that counts from the end.
TEST_F(Infer, an_axis_before_the_first_is_refused) {
  struct {
    const char* op;
    int inputs;
  } const kOps[] = {{"Flatten", 1}, {"Softmax", 1},        {"LogSoftmax", 1},     {"Hardmax", 1},
                    {"ArgMax", 1},  {"Concat", 2},         {"Split", 1},          {"Gather", 2},
                    {"TopK", 2},    {"GatherElements", 2}, {"ScatterElements", 3}};
  for (const auto& [op, inputs] : kOps)
    for (int64_t rank = 1; rank <= 3; ++rank)
      for (int64_t axis = -2 * rank; axis <= -rank; ++axis) {
        start(17);
        const Shape shape(static_cast<size_t>(rank), Dim(2));
        std::vector<std::string> names;
        for (int i = 0; i < inputs; ++i) {
          names.push_back("i" + std::to_string(i));
          const bool index = i == 1 && inputs > 1 && std::string_view(op) != "Concat";
          input(names.back(), index ? pfrt_dtype{PFRT_DTYPE_INT64} : kFloat, shape);
        }
        if (std::string_view(op) == "TopK") constant("i1", Tensor::of_int64({1}).take());
        const bool two = std::string_view(op) == "TopK" || std::string_view(op) == "Split";
        std::vector<std::string> results{"y"};
        if (two) results.push_back("z");
        node(op, names, results, {Attribute::of_int("axis", axis)});
        EXPECT_EQ(run().ok(), axis == -rank) << op << " of rank " << rank << " by axis " << axis;
      }
}

// A model may contain odd ranks, axes and sizes: each must get an answer, whichever it is.
TEST_F(Infer, odd_parameters_are_answered) {
  const std::vector<Shape> shapes = {
      {}, {0}, {1}, {2, 3}, {0, 3, 4}, {2, 3, 4, 5}, {1, 1, 1, 1, 1}};
  const std::vector<int64_t> odd = {0, 1, -1, 3, -7, 64, INT64_MAX, INT64_MIN};
  size_t answered = 0;
  for (const std::span<const OperatorDef>& family : operators()) {
    for (const OperatorDef& def : family) {
      if (!def.domain.empty() || (def.flags & kOpHost) != 0) continue;
      for (const Shape& shape : shapes) {
        for (const int64_t value : odd) {
          start(def.until ? def.until : newest_opset(""));
          const int count =
              std::max(def.min_inputs, 1) + (def.max_inputs != def.min_inputs ? 1 : 0);
          std::vector<std::string> inputs;
          for (int i = 0; i < count && (def.max_inputs < 0 || i < def.max_inputs); ++i) {
            inputs.push_back("i" + std::to_string(i));
            if (i > 0 && (def.shape_inputs >> i & 1u))
              constant(inputs.back(), Tensor::of_int64({value, value}).take());
            else
              input(inputs.back(), i > 0 && i % 2 ? kInt64 : kFloat, shape);
          }
          std::vector<std::string> outputs;
          for (int i = 0; i < std::max(def.min_outputs, 1); ++i)
            outputs.push_back("o" + std::to_string(i));
          std::vector<Attribute> attrs;
          for (const char* name : {"axis", "group", "keepdims", "block_size", "blocksize", "k",
                                   "to", "batch_axis", "time_axis", "hidden_size", "num_outputs"})
            attrs.push_back(Attribute::of_int(name, value));
          for (const char* name : {"axes", "pads", "strides", "dilations", "kernel_shape", "perm",
                                   "split", "starts", "ends", "output_shape"})
            attrs.push_back(Attribute::of_ints(name, {value, value}));
          node(std::string(def.name), inputs, outputs, attrs);
          const Status status = canonicalise(*graph);
          EXPECT_NE(status.code(), Code::kINTERNAL) << def.name << ": " << status.message();
          ++answered;
        }
      }
    }
  }
  EXPECT_GT(answered, 5000u);
}

}  // namespace
}  // namespace pfrt
