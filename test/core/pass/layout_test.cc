// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "core/ir/verify.h"
#include "core/op/engine/canonicalise.h"
#include "core/pass/engine/passes.h"

namespace pfrt {
namespace {

// Two convolutions in NCHW, with an activation and a pooling.
class LayoutTest : public testing::Test {
 protected:
  void SetUp() override {
    graph->opsets[""] = 17;
    const ValueId x = graph->value("x");
    graph->at(x).type = Type::tensor(PFRT_DTYPE_FLOAT32, {2, 3, 8, 9});
    graph->inputs = {x};
  }
  void node(const std::string& op, const std::vector<std::string>& inputs, const std::string& out,
            std::vector<Attribute> attrs = {}) {
    Node made;
    made.op = op;
    made.name = out;
    for (const std::string& in : inputs) made.inputs.push_back(graph->value(in));
    made.outputs = {graph->value(out)};
    made.attrs = std::move(attrs);
    ASSERT_TRUE(graph->add_node(std::move(made)).ok());
    graph->outputs = {graph->find(out)};
  }
  void conv(const std::string& in, const std::string& out, int64_t from, int64_t to) {
    const std::string weights = out + "_w";
    graph->set_constant(graph->value(weights),
                        Value::of(*Tensor::allocate(PFRT_DTYPE_FLOAT32, {to, from, 3, 3})));
    node("Conv", {in, weights}, out);
  }
  void network() {
    conv("x", "c1", 3, 4);
    node("Relu", {"c1"}, "r");
    conv("r", "c2", 4, 5);
    node("MaxPool", {"c2"}, "y", {Attribute::of_ints("kernel_shape", {2, 2})});
  }
  PassResult run(const LayoutConfig& config) {
    EXPECT_TRUE(canonicalise(*graph).ok());
    PassResult result;
    context.gate.begin("LayoutOptimizationPass");
    const Status status = layout_pass(config)->run(graph, context, result);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(verify(*graph).ok());
    return result;
  }
  std::string ops() const {
    std::string out;
    auto order = graph->topological_order();
    for (NodeId id : *order) out += (out.empty() ? "" : ", ") + graph->node(id)->op;
    return out;
  }
  // Makes the provider support the operators of |domain| and ai.onnx.
  void provider_with(const std::string& domain) {
    context.refuses = [domain](const Graph&, const Node& node, std::span<const Node* const>,
                               std::string_view) -> std::string {
      return node.domain.empty() || node.domain == domain ? "" : "no kernel for " + node.op;
    };
  }
  std::shared_ptr<Graph> graph = std::make_shared<Graph>("g");
  PassContext context;
  LayoutConfig nhwc{Layout::kNhwc, true, true, ""};
};

TEST_F(LayoutTest, channels_last_where_the_provider_has_them) {
  network();
  provider_with("com.microsoft");
  const PassResult result = run(nhwc);
  EXPECT_EQ(ops(), "Transpose, NhwcConv, Relu, NhwcConv, NhwcMaxPool, Transpose");
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_EQ(graph->at(graph->outputs[0]).name, "y");
  EXPECT_EQ(type_text(graph->at(graph->outputs[0]).type, *graph->symbols), "float32[2,5,3,4]");
  EXPECT_EQ(result.stats.rules.at("ChannelsLast"), 3u);
}

TEST_F(LayoutTest, channels_first_with_a_warning_where_it_does_not) {
  network();
  provider_with("");
  const PassResult result = run(nhwc);
  EXPECT_EQ(ops(), "Conv, Relu, Conv, MaxPool");
  ASSERT_EQ(result.warnings.size(), 2u);
  EXPECT_NE(result.warnings[0].find("no kernel for NhwcConv"), std::string::npos);
  EXPECT_FALSE(result.modified);
}

TEST_F(LayoutTest, without_transposes_only_what_stands_between_them) {
  network();
  provider_with("com.microsoft");
  nhwc.insert_transposes = false;
  const PassResult result = run(nhwc);
  EXPECT_EQ(ops(), "Conv, Relu, Conv, MaxPool");
  EXPECT_FALSE(result.warnings.empty());
}

TEST_F(LayoutTest, without_transposes_an_island_takes_its_form) {
  graph->at(graph->inputs[0]).type = Type::tensor(PFRT_DTYPE_FLOAT32, {2, 8, 9, 3});
  node("Transpose", {"x"}, "first", {Attribute::of_ints("perm", {0, 3, 1, 2})});
  conv("first", "c", 3, 4);
  node("Transpose", {"c"}, "y", {Attribute::of_ints("perm", {0, 2, 3, 1})});
  provider_with("com.microsoft");
  nhwc.insert_transposes = false;
  run(nhwc);
  EXPECT_EQ(ops(), "NhwcConv");
}

TEST_F(LayoutTest, not_propagated_each_keeps_its_transposes) {
  network();
  provider_with("com.microsoft");
  nhwc.propagate_layout = false;
  run(nhwc);
  EXPECT_EQ(ops(),
            "Transpose, NhwcConv, Transpose, Relu, Transpose, NhwcConv, NhwcMaxPool, Transpose");
}

TEST_F(LayoutTest, blocks_of_four_are_refused_in_words) {
  network();
  provider_with("com.microsoft");
  ASSERT_TRUE(canonicalise(*graph).ok());
  PassResult result;
  const Status status = layout_pass({Layout::kNc4hw4, true, true, ""})->run(graph, context, result);
  EXPECT_EQ(status.code(), Code::kUNSUPPORTED);
  EXPECT_NE(status.message().find("conv_layout NC4HW4: no operator takes"), std::string::npos);
  EXPECT_FALSE(result.modified);
  EXPECT_EQ(ops(), "Conv, Relu, Conv, MaxPool");
}

TEST_F(LayoutTest, transposes_that_would_only_change_places_stay_without_insertion) {
  for (const bool insert : {true, false}) {
    graph = std::make_shared<Graph>("g");
    SetUp();
    node("Transpose", {"x"}, "t", {Attribute::of_ints("perm", {0, 2, 3, 1})});
    node("ReduceMax", {"t"}, "y", {Attribute::of_ints("axes", {3})});
    run({Layout::kNchw, insert, true, ""});
    EXPECT_EQ(ops(), insert ? "ReduceMax, Reshape" : "Transpose, ReduceMax");
  }
}

}  // namespace
}  // namespace pfrt
