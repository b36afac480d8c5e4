// SPDX-License-Identifier: Apache-2.0
//
// The guide's "Operator Registry", "Adding Custom Operators" and "Operator Implementation
// Guidelines": snippets as printed, and checks of their effects.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <pyflame_rt/graph.hpp>
#include <pyflame_rt/registry.hpp>
#include <thread>

#include "test/cxxapi/floats.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

// A graph of y = op(x, ...), with inputs float32 [N,3].
Graph graph_of(const std::shared_ptr<Node>& node) {
  Graph graph("custom");
  for (const std::string& input : node->inputs())
    graph.add_input(TensorInfo(input, {std::nullopt, 3}, DType::Float32));
  TensorInfo y("output", {}, DType::Float32);
  y.unranked = true;
  graph.add_output(y);
  graph.add_node(node);
  return graph;
}

Tensor row(std::vector<float> values) { return Tensor::from_vector(values, {1, 3}); }

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(GuideRegistry, operator_registry) {
  // Get registry instance
  auto& registry = OperatorRegistry::instance();

  // Check if operator exists
  if (registry.has("MyCustomOp")) {
    // Get operator function
    const OpFunc* op = registry.get("MyCustomOp");
    FAIL() << "nobody has registered it yet: " << op;
  }

  // List all operators
  std::vector<std::string> ops = registry.list_ops();
  for (const char* name : {"Relu", "Conv", "CustomGelu"})
    EXPECT_TRUE(std::binary_search(ops.begin(), ops.end(), name)) << name;

  // Register custom operator
  registry.register_op(
      "MyCustomOp",
      [](const std::vector<const Tensor*>& inputs, const OpContext& ctx) -> std::vector<Tensor> {
        // Implementation
        (void)ctx;
        return {inputs[0]->clone()};
      });

  ASSERT_TRUE(registry.has("MyCustomOp"));
  const OpFunc* op = registry.get("MyCustomOp");
  ASSERT_NE(op, nullptr);
  const Tensor x = row({1, 2, 3});
  EXPECT_EQ(floats((*op)({&x}, OpContext())[0]), (std::vector<float>{1, 2, 3}));
  const InferenceSession session(graph_of(std::make_shared<Node>(
      "n", "MyCustomOp", std::vector<std::string>{"input"}, std::vector<std::string>{"output"})));
  EXPECT_EQ(floats(session.run({}, {{"input", x}})[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(registry.get("Nothing"), nullptr);
  EXPECT_FALSE(registry.has("Nothing"));
}

TEST(GuideRegistry, custom_gelu_of_a_static_initialiser) {
  // In graph construction
  auto node =
      std::make_shared<Node>("custom_gelu_0", "CustomGelu", std::vector<std::string>{"input"},
                             std::vector<std::string>{"output"});
  node->set_attr("scale", 1.5f);
  Graph graph("gelu");
  graph.add_input(TensorInfo("input", {std::nullopt, 3}, DType::Float32));
  graph.add_output(TensorInfo("output", {std::nullopt, 3}, DType::Float32));
  graph.add_node(node);

  const InferenceSession session(graph);
  const std::vector<float> y = floats(session.run({}, {{"input", row({-2, 0, 1})}})[0]);
  const std::vector<float> x = {-2, 0, 1};
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = 1.5 * static_cast<double>(x[i]);
    const double gelu = 0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
    EXPECT_NEAR(y[i], gelu, 1e-5);
  }
  const Explanation explanation = session.explain();
  ASSERT_EQ(explanation.steps.size(), 1u);
  EXPECT_EQ(explanation.steps[0].nodes, "custom_gelu_0");
  EXPECT_EQ(explanation.steps[0].ops, "CustomGelu");
}

std::vector<Tensor> cpu_my_op(const std::vector<const Tensor*>& inputs, const OpContext& ctx) {
  // 1. Validate inputs
  if (inputs.size() < 2) {
    throw std::invalid_argument("MyOp requires at least 2 inputs");
  }

  const Tensor& a = *inputs[0];
  const Tensor& b = *inputs[1];

  // 2. Get attributes with defaults
  float alpha = ctx.node->get_attr<float>("alpha", 1.0f);
  int64_t axis = ctx.node->get_attr<int64_t>("axis", -1);
  (void)axis;

  // 3. Validate shapes
  if (a.shape() != b.shape()) {
    throw std::invalid_argument("Shape mismatch");
  }

  // 4. Allocate output
  Tensor result(a.shape(), a.dtype());

  // 5. Compute
  const float* a_data = a.data_ptr<float>();
  const float* b_data = b.data_ptr<float>();
  float* out_data = result.data_ptr<float>();

  for (int64_t i = 0; i < a.num_elements(); ++i) {
    out_data[i] = alpha * a_data[i] + b_data[i];
  }

  return {std::move(result)};
}

TEST(GuideRegistry, implementation_guidelines) {
  OperatorRegistry::instance().register_op("MyOp", cpu_my_op);
  auto node = std::make_shared<Node>("my_op_0", "MyOp", std::vector<std::string>{"a", "b"},
                                     std::vector<std::string>{"output"});
  node->set_attr("alpha", 10.0f);
  const InferenceSession session(graph_of(node));
  EXPECT_EQ(floats(session.run({}, {{"a", row({1, 2, 3})}, {"b", row({4, 5, 6})}})[0]),
            (std::vector<float>{14, 25, 36}));
  // An exception of the function reaches the caller, with the node's name.
  const auto run = [&] {
    (void)session.run({}, {{"a", row({1, 2, 3})}, {"b", Tensor({2, 3}, DType::Float32)}});
  };
  EXPECT_NE(message_of(run).find("MyOp 'my_op_0': Shape mismatch"), std::string::npos)
      << message_of(run);
  EXPECT_THROW(run(), InputError);  // std::invalid_argument
  const InferenceSession lonely(graph_of(std::make_shared<Node>(
      "my_op_1", "MyOp", std::vector<std::string>{"a"}, std::vector<std::string>{"output"})));
  EXPECT_NE(message_of([&] {
              (void)lonely.run({}, {{"a", row({1, 2, 3})}});
            }).find("requires at least 2 inputs"),
            std::string::npos);
}

TEST(OperatorRegistry, refuses_names_that_are_taken) {
  auto& registry = OperatorRegistry::instance();
  const OpFunc nothing = [](const std::vector<const Tensor*>&, const OpContext&) {
    return std::vector<Tensor>();
  };
  EXPECT_NE(message_of([&] { registry.register_op("Relu", nothing); }).find("built-in"),
            std::string::npos);
  EXPECT_NE(
      message_of([&] { registry.register_op("CustomGelu", nothing); }).find("another registered"),
      std::string::npos);
  EXPECT_THROW(registry.register_op("", nothing), InputError);
  EXPECT_THROW(registry.register_op("Empty", OpFunc()), InputError);
  EXPECT_FALSE(registry.has("Empty"));
}

TEST(OperatorRegistry, unregisters) {
  auto& registry = OperatorRegistry::instance();
  const size_t before = registry.size();
  registry.register_op("ToRemove", [](const std::vector<const Tensor*>& inputs, const OpContext&) {
    return std::vector<Tensor>{inputs[0]->clone()};
  });
  EXPECT_EQ(registry.size(), before + 1);
  const auto graph = [] {
    return graph_of(std::make_shared<Node>("n", "ToRemove", std::vector<std::string>{"x"},
                                           std::vector<std::string>{"output"}));
  };
  const InferenceSession session(graph());
  EXPECT_TRUE(registry.unregister_op("ToRemove"));
  EXPECT_FALSE(registry.has("ToRemove"));
  EXPECT_FALSE(registry.unregister_op("ToRemove"));
  EXPECT_FALSE(registry.unregister_op("Relu"));
  EXPECT_TRUE(registry.has("Relu"));
  EXPECT_THROW(InferenceSession{graph()}, UnsupportedOperatorError);
  EXPECT_EQ(floats(session.run({}, {{"x", row({1, 2, 3})}})[0]), (std::vector<float>{1, 2, 3}));
}

TEST(OperatorRegistry, clear_leaves_built_in_operators) {
  auto& registry = OperatorRegistry::instance();
  const OpFunc gelu = *registry.get("CustomGelu");
  registry.clear();
  EXPECT_FALSE(registry.has("CustomGelu"));
  EXPECT_TRUE(registry.has("Relu"));
  registry.register_op("CustomGelu", gelu);  // for the other tests
  EXPECT_TRUE(registry.has("CustomGelu"));
}

TEST(OperatorRegistry, gives_built_in_operators) {
  auto& registry = OperatorRegistry::instance();
  const Tensor x = row({-1, 0, 2}), y = row({10, 20, 30});
  EXPECT_EQ(floats((*registry.get("Relu"))({&x}, OpContext())[0]), (std::vector<float>{0, 0, 2}));
  EXPECT_EQ(floats((*registry.get("Add"))({&x, &y}, OpContext())[0]),
            (std::vector<float>{9, 20, 32}));
  // This call has other dimensions.
  const Tensor tall = Tensor::from_vector(std::vector<float>{-1, 1}, {2, 1});
  EXPECT_EQ((*registry.get("Relu"))({&tall}, OpContext())[0].shape(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(registry.get("Relu"), registry.get("Relu"));

  // This call has attributes, several outputs and absent inputs.
  Node split("", "Split", {}, {"a", "b", "c"});
  split.set_attr("axis", int64_t{1});
  split.set_attr("num_outputs", int64_t{3});
  OpContext context;
  context.node = &split;
  const std::vector<Tensor> parts = (*registry.get("Split"))({&x}, context);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(floats(parts[2]), (std::vector<float>{2}));
  const Tensor most = Tensor::from_vector(std::vector<float>{1}, {});
  EXPECT_EQ(floats((*registry.get("Clip"))({&x, nullptr, &most}, OpContext())[0]),
            (std::vector<float>{-1, 0, 1}));
  Node leaky("", "LeakyRelu", {}, {"y"});
  for (const float alpha : {0.5f, 0.25f}) {
    leaky.set_attr("alpha", alpha);
    context.node = &leaky;
    EXPECT_EQ(floats((*registry.get("LeakyRelu"))({&x}, context)[0]),
              (std::vector<float>{-alpha, 0, 2}));
  }
  // Here the contents decide the dimensions.
  const Tensor dims = Tensor::from_vector(std::vector<int64_t>{3, 1}, {2});
  EXPECT_EQ((*registry.get("Reshape"))({&x, &dims}, OpContext())[0].shape(),
            (std::vector<int64_t>{3, 1}));

  EXPECT_THROW((*registry.get("Add"))({&x}, OpContext()), PyFlameRTError);
  Node body("", "If", {}, {"y"});
  Graph graph("g");
  body.set_attr("then_branch", graph.create_subgraph("then").shared());
  context.node = &body;
  EXPECT_THROW((*registry.get("If"))({&x}, context), InputError);
}

TEST(OperatorRegistry, hands_faults_of_results_to_the_caller) {
  auto& registry = OperatorRegistry::instance();
  static std::function<std::vector<Tensor>()> results;
  registry.register_op(
      "Faulty", [](const std::vector<const Tensor*>&, const OpContext&) { return results(); });
  const InferenceSession session(graph_of(std::make_shared<Node>(
      "faulty_0", "Faulty", std::vector<std::string>{"x"}, std::vector<std::string>{"output"})));
  const auto said = [&](std::function<std::vector<Tensor>()> gives) {
    results = std::move(gives);
    return message_of([&] { (void)session.run({}, {{"x", row({1, 2, 3})}}); });
  };
  EXPECT_NE(said([] { return std::vector<Tensor>(); }).find("returned 0 tensors"),
            std::string::npos);
  EXPECT_NE(said([] { return std::vector<Tensor>{Tensor()}; }).find("output 0"), std::string::npos);
  EXPECT_NE(said([] { return std::vector<Tensor>{Tensor({2}, DType::Int64)}; }).find("int64"),
            std::string::npos);
  EXPECT_NE(said([]() -> std::vector<Tensor> { throw 5; }).find("no std::exception"),
            std::string::npos);
  EXPECT_NE(said([]() -> std::vector<Tensor> {
              throw ShapeMismatchError("too long");
            }).find("Faulty 'faulty_0': too long"),
            std::string::npos);
  results = [] { return std::vector<Tensor>{row({7, 8, 9})}; };
  EXPECT_EQ(floats(session.run({}, {{"x", row({1, 2, 3})}})[0]), (std::vector<float>{7, 8, 9}));
}

TEST(OperatorRegistryThreads, run_one_operator) {
  auto& registry = OperatorRegistry::instance();
  registry.register_op("AddOne", [](const std::vector<const Tensor*>& inputs, const OpContext&) {
    Tensor y = inputs[0]->clone();
    for (int64_t i = 0; i < y.num_elements(); ++i) y.data_ptr<float>()[i] += 1;
    return std::vector<Tensor>{y};
  });
  const InferenceSession session(graph_of(std::make_shared<Node>(
      "n", "AddOne", std::vector<std::string>{"x"}, std::vector<std::string>{"output"})));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const auto v = static_cast<float>(t);
      const Tensor x = row({v, v, v});
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(floats(session.run({}, {{"x", x}})[0]), std::vector<float>(3, v + 1));
        EXPECT_EQ(floats((*registry.get("Neg"))({&x}, OpContext())[0]), std::vector<float>(3, -v));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pfrt_test
