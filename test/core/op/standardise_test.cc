// SPDX-License-Identifier: Apache-2.0
//
// Canonical graphs made standard again: the opset that they get, the attributes that are left out
// for it, and the host's own operators.

#include "core/op/defs/standardise.h"

#include <gtest/gtest.h>

#include <set>

#include "core/ir/verify.h"
#include "core/op/engine/canonicalise.h"
#include "core/op/engine/operator_set.h"
#include "test/core/op/dtypes.h"

namespace pfrt {
namespace {

std::shared_ptr<Graph> empty_graph() {
  auto graph = std::make_shared<Graph>("g");
  graph->opsets = {{"", 25}, {"com.microsoft", 1}, {"ai.onnx.ml", 5}};
  return graph;
}

ValueId add_input(Graph& graph, const std::string& name, const In& in) {
  const ValueId value = graph.value(name);
  graph.at(value).type = Type::tensor(in.dtype, in.shape);
  graph.inputs.push_back(value);
  return value;
}

ValueId add(Graph& graph, std::string op, std::vector<ValueId> inputs, const std::string& output,
            std::vector<Attribute> attrs = {}, std::string domain = "") {
  Node node;
  node.op = std::move(op);
  node.domain = std::move(domain);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.outputs = {graph.value(output)};
  const ValueId out = node.outputs[0];
  EXPECT_TRUE(graph.add_node(std::move(node)).ok());
  return out;
}

// A graph of a single node, with inputs x0, x1, ... and output y.
std::shared_ptr<Graph> one(std::string op, const std::vector<In>& inputs,
                           std::vector<Attribute> attrs = {}, std::string domain = "") {
  auto graph = empty_graph();
  std::vector<ValueId> values;
  for (const In& in : inputs)
    values.push_back(add_input(*graph, "x" + std::to_string(values.size()), in));
  graph->outputs = {
      add(*graph, std::move(op), std::move(values), "y", std::move(attrs), std::move(domain))};
  return graph;
}

// Makes the graph canonical, and standard again.
void there_and_back(Graph& graph) {
  ASSERT_TRUE(graph.bind_captures().ok());
  const Status made = canonicalise(graph);
  ASSERT_TRUE(made.ok()) << made.message();
  const Status back = standardise(graph);
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_TRUE(verify(graph).ok()) << verify(graph).message();
  for (const NodeId id : graph.node_ids()) EXPECT_FALSE(graph.node(id)->canonical);
}

int64_t opset_of(const std::shared_ptr<Graph>& graph, const char* domain = "") {
  there_and_back(*graph);
  return graph->opset(domain);
}

const Node* find(const Graph& graph, std::string_view op) {
  for (const NodeId id : graph.node_ids())
    if (graph.node(id)->op == op) return graph.node(id);
  return nullptr;
}

Attribute of(const char* name, int64_t value) { return Attribute::of_int(name, value); }
Attribute word(const char* name, const char* text) { return Attribute::of_string(name, text); }

TEST(Standardise, the_floor_is_enough_for_most) {
  EXPECT_EQ(opset_of(one("Relu", {{kFloat, {2}}})), 18);
  EXPECT_EQ(opset_of(one("Conv", {{kFloat, {1, 1, 4, 4}}, {kFloat, {1, 1, 3, 3}}})), 18);
  EXPECT_EQ(opset_of(one("Cast", {{kFloat, {2}}}, {of("to", kInt64)})), 18);
  EXPECT_EQ(opset_of(one("ReduceMean", {{kFloat, {2, 3}}})), 18);
  EXPECT_EQ(opset_of(one("Reshape", {{kFloat, {2, 3}}, {kInt64, {1}}})), 18);
}

TEST(Standardise, younger_operators_raise_the_opset) {
  EXPECT_EQ(opset_of(one("Gelu", {{kFloat, {2}}})), 20);
  EXPECT_EQ(opset_of(one("GroupNormalization", {{kFloat, {1, 4, 2}}, {kFloat, {4}}, {kFloat, {4}}},
                         {of("num_groups", 2)})),
            21);
  const std::vector<In> qkv(3, {kFloat, {1, 2, 3, 4}});
  EXPECT_EQ(opset_of(one("Attention", qkv)), 23);
  EXPECT_EQ(opset_of(one("Swish", {{kFloat, {2}}})), 24);
}

TEST(Standardise, younger_types_raise_the_opset) {
  EXPECT_EQ(opset_of(one("Conv", {{kBfloat16, {1, 1, 4, 4}}, {kBfloat16, {1, 1, 3, 3}}})), 22);
  EXPECT_EQ(opset_of(one("Cast", {{kFloat, {2}}}, {of("to", kFloat8)})), 19);
  EXPECT_EQ(opset_of(one("Reshape", {{kFloat8, {2, 3}}, {kInt64, {1}}})), 19);
  EXPECT_EQ(opset_of(one("Transpose", {{kFloat8, {2, 3}}})), 21);
  EXPECT_EQ(opset_of(one("Shape", {{PFRT_DTYPE_FLOAT4E2M1, {2, 3}}})), 23);
  EXPECT_EQ(opset_of(one("Identity", {{PFRT_DTYPE_INT2, {2, 3}}})), 25);
  EXPECT_EQ(opset_of(one("ReduceMax", {{PFRT_DTYPE_BOOL, {2, 3}}})), 20);
  EXPECT_EQ(opset_of(one("QuantizeLinear", {{PFRT_DTYPE_FLOAT16, {2}}, {kFloat, {}}})), 23);
  EXPECT_EQ(opset_of(one("Compress", {{kBfloat16, {4}}, {PFRT_DTYPE_BOOL, {4}}})), 28);
  EXPECT_EQ(opset_of(one("Einsum", {{kBfloat16, {2, 3}}}, {word("equation", "ij->ji")})), 28);
  EXPECT_EQ(opset_of(one("OneHot", {{kInt64, {2}}, {kInt64, {}}, {kBfloat16, {2}}})), 28);
  EXPECT_EQ(opset_of(one("Optional", {{kBfloat16, {2}}})), 28);
  EXPECT_EQ(opset_of(one("ReverseSequence", {{kBfloat16, {2, 3}}, {kInt64, {3}}})), 28);
  EXPECT_EQ(opset_of(one("Unique", {{kBfloat16, {2}}})), 28);
}

TEST(Standardise, an_unknown_type_may_be_the_youngest) {
  auto graph = empty_graph();
  const ValueId x = graph->value("x");
  graph->inputs = {x};
  graph->outputs = {add(*graph, "Relu", {x}, "y")};
  ASSERT_TRUE(standardise(*graph).ok());
  EXPECT_EQ(graph->opset(""), 25);
}

TEST(Standardise, younger_forms_raise_the_opset) {
  const std::vector<In> scaled{{kFloat, {2}}, {kFloat, {}}};
  EXPECT_EQ(opset_of(one("QuantizeLinear", scaled, {of("output_dtype", PFRT_DTYPE_INT8)})), 21);
  EXPECT_EQ(opset_of(one("QuantizeLinear", scaled, {of("precision", kFloat)})), 23);
  EXPECT_EQ(opset_of(one("Pad", {{kFloat, {2}}, {kInt64, {2}}}, {word("mode", "wrap")})), 19);
  EXPECT_EQ(opset_of(one("Pad", {{kFloat, {2}}, {kInt64, {2}}}, {word("mode", "edge")})), 18);
  const Attribute kernel = Attribute::of_ints("kernel_shape", {2, 2});
  const std::vector<In> image{{kFloat, {1, 1, 5, 5}}};
  EXPECT_EQ(opset_of(one("MaxPool", image, {kernel})), 18);
  EXPECT_EQ(opset_of(one("MaxPool", image, {kernel, of("ceil_mode", 1)})), 22);
  EXPECT_EQ(opset_of(one("AveragePool", image, {kernel})), 18);
  EXPECT_EQ(opset_of(one("AveragePool", image, {kernel, Attribute::of_ints("dilations", {1, 2})})),
            19);
}

TEST(Standardise, attributes_younger_than_the_opset_are_left_out) {
  auto graph = one("Cast", {{kFloat, {2}}}, {of("to", kInt64)});
  there_and_back(*graph);
  EXPECT_FALSE(find(*graph, "Cast")->attr("saturate"));
  EXPECT_FALSE(find(*graph, "Cast")->attr("round_mode"));

  graph = one("QuantizeLinear", {{kFloat, {2}}, {kFloat, {}}});
  there_and_back(*graph);
  for (const char* name : {"saturate", "block_size", "output_dtype", "precision"})
    EXPECT_FALSE(find(*graph, "QuantizeLinear")->attr(name)) << name;

  graph = one("Cast", {{kFloat, {2}}}, {of("to", kFloat8), of("saturate", 0)});
  there_and_back(*graph);
  ASSERT_TRUE(find(*graph, "Cast")->attr("saturate"));
  EXPECT_EQ(find(*graph, "Cast")->attr("saturate")->i, 0);
}

TEST(Standardise, other_domains_have_theirs) {
  EXPECT_EQ(opset_of(one("Scaler", {{kFloat, {2}}},
                         {Attribute::of_floats("offset", {1}), Attribute::of_floats("scale", {2})},
                         "ai.onnx.ml")),
            18);  // becomes a formula of ai.onnx
  auto graph = one("FastGelu", {{kFloat, {2}}}, {}, "com.microsoft");
  there_and_back(*graph);
  EXPECT_EQ(graph->opsets.count("ai.onnx.ml"), 0u);  // the graph has no such node
  const std::vector<Attribute> tree{Attribute::of_ints("classlabels_int64s", {0, 1}),
                                    Attribute::of_ints("nodes_nodeids", {0}),
                                    Attribute::of_ints("nodes_treeids", {0})};
  EXPECT_EQ(
      opset_of(one("TreeEnsembleClassifier", {{kFloat, {1, 2}}}, tree, "ai.onnx.ml"), "ai.onnx.ml"),
      3);
}

// A graph of c ? Gelu(x) : x, whose branches both name their value like another value of the graph.
std::shared_ptr<Graph> branching() {
  auto graph = empty_graph();
  const ValueId condition = add_input(*graph, "c", {PFRT_DTYPE_BOOL, {}});
  const ValueId x = add_input(*graph, "x", {kFloat, {2}});
  add(*graph, "Relu", {x}, "twice");
  std::vector<Attribute> branches;
  for (const char* name : {"then_branch", "else_branch"}) {
    Attribute attr;
    attr.name = name;
    attr.type = PFRT_ATTR_GRAPH;
    attr.graph = Graph::subgraph_of(*graph, name);
    const ValueId outer = attr.graph->value("x");
    const bool then = branches.empty();
    attr.graph->outputs = {then ? add(*attr.graph, "Gelu", {outer}, "twice") : outer};
    branches.push_back(std::move(attr));
  }
  graph->outputs = {add(*graph, "If", {condition}, "y", branches), graph->find("twice")};
  return graph;
}

TEST(Standardise, bodies_count_and_get_names_and_outputs_of_their_own) {
  auto graph = branching();
  there_and_back(*graph);
  EXPECT_EQ(graph->opset(""), 20);
  const Node& node = *find(*graph, "If");
  const Graph& then = *node.attr("then_branch")->graph;
  const Graph& otherwise = *node.attr("else_branch")->graph;
  EXPECT_EQ(then.opset(""), 20);
  EXPECT_EQ(otherwise.opset(""), 20);
  EXPECT_NE(then.at(then.outputs[0]).name, "twice");
  ASSERT_TRUE(find(otherwise, "Identity"));
  EXPECT_EQ(otherwise.outputs[0], find(otherwise, "Identity")->outputs[0]);
}

TEST(Standardise, nodes_of_a_graph_have_names_of_their_own) {
  auto graph = empty_graph();
  const ValueId x = add_input(*graph, "x", {kFloat, {2}});
  graph->outputs = {add(*graph, "Relu", {x}, "a"), add(*graph, "Neg", {x}, "b"),
                    add(*graph, "Abs", {x}, "c")};
  for (const NodeId id : graph->node_ids()) graph->node(id)->name = "same";
  there_and_back(*graph);
  std::set<std::string> names;
  for (const NodeId id : graph->node_ids()) names.insert(graph->node(id)->name);
  EXPECT_EQ(names.size(), 3u);
  EXPECT_EQ(names.count("same"), 1u);
}

TEST(Standardise, a_graph_without_nodes_needs_the_floor) {
  auto graph = empty_graph();
  graph->outputs = {add_input(*graph, "x", {kFloat, {2}})};
  ASSERT_TRUE(standardise(*graph).ok());
  EXPECT_EQ(graph->opset(""), 18);
}

TEST(Standardise, masks_have_a_row_a_query) {
  const auto attention = [](const Shape& mask) {
    auto graph = one(
        "Attention",
        {{kFloat, {2, 3, 4, 8}}, {kFloat, {2, 3, 5, 8}}, {kFloat, {2, 3, 5, 8}}, {kFloat, mask}});
    there_and_back(*graph);
    const Status again = canonicalise(*graph);
    EXPECT_TRUE(again.ok()) << again.message();
    return type_text(graph->at(find(*graph, "Attention")->inputs[3]).type, *graph->symbols);
  };
  EXPECT_EQ(attention({2, 1, 4, 5}), "float32[2,1,4,5]");
  EXPECT_EQ(attention({2, 1, 1, 5}), "float32[2,1,4,5]");
  EXPECT_EQ(attention({2, 1, 4, 1}), "float32[2,1,4,5]");
  EXPECT_EQ(attention({5}), "float32[4,5]");
}

TEST(Standardise, standard_operators_move_strings) {
  auto graph = one("Gather", {{kText, {4}}, {kInt64, {2}}});
  there_and_back(*graph);
  EXPECT_EQ(graph->node_count(), 1u);
  EXPECT_EQ(find(*graph, "Gather")->inputs[0], graph->find("x0"));
  EXPECT_EQ(graph->at(graph->outputs[0]).name, "y");
  EXPECT_EQ(graph->at(graph->outputs[0]).type.dtype, kText);
  EXPECT_EQ(graph->opset(""), 18);

  graph = one("Equal", {{kText, {4}}, {kText, {4}}});
  there_and_back(*graph);
  EXPECT_EQ(graph->node_count(), 1u);
  EXPECT_EQ(graph->at(graph->outputs[0]).type.dtype, PFRT_DTYPE_BOOL);
  EXPECT_EQ(graph->opset(""), 19);

  graph = one("Concat", {{kText, {4}}, {kText, {3}}}, {of("axis", 0)});
  const ValueId joined = graph->outputs[0];
  graph->outputs = {add(*graph, "Transpose", {joined}, "z")};
  there_and_back(*graph);
  EXPECT_EQ(graph->node_count(), 2u);
  EXPECT_EQ(graph->at(find(*graph, "Transpose")->inputs[0]).type.dtype, kText);
}

TEST(Standardise, numbers_of_strings_that_went_another_way_are_refused) {
  auto graph = empty_graph();
  const ValueId x = add_input(*graph, "x", {kText, {4}});
  const ValueId numbers = add(*graph, "StringPositions", {x}, "n", {}, "pyflame_rt.strings");
  const ValueId doubled = add(*graph, "Add", {numbers, numbers}, "d");
  graph->outputs = {add(*graph, "StringTake", {doubled, x}, "y", {}, "pyflame_rt.strings")};
  const Status made = canonicalise(*graph);
  ASSERT_TRUE(made.ok()) << made.message();
  const Status back = standardise(*graph);
  EXPECT_EQ(back.code(), Code::kUNSUPPORTED);
  EXPECT_NE(std::string(back.message()).find("Add"), std::string::npos) << back.message();
}

// Gives output 0 the type of input 0.
class Registered final : public CustomOperator {
 public:
  Registered(int since, int until)
      : CustomOperator("", "Mine", "the test", row(since, until), {}) {}
  Status infer(Inference& inference) const override {
    inference.set_output(0, inference.input(0));
    return {};
  }

 private:
  static OperatorDef row(int since, int until) {
    OperatorDef out{};
    out.since = since;
    out.until = until;
    out.min_inputs = out.max_inputs = out.min_outputs = out.max_outputs = 1;
    return out;
  }
};

// An operator of ONNX's own domain that a client registered has its meaning by the model's opset;
// the graph gets another.
TEST(Standardise, does_not_make_another_of_a_registered_operator) {
  OperatorSet::Ptr set;
  for (const auto& [since, until] : {std::pair(1, 15), std::pair(16, 0)}) {
    auto more = OperatorSet::with(set, std::make_shared<const Registered>(since, until));
    ASSERT_TRUE(more.ok());
    set = more.take();
  }
  for (const int64_t opset : {13, 20}) {
    auto graph = one("Mine", {{PFRT_DTYPE_FLOAT32, {2}}});
    graph->opsets[""] = opset;
    use_operators(*graph, set);
    ASSERT_TRUE(graph->bind_captures().ok());
    ASSERT_TRUE(canonicalise(*graph).ok());
    const Node& node = *graph->node(graph->node_ids().front());
    EXPECT_EQ(node.opset, opset);
    EXPECT_EQ(find_canonical(*graph, node)->since, opset == 13 ? 1 : 16);
    const Status status = standardise(*graph);
    if (opset == 13) {
      EXPECT_EQ(status.code(), Code::kUNSUPPORTED);
      EXPECT_NE(status.message().find("opset 13"), std::string::npos) << status.message();
      continue;
    }
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(node.opset, 0);
    EXPECT_EQ(find_canonical(*graph, node)->since, 16);
  }
}

}  // namespace
}  // namespace pfrt
