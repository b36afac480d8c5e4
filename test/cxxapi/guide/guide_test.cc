// SPDX-License-Identifier: Apache-2.0
//
// The C++ snippets of the developer guide as they stand there, each in a test, followed by checks
// of their effects.
#include <gtest/gtest.h>

#include <iostream>
#include <pyflame_rt/graph.hpp>
#include <pyflame_rt/import/onnx_importer.hpp>
#include <pyflame_rt/node.hpp>
#include <pyflame_rt/pyflame_rt.hpp>
#include <pyflame_rt/session.hpp>
#include <pyflame_rt/tensor.hpp>

#include "io/loader.hpp"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

using Guide = InTemporaryFolder;

TEST(GuideTensor, tensor_class) {
  // Create tensor with shape and dtype
  Tensor tensor({2, 3, 4}, DType::Float32);

  // Access properties
  std::vector<int64_t> shape = tensor.shape();
  DType dtype = tensor.dtype();
  size_t ndim = tensor.ndim();
  int64_t num_elements = tensor.num_elements();
  size_t size_bytes = tensor.size_bytes();
  EXPECT_EQ(shape, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(dtype, DType::Float32);
  EXPECT_EQ(ndim, 3u);
  EXPECT_EQ(num_elements, 24);
  EXPECT_EQ(size_bytes, 96u);

  // Access data
  float* data = tensor.data_ptr<float>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    data[i] = static_cast<float>(i);
  }
  EXPECT_EQ(tensor.data_ptr<float>()[23], 23.0f);

  // Fill with value
  tensor.fill(0.0f);
  EXPECT_EQ(tensor.data_ptr<float>()[23], 0.0f);

  // Clone (deep copy)
  Tensor clone = tensor.clone();
  EXPECT_NE(clone.data(), tensor.data());

  // Reshape
  Tensor reshaped = tensor.reshape({6, 4});
  EXPECT_EQ(reshaped.shape(), (std::vector<int64_t>{6, 4}));

  // Create view (non-owning)
  Tensor view = tensor.view();
  EXPECT_FALSE(view.owns_data());
  EXPECT_EQ(view.data(), tensor.data());
}

TEST(GuideTensor, tensor_views) {
  Tensor original({1000, 1000}, DType::Float32);
  Tensor view = original.view();  // No memory allocation
  view.data_ptr<float>()[0] = 42.0f;
  EXPECT_EQ(original.data_ptr<float>()[0], 42.0f);
}

TEST(GuideTensor, data_types) {
  const std::pair<DType, size_t> sizes[] = {
      {DType::Float32, 4}, {DType::Float16, 2}, {DType::BFloat16, 2}, {DType::Float64, 8},
      {DType::Int64, 8},   {DType::Int32, 4},   {DType::Int16, 2},    {DType::Int8, 1},
      {DType::UInt8, 1},   {DType::Bool, 1}};
  EXPECT_EQ(static_cast<int>(DType::Float32), 0);
  for (const auto& [dtype, bytes] : sizes)
    EXPECT_EQ(Tensor({1}, dtype).size_bytes(), bytes) << dtype_name(dtype);
}

TEST(GuideTensor, memory_outlives_the_tensor_it_came_from) {
  Tensor tensor({4}, DType::Float32);
  tensor.fill(3.0f);
  Tensor view = tensor.view(), rows = tensor.reshape({2, -1});
  tensor = Tensor();
  EXPECT_FALSE(tensor.is_valid());
  EXPECT_EQ(view.data_ptr<float>()[3], 3.0f);
  EXPECT_EQ(rows.shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(rows.data_ptr<float>()[0], 3.0f);
}

TEST(GuideTensor, empty_and_rank_0) {
  Tensor empty({0, 3}, DType::Float32);
  empty.fill(1.0f);
  EXPECT_EQ(empty.num_elements(), 0);
  EXPECT_EQ(empty.clone().shape(), empty.shape());
  EXPECT_EQ(empty.view().shape(), empty.shape());
  EXPECT_EQ(empty.reshape({3, 0}).shape(), (std::vector<int64_t>{3, 0}));
  Tensor scalar(std::vector<int64_t>{}, DType::Int64);
  scalar.fill(7);
  EXPECT_EQ(scalar.ndim(), 0u);
  EXPECT_EQ(scalar.reshape({1}).data_ptr<int64_t>()[0], 7);
}

TEST(GuideNode, node_class) {
  // Create node
  Node node("relu_0",   // name
            "Relu",     // op_type
            {"input"},  // inputs
            {"output"}  // outputs
  );

  // Set attributes
  node.set_attr("alpha", 0.01f);
  node.set_attr("axis", int64_t(1));
  node.set_attr("axes", std::vector<int64_t>{0, 2});

  // Get attributes
  float alpha = node.get_attr<float>("alpha", 0.0f);  // with default
  auto axis = node.get_attr<int64_t>("axis");         // returns optional

  EXPECT_EQ(node.name(), "relu_0");
  EXPECT_EQ(node.op_type(), "Relu");
  EXPECT_EQ(node.inputs(), std::vector<std::string>{"input"});
  EXPECT_EQ(node.outputs(), std::vector<std::string>{"output"});
  EXPECT_EQ(alpha, 0.01f);
  ASSERT_TRUE(axis.has_value());
  EXPECT_EQ(*axis, 1);
  EXPECT_EQ(node.get_attr<std::vector<int64_t>>("axes"), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(node.get_attr<float>("beta", 2.5f), 2.5f);
  EXPECT_FALSE(node.get_attr<int64_t>("alpha").has_value());
  EXPECT_FALSE(node.get_attr<std::string>("nothing").has_value());
}

TEST(GuideGraph, graph_class) {
  // Create graph
  Graph graph("my_model");

  // Add inputs/outputs
  TensorInfo input_info("input", {{1}, {3}, {224}, {224}}, DType::Float32);
  TensorInfo output_info("output", {{1}, {1000}}, DType::Float32);
  graph.add_input(input_info);
  graph.add_output(output_info);

  // Add initializers
  Tensor weight({1000, 2048}, DType::Float32);
  weight.fill(0.01f);
  graph.add_initializer("fc_weight", std::move(weight));

  // Add nodes
  auto node =
      std::make_shared<Node>("fc_0", "Gemm", std::vector<std::string>{"flatten_out", "fc_weight"},
                             std::vector<std::string>{"output"});
  graph.add_node(node);

  // Validate graph
  std::vector<std::string> errors = graph.validate();
  if (!errors.empty()) {
    for (const auto& err : errors) {
      std::cerr << "Validation error: " << err << std::endl;
    }
  }

  // Nothing makes "flatten_out".
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("flatten_out"), std::string::npos) << errors[0];

  auto flatten = make_node("flatten", "Flatten", {"input"}, {"flatten_out"});
  graph.add_node(flatten);

  // Topological sort
  auto sorted_nodes = graph.topological_sort();

  ASSERT_EQ(sorted_nodes.size(), 2u);
  EXPECT_EQ(sorted_nodes[0], flatten);
  EXPECT_EQ(sorted_nodes[1], node);
  EXPECT_EQ(graph.name(), "my_model");
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.inputs()[0].shape, input_info.shape);
  EXPECT_FALSE(graph.inputs()[0].is_dynamic());
  EXPECT_EQ(graph.initializers().at("fc_weight").num_elements(), 1000 * 2048);
}

TEST(GuideGraph, dynamic_dimensions) {
  TensorInfo info("x", {std::nullopt, 3}, DType::Float32);
  EXPECT_TRUE(info.is_dynamic());
  EXPECT_EQ(NodeArg(info).type(), "tensor(float32)");
}

TEST_F(Guide, inference_session) {
  save_model(one_node("Relu", {{2}, {3}}), "model.pfm");
  Tensor input_tensor = Tensor::from_vector<float>({-1, 2, -3, 4, -5, 6}, {2, 3});

  // Create session
  SessionOptions options;
  options.device = "cpu";
  options.num_threads = 4;

  InferenceSession session("model.pfm", options);

  // Get metadata
  auto inputs = session.get_inputs();
  auto outputs = session.get_outputs();
  auto meta = session.get_modelmeta();

  // Run inference
  std::unordered_map<std::string, Tensor> input_feed;
  input_feed["input"] = std::move(input_tensor);

  std::vector<Tensor> results = session.run({}, input_feed);

  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].name, "input");
  EXPECT_EQ(inputs[0].shape, (Shape{2, 3}));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].type(), "tensor(float32)");
  EXPECT_EQ(meta.graph_name, "one_Relu");
  ASSERT_EQ(results.size(), 1u);
  const float* y = results[0].data_ptr<float>();
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{0, 2, 0, 4, 0, 6}));
  const std::vector<std::string> providers = session.get_providers();
  EXPECT_NE(std::find(providers.begin(), providers.end(), "CPUExecutionProvider"), providers.end());
}

TEST_F(Guide, running_with_names_and_options) {
  save_model(one_node("Relu", {{10}}), "model.pfm");
  InferenceSession session("model.pfm");
  RunOptions run_opts;
  run_opts.tag = "batch_1";
  run_opts.log_level = "debug";
  run_opts.timeout_ms = 60000;
  Tensor x({10}, DType::Float32);
  x.fill(2.0f);
  const std::vector<Tensor> results = session.run({"output"}, {{"input", x}}, run_opts);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].data_ptr<float>()[9], 2.0f);
}

TEST_F(Guide, session_reuse_gives_results_of_their_own) {
  InferenceSession session(one_node("Neg", {{4}}));
  Tensor x({4}, DType::Float32);
  x.fill(1.0f);
  const Tensor first = session.run({}, {{"input", x}})[0];
  x.fill(2.0f);
  const Tensor second = session.run({}, {{"input", x}})[0];
  EXPECT_EQ(first.data_ptr<float>()[0], -1.0f);
  EXPECT_EQ(second.data_ptr<float>()[0], -2.0f);
}

TEST_F(Guide, import_api) {
  write_file("model.onnx", onnx_relu());
  Tensor input_tensor({1, 10}, DType::Float32);
  input_tensor.fill(-1.0f);
  bool ran = false;

  // Create importer
  ONNXImporter importer;

  // Configure options
  ImportOptions options;
  options.validate = true;
  options.infer_shapes = true;

  // Import model
  ImportResult result = importer.import_model("model.onnx", options);

  if (result.success) {
    // Create session from graph
    InferenceSession session(std::move(result.graph));

    // Run inference
    auto outputs = session.run({}, {{"input", input_tensor}});
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].data_ptr<float>()[9], 0.0f);
    ran = true;
  }

  EXPECT_TRUE(ran) << result.error;
  EXPECT_EQ(result.stats.node_count, 1u);
}

TEST_F(Guide, import_says_why_it_failed) {
  ONNXImporter importer;
  const ImportResult missing = importer.import_model("absent.onnx");
  EXPECT_FALSE(missing.success);
  EXPECT_NE(missing.error.find("absent.onnx"), std::string::npos) << missing.error;
  save_model(one_node("Relu", {{1}}), "model.pfm");
  EXPECT_FALSE(importer.import_model("model.pfm").success);
}

TEST_F(Guide, import_optimises) {
  Graph graph("dead");
  graph.add_input({"x", {{1}}, DType::Float32});
  graph.add_node(std::make_shared<Node>("used", "Relu", std::vector<std::string>{"x"},
                                        std::vector<std::string>{"y"}));
  graph.add_node(std::make_shared<Node>("unused", "Exp", std::vector<std::string>{"x"},
                                        std::vector<std::string>{"z"}));
  graph.add_output({"y", {{1}}, DType::Float32});
  save_model(graph, "dead.onnx");
  ImportOptions options;
  options.optimize = true;
  const ImportResult result = ONNXImporter().import_model("dead.onnx", options);
  ASSERT_TRUE(result.success) << result.error;
  EXPECT_EQ(result.stats.node_count, 2u);
  EXPECT_EQ(result.graph.nodes().size(), 1u);
}

TEST_F(Guide, creating_models_programmatically) {
  // Build graph
  Graph graph("simple_relu");

  TensorInfo input("input", {{1}, {10}}, DType::Float32);
  TensorInfo output("output", {{1}, {10}}, DType::Float32);
  graph.add_input(input);
  graph.add_output(output);

  auto relu = std::make_shared<Node>("relu_0", "Relu", std::vector<std::string>{"input"},
                                     std::vector<std::string>{"output"});
  graph.add_node(relu);

  // Save to file
  save_model(graph, "simple_relu.pfm");

  EXPECT_EQ(read_file("simple_relu.pfm").substr(0, 4), std::string("PFM\0", 4));
  InferenceSession session("simple_relu.pfm");
  EXPECT_EQ(session.get_modelmeta().graph_name, "simple_relu");
  EXPECT_EQ(session.get_inputs()[0].shape, (Shape{1, 10}));
}

}  // namespace
}  // namespace pfrt_test
