// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <pyflame_rt/model_io.hpp>
#include <pyflame_rt/session.hpp>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

class ModelIo : public InTemporaryFolder {};

Graph scaled_sum() {
  Graph graph("scaled_sum");
  TensorInfo x("x", {std::nullopt, 3}, DType::Float32);
  x.dim_names = {"batch", ""};
  graph.add_input(x);
  graph.add_output({"y", {std::nullopt, 3}, DType::Float32});
  graph.add_initializer("w", Tensor::from_vector<float>({1, 2, 3}, {3}));
  graph.add_node(make_node("mul_0", "Mul", {"x", "w"}, {"t"}));
  auto leaky = make_node("leaky_0", "LeakyRelu", {"t"}, {"y"});
  leaky->set_attr("alpha", 0.5f);
  graph.add_node(leaky);
  graph.set_opset(17);
  graph.set_metadata("author", "somebody");
  return graph;
}

TEST_F(ModelIo, a_saved_graph_comes_back_whole) {
  const Graph graph = scaled_sum();
  save_model(graph, "model.pfm");
  const Graph loaded = load_model("model.pfm");
  EXPECT_EQ(loaded.name(), "scaled_sum");
  EXPECT_EQ(loaded.opsets(), graph.opsets());
  EXPECT_EQ(loaded.metadata().at("author"), "somebody");
  ASSERT_EQ(loaded.inputs().size(), 1u);
  EXPECT_EQ(loaded.inputs()[0].dim_names[0], "batch");
  EXPECT_EQ(loaded.inputs()[0].shape, (Shape{std::nullopt, 3}));
  ASSERT_EQ(loaded.nodes().size(), 2u);
  EXPECT_EQ(loaded.nodes()[1]->name(), "leaky_0");
  EXPECT_EQ(loaded.nodes()[1]->get_attr<float>("alpha"), 0.5f);
  EXPECT_EQ(loaded.initializers().at("w").data_ptr<float>()[2], 3.0f);
}

TEST_F(ModelIo, a_loaded_graph_runs_as_the_built_one) {
  const Graph graph = scaled_sum();
  save_model(graph, "model.pfm");
  const Tensor x = Tensor::from_vector<float>({-2, 2, -2, 4, -4, 4}, {2, 3});
  const Tensor built = InferenceSession(graph).run({}, {{"x", x}})[0];
  const Tensor loaded = InferenceSession("model.pfm").run({}, {{"x", x}})[0];
  const std::vector<float> want{-1, 4, -3, 4, -4, 12};
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(built.data_ptr<float>()[i], want[i]);
    EXPECT_EQ(loaded.data_ptr<float>()[i], want[i]);
  }
}

// A graph built by hand has the newest opset, which hardly any reader knows.
TEST_F(ModelIo, onnx_files_ask_for_no_newer_opset_than_they_need) {
  save_model(one_node("Relu", {{2}}), "model.onnx");
  EXPECT_EQ(load_model("model.onnx").opsets().at(""), 18);
  save_model(one_node("Gelu", {{2}}), "model.onnx");
  EXPECT_EQ(load_model("model.onnx").opsets().at(""), 20);
  save_model(scaled_sum(), "model.onnx");
  EXPECT_EQ(load_model("model.onnx").opsets().at(""), 17);  // the opset that it declares
  save_model(one_node("Relu", {{2}}), "model.pfm");
  EXPECT_EQ(load_model("model.pfm").opsets().at(""), 28);
}

TEST_F(ModelIo, saving_replaces_the_old_file) {
  save_model(scaled_sum(), "model.pfm");
  save_model(one_node("Relu", {{1}}), "model.pfm");
  EXPECT_EQ(load_model("model.pfm").name(), "one_Relu");
}

TEST_F(ModelIo, a_graph_that_is_not_valid_leaves_the_old_file) {
  save_model(scaled_sum(), "model.pfm");
  const std::string before = read_file("model.pfm");
  Graph graph = scaled_sum();
  graph.add_node(make_node("n", "Relu", {"nowhere"}, {"z"}));
  EXPECT_THROW(save_model(graph, "model.pfm"), ValidationError);
  EXPECT_EQ(read_file("model.pfm"), before);
}

TEST_F(ModelIo, faults_of_paths) {
  EXPECT_THROW(save_model(scaled_sum(), "absent/model.pfm"), PyFlameRTError);
  EXPECT_THROW(save_model(scaled_sum(), "model.xyz"), UnsupportedFormatError);
  EXPECT_THROW(load_model("absent.pfm"), PyFlameRTError);
  EXPECT_THROW(load_model("."), PyFlameRTError);
}

TEST_F(ModelIo, a_model_in_memory) {
  const std::string bytes = onnx_relu();
  const Model model = Model::load(bytes.data(), bytes.size());
  EXPECT_EQ(model.format(), "onnx");
  EXPECT_EQ(model.metadata().graph_name, "simple_relu");
  EXPECT_EQ(model.metadata().producer_name, "a test");
  EXPECT_EQ(model.stats().node_count, 1u);
  const std::vector<uint8_t> vector(bytes.begin(), bytes.end());
  EXPECT_EQ(InferenceSession(vector).get_inputs()[0].name, "input");
}

TEST_F(ModelIo, a_clone_is_edited_on_its_own) {
  const Graph graph = scaled_sum();
  Graph clone = graph.clone();
  clone.remove_node(clone.nodes()[0]);
  EXPECT_EQ(clone.nodes().size(), 1u);
  EXPECT_EQ(graph.nodes().size(), 2u);
  EXPECT_FALSE(clone.validate().empty());
}

TEST_F(ModelIo, a_graph_stays_usable_after_a_session) {
  Graph graph = scaled_sum();
  const InferenceSession session(graph);
  const auto leaky = graph.nodes()[1];
  leaky->set_attr("alpha", 0.25f);
  const Tensor x = Tensor::from_vector<float>({-4, 0, 0}, {1, 3});
  EXPECT_EQ(session.run({}, {{"x", x}})[0].data_ptr<float>()[0], -2.0f);
  EXPECT_EQ(InferenceSession(graph).run({}, {{"x", x}})[0].data_ptr<float>()[0], -1.0f);
}

}  // namespace
}  // namespace pfrt_test
