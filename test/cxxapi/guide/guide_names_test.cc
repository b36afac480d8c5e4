// SPDX-License-Identifier: Apache-2.0
//
// Names that the guide's examples and tests use beside those of its chapters: helpers for element
// types and shapes, facts about a graph's nodes, graphs run without a session.
#include <gtest/gtest.h>

#include <limits>
#include <pyflame_rt/pyflame_rt.hpp>

#include "test/cxxapi/floats.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

std::shared_ptr<Node> node_of(const std::string& name, const std::string& op,
                              std::vector<std::string> inputs, std::vector<std::string> outputs) {
  return std::make_shared<Node>(name, op, std::move(inputs), std::move(outputs));
}

TEST(GuideNames, sizes_and_names_of_element_types) {
  EXPECT_EQ(dtype_size(DType::Float64), 8u);
  EXPECT_EQ(dtype_size(DType::Float16), 2u);
  EXPECT_EQ(dtype_size(DType::Bool), 1u);
  EXPECT_EQ(dtype_size(DType::Complex128), 16u);
  EXPECT_EQ(dtype_size(DType::Int4), 1u);
  EXPECT_EQ(dtype_size(DType::String), 0u);
  EXPECT_EQ(dtype_size(DType::Undefined), 0u);
  for (int32_t i = 0; i < 64; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (to_c(dtype) == PFRT_DTYPE_UNSET) continue;
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype) << i;
  }
  try {
    (void)dtype_from_name("float31");
    FAIL() << "there is no float31";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("'float31'; there are float32, "), std::string::npos)
        << e.what();
  }
}

TEST(GuideNames, shapes) {
  EXPECT_EQ(shape_to_string({1, 3, std::nullopt, 224}), "[1, 3, ?, 224]");
  EXPECT_EQ(shape_to_string({}), "[]");
  EXPECT_FALSE(is_dynamic_shape({1, 3}));
  EXPECT_FALSE(is_dynamic_shape({}));
  EXPECT_TRUE(is_dynamic_shape({3, std::nullopt}));
  EXPECT_EQ(shape_num_elements({2, 3, 4}), 24);
  EXPECT_EQ(shape_num_elements({}), 1);
  EXPECT_EQ(shape_num_elements({2, std::nullopt}), std::nullopt);
  EXPECT_EQ(shape_num_elements({0, std::nullopt}), std::nullopt);
  EXPECT_EQ(shape_num_elements({-1}), std::nullopt);
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(shape_num_elements({most, 1}), most);
  EXPECT_EQ(shape_num_elements({most, 2}), std::nullopt);
  EXPECT_EQ(shape_num_elements({most, 2, 0}), 0);
}

TEST(GuideNames, sizes_of_described_tensors) {
  const TensorInfo image("input", {{1}, {3}, {224}, {224}}, DType::Float32);
  EXPECT_EQ(image.num_elements(), 3 * 224 * 224);
  EXPECT_EQ(image.size_bytes(), 3u * 224 * 224 * 4);
  EXPECT_EQ(TensorInfo("packed", {{3}}, DType::Int4).size_bytes(), 2u);
  EXPECT_EQ(TensorInfo("texts", {{3}}, DType::String).num_elements(), 3);
  EXPECT_EQ(TensorInfo("texts", {{3}}, DType::String).size_bytes(), std::nullopt);
  EXPECT_EQ(TensorInfo("batch", {std::nullopt, {3}}, DType::Float32).size_bytes(), std::nullopt);
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(TensorInfo("huge", {most}, DType::Float64).size_bytes(), std::nullopt);
  TensorInfo unranked("any", {}, DType::Float32);
  unranked.unranked = true;
  EXPECT_EQ(unranked.num_elements(), std::nullopt);
  TensorInfo list("list", {{2}}, DType::Float32);
  list.kind = ValueKind::Sequence;
  EXPECT_EQ(list.num_elements(), std::nullopt);
}

TEST(GuideNames, arguments_made_of_described_tensors) {
  const NodeArg arg =
      NodeArg::from_tensor_info(TensorInfo("output", {{1}, {1000}}, DType::Float32));
  EXPECT_EQ(arg.name, "output");
  EXPECT_EQ(arg.type_str, "tensor(float32)");
  EXPECT_EQ(arg.shape, (Shape{1, 1000}));
  TensorInfo list("list", {}, DType::Int64);
  list.kind = ValueKind::Sequence;
  EXPECT_EQ(NodeArg::from_tensor_info(list).type_str, "seq(tensor(int64))");
  EXPECT_EQ(NodeArg().type_str, NodeArg().type());
}

TEST(GuideNames, nodes_by_name) {
  Graph graph;
  EXPECT_EQ(graph.num_nodes(), 0u);
  const auto add = node_of("add_0", "Add", {"a", "b"}, {"c"});
  const auto relu = node_of("relu_0", "Relu", {"c"}, {"d"});
  graph.add_node(add);
  graph.add_node(relu);
  EXPECT_EQ(graph.num_nodes(), 2u);
  EXPECT_EQ(graph.get_node("add_0"), add.get());
  EXPECT_EQ(graph.get_node("none"), nullptr);
  ASSERT_NE(graph.get_producer("c"), nullptr);
  EXPECT_EQ(*graph.get_producer("c"), "add_0");
  EXPECT_EQ(graph.get_producer("a"), nullptr);
  EXPECT_EQ(graph.get_producer("none"), nullptr);
  EXPECT_EQ(graph.get_consumers("c"), (std::vector<std::string>{"relu_0"}));
  EXPECT_TRUE(graph.get_consumers("d").empty());
  EXPECT_TRUE(graph.get_consumers("none").empty());
}

TEST(GuideNames, names_of_nodes_are_added_once) {
  Graph graph;
  const auto first = node_of("n", "Relu", {"a"}, {"b"});
  graph.add_node(first);
  const auto again = node_of("n", "Relu", {"b"}, {"c"});
  EXPECT_THROW(graph.add_node(again), InputError);
  EXPECT_EQ(graph.num_nodes(), 1u);
  EXPECT_EQ(again->id(), PFRT_NO_NODE);
  // A node that is renamed or removed frees its name; several nodes may have no name.
  first->set_name("m");
  graph.add_node(again);
  EXPECT_THROW(graph.add_node(node_of("m", "Relu", {"c"}, {"d"})), InputError);
  graph.remove_node(first);
  graph.add_node(node_of("m", "Relu", {"c"}, {"d"}));
  graph.add_node(node_of("", "Relu", {"d"}, {"e"}));
  graph.add_node(node_of("", "Relu", {"e"}, {"f"}));
  EXPECT_EQ(graph.num_nodes(), 5u - 1u);
  graph.refresh();
  EXPECT_THROW(graph.add_node(node_of("n", "Relu", {"f"}, {"g"})), InputError);
  EXPECT_THROW(graph.clone().add_node(node_of("n", "Relu", {"f"}, {"g"})), InputError);
}

TEST(GuideNames, initializers_by_name) {
  Graph graph;
  EXPECT_FALSE(graph.has_initializer("w"));
  EXPECT_EQ(graph.get_initializer("w"), nullptr);
  graph.add_initializer("w", Tensor::from_vector(std::vector<float>{1, 2}, {2}));
  EXPECT_TRUE(graph.has_initializer("w"));
  const Tensor* w = graph.get_initializer("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(floats(*w), (std::vector<float>{1, 2}));
  EXPECT_EQ(graph.get_initializer("w"), w);
  // A pointer that was given out does not cause a copy.
  const void* data = w->data();
  EXPECT_EQ(graph.initializer_for_write("w").data(), data);
  graph.add_initializer("w", Tensor::from_vector(std::vector<float>{3}, {1}));
  EXPECT_EQ(floats(*graph.get_initializer("w")), (std::vector<float>{3}));
  graph.remove_initializer("w");
  EXPECT_FALSE(graph.has_initializer("w"));
  EXPECT_EQ(graph.get_initializer("w"), nullptr);
}

using GuideNameFiles = InTemporaryFolder;

// d = Relu(a + b)
Graph sum_of_two() {
  Graph graph("sum");
  for (const char* name : {"a", "b", "d"}) {
    const TensorInfo info(name, {{2}}, DType::Float32);
    if (*name == 'd')
      graph.add_output(info);
    else
      graph.add_input(info);
  }
  graph.add_node(node_of("add_0", "Add", {"a", "b"}, {"c"}));
  graph.add_node(node_of("relu_0", "Relu", {"c"}, {"d"}));
  return graph;
}

TEST_F(GuideNameFiles, files_may_hold_a_name_twice) {
  Graph graph = sum_of_two();
  graph.get_node("relu_0")->set_name("add_0");
  save_model(graph, "twice.onnx");
  Graph read = load_model("twice.onnx");
  EXPECT_EQ(read.num_nodes(), 2u);
  EXPECT_THROW(read.add_node(node_of("add_0", "Relu", {"d"}, {"e"})), InputError);
}

TEST(GuideNames, graphs_run_without_a_session) {
  CPUExecutor executor;
  const std::unordered_map<std::string, Tensor> feed = {
      {"a", Tensor::from_vector(std::vector<float>{1, -2}, {2})},
      {"b", Tensor::from_vector(std::vector<float>{2, 1}, {2})}};
  const Graph graph = sum_of_two();
  const std::vector<Tensor> results = executor.execute(graph, feed);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(floats(results[0]), (std::vector<float>{3, 0}));
  EXPECT_EQ(executor.execute(graph, feed, {"d"}).size(), 1u);
  EXPECT_THROW(executor.execute(graph, {}), InputError);
  EXPECT_EQ(executor.name(), "cpu");
  for (const char* op : {"Add", "Relu", "MatMul"}) EXPECT_TRUE(executor.supports_op(op)) << op;
  EXPECT_FALSE(executor.supports_op("NonExistentOp"));
  EXPECT_GT(executor.get_supported_ops().size(), 100u);
}

}  // namespace
}  // namespace pfrt_test
