// SPDX-License-Identifier: Apache-2.0
#include "core/ir/graph.h"

#include <gtest/gtest.h>

#include "core/ir/verify.h"

namespace pfrt {
namespace {

NodeId add(Graph& g, std::string op, std::vector<std::string> inputs,
           std::vector<std::string> outputs, std::vector<Attribute> attrs = {}) {
  Node node;
  node.op = std::move(op);
  for (const auto& name : inputs) node.inputs.push_back(g.value(name));
  for (const auto& name : outputs) node.outputs.push_back(g.value(name));
  node.attrs = std::move(attrs);
  auto added = g.add_node(std::move(node));
  EXPECT_TRUE(added.ok()) << added.status().message();
  return added.ok() ? added.take() : kNoId;
}

// x -> Relu -> a -> Neg -> b, with b the output.
std::shared_ptr<Graph> chain() {
  auto g = std::make_shared<Graph>("chain");
  g->inputs.push_back(g->value("x"));
  add(*g, "Relu", {"x"}, {"a"});
  add(*g, "Neg", {"a"}, {"b"});
  g->outputs.push_back(g->find("b"));
  return g;
}

TEST(Graph, values_have_one_name_and_names_one_value) {
  Graph g;
  const ValueId a = g.value("a");
  EXPECT_EQ(g.value("a"), a);
  EXPECT_EQ(g.find("a"), a);
  EXPECT_EQ(g.find("b"), kNoId);
  EXPECT_EQ(g.value(""), kNoId);
  const ValueId f1 = g.fresh("a"), f2 = g.fresh("a");
  EXPECT_NE(g.at(f1).name, "a");
  EXPECT_NE(g.at(f1).name, g.at(f2).name);
  EXPECT_EQ(g.find(g.at(f1).name), f1);
}

TEST(Graph, node_ids_are_never_used_again) {
  auto g = chain();
  const auto ids = g->node_ids();
  g->remove_node(ids[1]);
  EXPECT_EQ(g->node(ids[1]), nullptr);
  EXPECT_EQ(g->node_count(), 1u);
  EXPECT_EQ(g->at(g->find("b")).producer, kNoId);
  EXPECT_NE(add(*g, "Abs", {"a"}, {"b"}), ids[1]);
  EXPECT_TRUE(verify(*g).ok());
}

TEST(Graph, second_producer_is_refused) {
  auto g = chain();
  Node node;
  node.op = "Abs";
  node.inputs = {g->find("x")};
  node.outputs = {g->find("a")};
  EXPECT_FALSE(g->add_node(node).ok());
  node.outputs = {g->find("x")};
  EXPECT_FALSE(g->add_node(node).ok());
  node.outputs = {g->add_constant("k", Tensor::of_int64({1}).take())};
  EXPECT_FALSE(g->add_node(node).ok());
  EXPECT_EQ(g->node_count(), 2u);
}

TEST(Graph, replaced_output_keeps_its_name) {
  auto g = chain();
  add(*g, "Abs", {"a"}, {"c"});
  const ValueId c = g->find("c");
  g->replace_uses(g->find("b"), c);
  ASSERT_EQ(g->outputs.size(), 1u);
  EXPECT_EQ(g->outputs[0], c);
  EXPECT_EQ(g->at(c).name, "b");
  EXPECT_EQ(g->find("b"), c);
}

TEST(Graph, replacing_reaches_nodes_and_captures) {
  auto g = chain();
  auto body = Graph::subgraph_of(*g, "body");
  add(*body, "Neg", {"a"}, {"r"});
  body->outputs.push_back(body->find("r"));
  g->inputs.push_back(g->value("c"));
  Attribute then_branch;
  then_branch.name = "then_branch";
  then_branch.type = PFRT_ATTR_GRAPH;
  then_branch.graph = body;
  const NodeId choice = add(*g, "If", {"c"}, {"y"}, {then_branch});
  ASSERT_TRUE(g->bind_captures().ok());
  ASSERT_EQ(body->captures.size(), 1u);
  EXPECT_EQ(body->captures[0].outer, g->find("a"));
  const auto used = g->used_by(*g->node(choice));
  EXPECT_EQ(used, (std::vector<ValueId>{g->find("c"), g->find("a")}));
  g->replace_uses(g->find("a"), g->find("x"));
  EXPECT_EQ(body->captures[0].outer, g->find("x"));
  ASSERT_TRUE(g->bind_captures().ok()) << "binding again changes nothing";
  EXPECT_EQ(body->captures.size(), 1u);
}

TEST(Graph, clone_is_deep_but_for_constants) {
  auto g = chain();
  const ValueId k = g->add_constant("k", Tensor::of_float({1, 2}).take());
  auto copy = g->clone();
  EXPECT_EQ(copy->constant(k)->data(), g->constant(k)->data());
  copy->node(0)->op = "Abs";
  EXPECT_EQ(g->node(0)->op, "Relu");
  copy->remove_node(1);
  EXPECT_EQ(g->node_count(), 2u);
  EXPECT_EQ(copy->node_ids(), std::vector<NodeId>{0});
}

TEST(Graph, cycle_names_its_nodes) {
  Graph g;
  add(g, "Add", {"c", "c"}, {"a"});
  add(g, "Relu", {"a"}, {"c"});
  const auto order = g.topological_order();
  ASSERT_FALSE(order.ok());
  EXPECT_EQ(order.status().code(), Code::kVALIDATION);
  EXPECT_NE(order.status().message().find("Relu"), std::string::npos);
}

TEST(Graph, long_chains_do_not_exhaust_the_stack) {
  Graph g;
  g.inputs.push_back(g.value("v0"));
  constexpr int kLength = 200000;
  for (int i = 0; i < kLength; ++i)
    add(g, "Neg", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  g.outputs.push_back(g.find("v" + std::to_string(kLength)));
  const auto order = g.topological_order();
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(order.value().size(), static_cast<size_t>(kLength));
}

}  // namespace
}  // namespace pfrt
