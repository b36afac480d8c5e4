// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <pyflame_rt/pyflame_rt.hpp>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using Words = std::vector<std::string>;

// x -> Relu -> a -> Neg -> b
struct Chain {
  Graph graph{"chain"};
  std::shared_ptr<Node> relu = make_node("relu", "Relu", {"x"}, {"a"});
  std::shared_ptr<Node> neg = make_node("neg", "Neg", {"a"}, {"b"});
  Chain() {
    graph.add_input({"x", {{2}}, DType::Float32});
    graph.add_output({"b", {{2}}, DType::Float32});
    graph.add_node(relu);
    graph.add_node(neg);
  }
  std::vector<float> run(const std::vector<float>& x) const {
    const Tensor y = InferenceSession(graph).run({}, {{"x", Tensor::from_vector(x, {2})}})[0];
    return {y.data_ptr<float>(), y.data_ptr<float>() + 2};
  }
};

TEST(GraphEditing, nodes_are_found) {
  Chain c;
  EXPECT_EQ(c.graph.find_node("neg"), c.neg);
  EXPECT_EQ(c.graph.find_node("nothing"), nullptr);
  EXPECT_EQ(c.graph.node(c.relu->id()), c.relu);
  EXPECT_EQ(c.graph.node(77), nullptr);
  EXPECT_EQ(c.graph.producer("b"), c.neg);
  EXPECT_EQ(c.graph.producer("x"), nullptr);
  EXPECT_EQ(c.graph.consumers("a"), std::vector<std::shared_ptr<Node>>{c.neg});
  EXPECT_THROW(c.graph.producer("nothing"), PyFlameRTError);
  EXPECT_EQ(make_node("free", "Relu", {"x"}, {"y"})->id(), PFRT_NO_NODE);
}

TEST(GraphEditing, a_walk_may_edit) {
  Chain c;
  std::vector<std::string> met;
  for (auto node = c.graph.next_node(nullptr); node != nullptr; node = c.graph.next_node(node)) {
    met.push_back(node->name());
    if (node != c.relu) continue;
    c.graph.remove_node(c.relu);
    c.graph.remove_node(c.neg);
    c.graph.add_node(make_node("abs", "Abs", {"x"}, {"b"}));
  }
  EXPECT_EQ(met, (Words{"relu", "abs"}));
  EXPECT_EQ(c.run({-1, 2}), (std::vector<float>{1, 2}));
}

TEST(GraphEditing, node_objects_follow_edits_of_the_graph) {
  Chain c;
  c.graph.rename_value("a", "inner");
  EXPECT_EQ(c.relu->outputs(), Words{"inner"});
  EXPECT_EQ(c.neg->inputs(), Words{"inner"});
  const auto abs = make_node("abs", "Abs", {"inner"}, {"t"});
  c.graph.insert_after("inner", abs);
  EXPECT_EQ(c.neg->inputs(), Words{"t"});
  EXPECT_EQ(abs->inputs(), Words{"inner"});
  // The node goes behind the graph's output, which keeps the name that callers ask for.
  const auto twice = make_node("twice", "Add", {"b", "b"}, {"u"});
  c.graph.insert_after("b", twice);
  EXPECT_EQ(c.graph.outputs()[0].name, "b");
  EXPECT_EQ(twice->outputs(), Words{"b"});
  EXPECT_EQ(twice->inputs(), (Words{"u", "u"}));
  EXPECT_EQ(c.neg->outputs(), Words{"u"});
  EXPECT_EQ(c.run({-1, 2}), (std::vector<float>{0, -4}));
  EXPECT_TRUE(c.graph.validate_all().empty());
}

TEST(GraphEditing, what_is_set_on_a_node_is_set_in_its_graph) {
  Chain c;
  c.relu->set_name("renamed");
  c.relu->set_outputs({"z"});
  c.neg->set_inputs({"z"});
  Graph copy = c.graph.clone();
  const auto read = copy.find_node("renamed");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->outputs(), Words{"z"});
  EXPECT_EQ(read->id(), c.relu->id());
  EXPECT_THROW(c.relu->set_outputs({"b"}), ValidationError);
  EXPECT_EQ(c.relu->outputs(), Words{"z"});
  c.neg->set_attr("note", 1);
  c.neg->remove_attr("note");
  EXPECT_FALSE(c.neg->has_attr("note"));
  EXPECT_THROW(c.neg->remove_attr("note"), PyFlameRTError);
  EXPECT_EQ(c.run({-1, 2}), (std::vector<float>{0, -2}));
}

TEST(GraphEditing, an_insertion_that_fails_changes_nothing) {
  Chain c;
  EXPECT_THROW(c.graph.insert_after("nothing", make_node("n", "Abs", {"a"}, {"t"})),
               PyFlameRTError);
  EXPECT_THROW(c.graph.insert_after("a", nullptr), InputError);
  EXPECT_THROW(c.graph.replace_uses("a", "b", make_node("n", "Abs", {"a"}, {"t"})), NotFoundError);
  EXPECT_EQ(c.graph.nodes().size(), 2u);
}

TEST(GraphEditing, constants_of_models_never_change) {
  Graph graph("sum");
  graph.add_input({"x", {{2}}, DType::Float32});
  graph.add_output({"y", {{2}}, DType::Float32});
  graph.add_initializer("w", Tensor::from_vector<float>({1, 2}, {2}));
  graph.add_node(make_node("add", "Add", {"x", "w"}, {"y"}));
  const Model model = Model::from_graph(graph);
  const InferenceSession session(model);
  graph.initializer_for_write("w").data_ptr<float>()[0] = 100;
  EXPECT_EQ(graph.initializer("w").data_ptr<float>()[0], 100);
  const Tensor x({2}, DType::Float32);
  EXPECT_EQ(session.run({}, {{"x", x}})[0].data_ptr<float>()[0], 1);
  EXPECT_EQ(InferenceSession(model).run({}, {{"x", x}})[0].data_ptr<float>()[0], 1);
  EXPECT_EQ(InferenceSession(graph).run({}, {{"x", x}})[0].data_ptr<float>()[0], 100);
  graph.remove_initializer("w");
  EXPECT_THROW(graph.initializer("w"), PyFlameRTError);
  EXPECT_FALSE(graph.validate().empty());
}

TEST(GraphEditing, inputs_outputs_opsets_and_metadata) {
  Chain c;
  c.graph.set_name("another");
  c.graph.replace_input(0, {"x", {{3}}, DType::Float32});
  c.graph.replace_output(0, {"a", {{3}}, DType::Float32});
  c.graph.remove_node(c.neg);
  EXPECT_EQ(c.graph.name(), "another");
  EXPECT_EQ(c.graph.inputs()[0].shape, (Shape{3}));
  EXPECT_EQ(c.graph.outputs()[0].name, "a");
  EXPECT_TRUE(c.graph.validate_all().empty());
  c.graph.remove_output(0);
  c.graph.remove_input(0);
  EXPECT_TRUE(c.graph.inputs().empty());
  EXPECT_TRUE(c.graph.outputs().empty());
  EXPECT_THROW(c.graph.remove_input(0), InputError);
  c.graph.set_opset("com.microsoft", 1);
  c.graph.remove_opset("com.microsoft");
  EXPECT_EQ(c.graph.opsets().count("com.microsoft"), 0u);
  c.graph.set_metadata("k", "v");
  c.graph.remove_metadata("k");
  EXPECT_TRUE(c.graph.metadata().empty());
}

TEST(GraphEditing, all_faults_are_in_one_list) {
  Chain c;
  c.graph.add_node(make_node("odd", "Frobnicate", {"x"}, {"f"}));
  const auto leaky = make_node("leaky", "LeakyRelu", {"ghost"}, {"l"});
  leaky->set_attr("alpha", 1);
  c.graph.add_node(leaky);
  std::string all;
  for (const std::string& fault : c.graph.validate_all()) all += fault + "\n";
  for (const char* word : {"Frobnicate", "ghost", "alpha"})
    EXPECT_NE(all.find(word), std::string::npos) << word << " is not in:\n" << all;
}

TEST(GraphEditing, a_body_is_edited_in_place) {
  Graph graph("choice");
  graph.add_input({"c", {}, DType::Bool});
  graph.add_input({"x", {{2}}, DType::Float32});
  graph.add_output({"y", {{2}}, DType::Float32});
  const auto choose = make_node("if", "If", {"c"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    Graph body = graph.create_subgraph(branch);
    body.add_output({"r", {{2}}, DType::Float32});
    body.add_node(make_node("inner", "Neg", {"x"}, {"r"}));
    choose->set_attr(branch, body.shared());
  }
  graph.add_node(choose);
  Graph then_body(*choose->get_attr<GraphHandle>("then_branch"));
  then_body.insert_after("r", make_node("more", "Abs", {"r"}, {"s"}));
  graph.rename_value("x", "data");
  const InferenceSession session(graph);
  Tensor which(std::vector<int64_t>{}, DType::Bool);
  const Tensor data = Tensor::from_vector<float>({1, 2}, {2});
  which.fill(1);
  EXPECT_EQ(session.run({}, {{"c", which}, {"data", data}})[0].data_ptr<float>()[1], 2);
  which.fill(0);
  EXPECT_EQ(session.run({}, {{"c", which}, {"data", data}})[0].data_ptr<float>()[1], -2);
}

TEST(GraphExtract, gives_a_part_that_runs_alone) {
  Graph graph("whole");
  graph.add_input(TensorInfo("x", {{2}}, DType::Float32));
  graph.add_node(std::make_shared<Node>("neg", "Neg", std::vector<std::string>{"x"},
                                        std::vector<std::string>{"n"}));
  graph.add_node(std::make_shared<Node>("abs", "Abs", std::vector<std::string>{"n"},
                                        std::vector<std::string>{"y"}));
  graph.add_output(TensorInfo("y", {{2}}, DType::Float32));
  const InferenceSession before(graph.extract({}, {"n"})), after(graph.extract({"n"}, {"y"}));
  const auto n = before.run({}, {{"x", Tensor::from_vector<float>({1, -2}, {2})}});
  EXPECT_EQ(n[0].data_ptr<float>()[0], -1);
  const auto y = after.run({}, {{"n", n[0]}});
  EXPECT_EQ(y[0].data_ptr<float>()[1], 2);
  EXPECT_THROW(graph.extract({"y"}, {"n"}), InvalidArgumentError);
}

}  // namespace
}  // namespace pfrt_test
