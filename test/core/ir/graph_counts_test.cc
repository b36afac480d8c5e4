// SPDX-License-Identifier: Apache-2.0
#include "core/ir/graph_counts.h"

#include <gtest/gtest.h>

namespace pfrt {
namespace {

void add(Graph& g, std::string op, const std::string& output, std::vector<Attribute> attrs) {
  Node node;
  node.op = std::move(op);
  node.outputs.push_back(g.value(output));
  node.attrs = std::move(attrs);
  ASSERT_TRUE(g.add_node(std::move(node)).ok());
}

TEST(GraphCounts, a_constant_counts_as_an_initializer_does) {
  Graph g;
  g.set_constant(g.value("w"), Value::of(Tensor::of_float({1, 2, 3}).take()));
  add(g, "Constant", "a", {Attribute::of_tensor("value", Tensor::of_int64({1, 2}).take())});
  add(g, "Constant", "b", {Attribute::of_floats("value_floats", {1, 2, 3, 4})});
  add(g, "Constant", "c", {Attribute::of_ints("value_ints", {1})});
  add(g, "Constant", "d", {Attribute::of_float("value_float", 1)});
  add(g, "Constant", "e", {Attribute::of_int("value_int", 1)});
  add(g, "RandomNormal", "f", {Attribute::of_ints("shape", {2, 2})});  // no parameters of a model
  const GraphCounts counts = count(g);
  EXPECT_EQ(counts.nodes, 6u);
  EXPECT_EQ(counts.initializers, 1u);
  EXPECT_EQ(counts.parameters, 3u + 2 + 4 + 1 + 1 + 1);
  EXPECT_EQ(counts.parameter_bytes, 12u + 16 + 16 + 8 + 4 + 8);
}

TEST(GraphCounts, bodies_count_with_the_graph_around_them) {
  auto g = std::make_shared<Graph>("outer");
  Attribute then;
  then.name = "then_branch";
  then.type = PFRT_ATTR_GRAPH;
  then.graph = Graph::subgraph_of(*g, "then");
  then.graph->set_constant(then.graph->value("w"), Value::of(Tensor::of_float({1, 2}).take()));
  add(*then.graph, "Constant", "a", {Attribute::of_floats("value_floats", {1, 2, 3})});
  Attribute inner;
  inner.name = "bodies";
  inner.type = PFRT_ATTR_GRAPHS;
  inner.graphs.push_back(Graph::subgraph_of(*then.graph, "inner"));
  add(*inner.graphs[0], "Constant", "b", {Attribute::of_float("value_float", 1)});
  add(*then.graph, "Custom", "c", {inner});
  add(*g, "If", "y", {then});
  const GraphCounts counts = count(*g);
  EXPECT_EQ(counts.nodes, 4u);
  EXPECT_EQ(count_nodes(*g), 4u);
  EXPECT_EQ(counts.initializers, 1u);
  EXPECT_EQ(counts.parameters, 2u + 3 + 1);
}

}  // namespace
}  // namespace pfrt
