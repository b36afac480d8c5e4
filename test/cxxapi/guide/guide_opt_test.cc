// SPDX-License-Identifier: Apache-2.0
//
// The chapter "Graph Optimization" of the developer guide: its C++ snippets as they stand there,
// its Python snippets in the same words, each followed by checks of its effect.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <pyflame_rt/opt/pass.hpp>
#include <pyflame_rt/opt/passes.hpp>
#include <pyflame_rt/opt/pattern_matcher.hpp>
#include <pyflame_rt/pyflame_rt.hpp>

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using namespace pyflame_rt::opt;

using Names = std::vector<std::string>;

void add(Graph& graph, const std::string& op, const Names& inputs, const std::string& output,
         const std::map<std::string, AttributeValue>& attributes = {}) {
  auto node = std::make_shared<Node>(op + "_" + output, op, inputs, Names{output});
  for (const auto& [name, value] : attributes)
    std::visit([&, key = name](const auto& v) { node->set_attr(key, v); }, value);
  graph.add_node(node);
}

Tensor filled(const std::vector<int64_t>& shape, float first, float step) {
  Tensor tensor(shape, DType::Float32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.data_ptr<float>()[i] = first + step * static_cast<float>(i % 17);
  return tensor;
}

// A graph with Conv, BatchNormalization and Relu; two equal sums; a dead branch; constants;
// Identity and Dropout.
Graph network() {
  Graph graph("network");
  graph.add_input({"input", {1, 2, 5, 5}, DType::Float32});
  graph.add_initializer("w", filled({4, 2, 3, 3}, -0.5f, 0.07f));
  for (const char* name : {"scale", "bias", "mean", "var"})
    graph.add_initializer(name, filled({4}, 0.5f, 0.25f));
  graph.add_initializer("unused", filled({7}, 0, 1));
  graph.add_initializer("a", Tensor::from_vector<float>({1, 2, 3}, {3}));
  graph.add_initializer("b", Tensor::from_vector<float>({4, 5, 6}, {3}));
  add(graph, "Conv", {"input", "w"}, "conv", {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  add(graph, "BatchNormalization", {"conv", "scale", "bias", "mean", "var"}, "norm");
  add(graph, "Relu", {"norm"}, "relu");
  add(graph, "Identity", {"relu"}, "same");
  add(graph, "Dropout", {"same"}, "kept");
  add(graph, "Add", {"kept", "kept"}, "x");
  add(graph, "Add", {"kept", "kept"}, "y");
  add(graph, "Mul", {"x", "y"}, "output");
  add(graph, "Sigmoid", {"kept"}, "dead");
  add(graph, "Add", {"a", "b"}, "sum");
  graph.add_output({"output", {1, 4, 5, 5}, DType::Float32});
  graph.add_output({"sum", {3}, DType::Float32});
  return graph;
}

std::vector<float> run(const Graph& graph, const std::string& output = "output") {
  SessionOptions options;
  options.optimization_level = OptLevel::None;
  InferenceSession session(graph, options);
  const Tensor result = session.run({output}, {{"input", filled({1, 2, 5, 5}, -1, 0.13f)}}).front();
  return {result.data_ptr<float>(), result.data_ptr<float>() + result.num_elements()};
}

size_t count(const Graph& graph, const std::string& op) {
  size_t n = 0;
  for (const auto& node : graph.nodes()) n += node->op_type() == op;
  return n;
}

void expect_same(const Graph& before, const Graph& after) {
  const std::vector<float> a = run(before), b = run(after);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-5f * (1 + std::abs(a[i]))) << "element " << i;
  EXPECT_EQ(run(after, "sum"), (std::vector<float>{5, 7, 9}));
}

TEST(GuideOptimization, sessions_take_a_level) {
  const Graph graph = network();
  std::vector<std::vector<float>> results;
  for (const OptLevel level :
       {OptLevel::None, OptLevel::Basic, OptLevel::Extended, OptLevel::All}) {
    SessionOptions options;
    options.optimization_level = level;
    options.verbose_optimization = level == OptLevel::All;
    InferenceSession session(graph, options);
    const Tensor out = session.run({"output"}, {{"input", filled({1, 2, 5, 5}, -1, 0.13f)}})[0];
    results.emplace_back(out.data_ptr<float>(), out.data_ptr<float>() + out.num_elements());
  }
  for (size_t level = 1; level < results.size(); ++level)
    for (size_t i = 0; i < results[0].size(); ++i)
      EXPECT_NEAR(results[0][i], results[level][i], 1e-5f * (1 + std::abs(results[0][i])));
}

// y = Relu((x * w + b) + x2), all of [batch, 4].
Graph dense(const std::optional<int64_t>& batch, const std::string& name = {}) {
  Graph graph("dense");
  for (const char* input : {"input", "other"}) {
    TensorInfo info(input, {batch, 4}, DType::Float32);
    if (!name.empty()) info.dim_names = {name, ""};
    graph.add_input(info);
  }
  graph.add_initializer("w", filled({4, 4}, -0.5f, 0.07f));
  graph.add_initializer("b", filled({4}, 0.5f, 0.25f));
  add(graph, "MatMul", {"input", "w"}, "product");
  add(graph, "Add", {"product", "b"}, "biased");
  add(graph, "Add", {"biased", "other"}, "sum");
  add(graph, "Relu", {"sum"}, "output");
  graph.add_output({"output", {batch, 4}, DType::Float32});
  return graph;
}

TEST(GuideOptimization, unknown_dimensions_fuse_as_named_and_known_ones_do) {
  const auto optimised = [](Graph graph) {
    FusionConfig config;
    (void)fuse_operators(graph, config);
    EXPECT_EQ(count(graph, "Gemm"), 1u);
    EXPECT_EQ(count(graph, "MatMul"), 0u);
    return graph;
  };
  EXPECT_EQ(optimised(dense(3)).inputs()[0].shape, (Shape{3, 4}));
  EXPECT_EQ(optimised(dense(std::nullopt, "N")).inputs()[0].dim_names, (Names{"N", ""}));
  const Graph graph = optimised(dense(std::nullopt));
  // The batches stay unknown and nameless.
  EXPECT_EQ(graph.inputs()[0].shape, (Shape{std::nullopt, 4}));
  EXPECT_TRUE(graph.inputs()[0].dim_names.empty());
  EXPECT_TRUE(graph.outputs()[0].dim_names.empty());
  // The two batches may differ where one is 1.
  const InferenceSession session(graph);
  for (const int64_t rows : {1, 2})
    EXPECT_EQ(
        session.run({}, {{"input", filled({rows, 4}, 0, 1)}, {"other", filled({1, 4}, 0, 1)}})[0]
            .shape(),
        (std::vector<int64_t>{rows, 4}));
}

TEST(GuideOptimization, at_level_none_each_node_is_a_step) {
  Graph graph("chain");
  graph.add_input({"input", {64}, DType::Float32});
  add(graph, "Add", {"input", "input"}, "sum");
  add(graph, "Relu", {"sum"}, "relu");
  add(graph, "Mul", {"relu", "sum"}, "product");
  add(graph, "Tanh", {"product"}, "output");
  graph.add_output({"output", {64}, DType::Float32});
  std::vector<float> first;
  for (const OptLevel level : {OptLevel::None, OptLevel::Basic, OptLevel::All}) {
    SessionOptions options;
    options.optimization_level = level;
    const InferenceSession session(graph, options);
    const Tensor out = session.run({}, {{"input", filled({64}, -1, 0.13f)}})[0];
    const std::vector<float> now(out.data_ptr<float>(), out.data_ptr<float>() + 64);
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i) EXPECT_NEAR(now[i], first[i], 1e-6f);
    Names steps;
    for (const auto& step : session.explain().steps) steps.push_back(step.ops);
    if (level == OptLevel::None)
      EXPECT_EQ(steps, (Names{"Add", "Relu", "Mul", "Tanh"}));
    else
      EXPECT_EQ(steps.size(), 1u);
  }
}

TEST(GuideOptimization, constant_folding) {
  Graph graph = network();
  const Graph before = graph.clone();
  ConstantFoldingConfig config;
  config.max_tensor_bytes = 16 * 1024 * 1024;  // Max 16MB tensors
  config.fold_shape_ops = true;                // Fold Shape, Gather, etc.
  config.fold_expensive_ops = false;           // Don't fold MatMul, Conv
  config.exclude_ops = {"RandomNormal"};       // Never fold these

  PassResult result = fold_constants(graph, config);
  std::cout << "Folded " << result.stats.constants_folded << " constants\n";
  EXPECT_TRUE(result.modified);
  EXPECT_EQ(result.stats.constants_folded, 1u);
  EXPECT_EQ(graph.initializer("sum").data_ptr<float>()[2], 9.0f);
  expect_same(before, graph);

  Graph again = network();
  config.exclude_ops = {"Add"};
  EXPECT_EQ(fold_constants(again, config).stats.constants_folded, 0u);
  config.exclude_ops.clear();
  config.max_tensor_bytes = 11;
  EXPECT_EQ(fold_constants(again, config).stats.constants_folded, 0u);
}

TEST(GuideOptimization, shapes_are_folded_when_they_are_known) {
  Graph graph("shapes");
  graph.add_input({"input", {1, 3, 4, 4}, DType::Float32});
  graph.add_input({"data", {48}, DType::Float32});
  add(graph, "Shape", {"input"}, "shape");
  add(graph, "Reshape", {"data", "shape"}, "output");
  graph.add_output({"output", {1, 3, 4, 4}, DType::Float32});
  ConstantFoldingConfig config;
  config.fold_shape_ops = false;
  EXPECT_FALSE(fold_constants(graph, config).modified);
  EXPECT_EQ(count(graph, "Shape"), 1u);
  EXPECT_TRUE(fold_constants(graph).modified);
  EXPECT_EQ(count(graph, "Shape"), 0u);
  EXPECT_EQ(graph.initializer("shape").data_ptr<int64_t>()[1], 3);
}

TEST(GuideOptimization, expensive_operators_are_folded_when_asked) {
  Graph graph("products");
  graph.add_initializer("a", filled({2, 3}, 1, 1));
  graph.add_initializer("b", filled({3, 2}, 1, 1));
  add(graph, "MatMul", {"a", "b"}, "product");
  graph.add_output({"product", {2, 2}, DType::Float32});
  EXPECT_FALSE(fold_constants(graph).modified);
  ConstantFoldingConfig config;
  config.fold_expensive_ops = true;
  EXPECT_EQ(fold_constants(graph, config).stats.constants_folded, 1u);
  EXPECT_EQ(graph.initializer("product").data_ptr<float>()[0], 22.0f);
}

// A provider packs a product's weights, whatever their size.
TEST(GuideOptimization, transposed_weights_are_folded_beyond_the_limit_for_products_alone) {
  ConstantFoldingConfig config;
  config.max_tensor_bytes = 11;
  for (const bool other_user : {false, true}) {
    Graph graph("tied");
    graph.add_input({"x", {1, 2, 3}, DType::Float32});
    graph.add_initializer("w", filled({4, 3}, 1, 1));
    add(graph, "Transpose", {"w"}, "t");
    add(graph, "MatMul", {"x", "t"}, "y");
    graph.add_output({"y", {1, 2, 4}, DType::Float32});
    if (other_user) {
      add(graph, "Relu", {"t"}, "z");
      graph.add_output({"z", {3, 4}, DType::Float32});
    }
    EXPECT_EQ(fold_constants(graph, config).stats.constants_folded, other_user ? 0u : 1u);
    if (!other_user) {
      EXPECT_EQ(graph.initializer("t").data_ptr<float>()[1], 4.0f);
    }
  }
}

TEST(GuideOptimization, dead_code) {
  Graph graph = network();
  const Graph before = graph.clone();
  DCEConfig config;
  config.remove_initializers = true;  // Remove unused weights
  config.remove_identity = true;      // Remove Identity nodes
  config.remove_dropout = true;       // Remove Dropout in inference

  PassResult result = eliminate_dead_code(graph, config);
  std::cout << "Removed " << result.stats.nodes_removed << " nodes\n";
  std::cout << "Removed " << result.stats.initializers_removed << " initializers\n";
  EXPECT_EQ(result.stats.nodes_removed, 3u);  // Identity, Dropout, Sigmoid
  EXPECT_EQ(result.stats.initializers_removed, 1u);
  EXPECT_EQ(count(graph, "Identity") + count(graph, "Dropout") + count(graph, "Sigmoid"), 0u);
  expect_same(before, graph);

  Graph kept = network();
  EXPECT_EQ(eliminate_dead_code(kept, {false, false, false}).stats.nodes_removed, 1u);
  EXPECT_EQ(count(kept, "Identity"), 1u);
  EXPECT_EQ(count(kept, "Dropout"), 1u);
  EXPECT_EQ(kept.initializer("unused").num_elements(), 7);
}

TEST(GuideOptimization, common_subexpressions) {
  Graph graph = network();
  const Graph before = graph.clone();
  CSEConfig config;
  config.check_attributes = true;  // Include attributes in comparison
  config.max_comparisons = 1000;   // Limit comparisons per node

  PassResult result = eliminate_common_subexpressions(graph, config);
  std::cout << "Eliminated " << result.stats.nodes_removed << " redundant nodes\n";
  EXPECT_EQ(result.stats.nodes_removed, 1u);
  EXPECT_EQ(count(graph, "Add"), 2u);
  expect_same(before, graph);

  Graph none = network();
  config.max_comparisons = 0;
  EXPECT_EQ(eliminate_common_subexpressions(none, config).stats.nodes_removed, 0u);
}

TEST(GuideOptimization, attributes_count_in_comparisons) {
  const auto leaky = [] {
    Graph graph("leaky");
    graph.add_input({"input", {4}, DType::Float32});
    add(graph, "LeakyRelu", {"input"}, "x", {{"alpha", 0.1f}});
    add(graph, "LeakyRelu", {"input"}, "y", {{"alpha", 0.1f}});
    add(graph, "LeakyRelu", {"input"}, "z", {{"alpha", 0.2f}});
    for (const char* name : {"x", "y", "z"}) {
      add(graph, "Neg", {name}, std::string("neg_") + name);
      graph.add_output({std::string("neg_") + name, {4}, DType::Float32});
    }
    return graph;
  };
  Graph graph = leaky();
  eliminate_common_subexpressions(graph);
  EXPECT_EQ(count(graph, "LeakyRelu"), 2u);
  Graph other = leaky();
  CSEConfig config;
  config.check_attributes = false;
  eliminate_common_subexpressions(other, config);
  EXPECT_EQ(count(other, "LeakyRelu"), 3u) << "nodes with attributes are left alone";
}

TEST(GuideOptimization, fusion) {
  Graph graph = network();
  eliminate_dead_code(graph);
  const Graph before = graph.clone();
  FusionConfig config;
  config.fuse_conv_bn = true;                 // Conv + BatchNorm
  config.fuse_conv_bn_activation = true;      // Conv + BN + Relu
  config.fuse_matmul_add = true;              // MatMul + Add -> Gemm
  config.fuse_elementwise_activation = true;  // Add/Mul + Relu
  config.check_backend_support = true;        // Only fuse if backend supports
  config.target_backend = "cpu";              // Target backend name

  PassResult result = fuse_operators(graph, config);
  std::cout << "Fused " << result.stats.nodes_fused << " node patterns\n";
  EXPECT_GE(result.stats.nodes_fused, 1u);
  EXPECT_EQ(result.stats.rules.count("FusedConvBNRelu"), 1u);
  EXPECT_EQ(count(graph, "BatchNormalization"), 0u);
  expect_same(before, graph);

  Graph off = before.clone();
  config.fuse_conv_bn_activation = false;
  config.fuse_conv_bn = false;
  fuse_operators(off, config);
  EXPECT_EQ(count(off, "BatchNormalization"), 1u);
  config.fuse_conv_bn = true;
  EXPECT_EQ(fuse_operators(off, config).stats.rules.count("FusedConvBN"), 1u);
}

TEST(GuideOptimization, matmul_and_add_become_gemm) {
  const auto dense = [] {
    Graph graph("dense");
    graph.add_input({"input", {3, 4}, DType::Float32});
    graph.add_input({"w", {4, 2}, DType::Float32});
    graph.add_initializer("b", filled({2}, 1, 1));
    add(graph, "MatMul", {"input", "w"}, "product");
    add(graph, "Add", {"product", "b"}, "output");
    graph.add_output({"output", {3, 2}, DType::Float32});
    return graph;
  };
  Graph graph = dense();
  EXPECT_EQ(fuse_operators(graph).stats.rules.count("Gemm"), 1u);
  EXPECT_EQ(count(graph, "Gemm"), 1u);
  EXPECT_EQ(graph.nodes().size(), 1u);
  Graph off = dense();
  FusionConfig config;
  config.fuse_matmul_add = false;
  fuse_operators(off, config);
  EXPECT_EQ(count(off, "MatMul"), 1u);
}

// The backend's own answer decides: the null provider runs nothing.
TEST(GuideOptimization, fusion_asks_the_target_backend) {
  const auto sums = [] {
    Graph graph("sums");
    graph.add_input({"x", {64}, DType::Float32});
    graph.add_input({"y", {64}, DType::Float32});
    add(graph, "Add", {"x", "y"}, "sum");
    add(graph, "Relu", {"sum"}, "output");
    graph.add_output({"output", {64}, DType::Float32});
    return graph;
  };
  FusionConfig config;
  config.target_backend = "null";
  Graph refused = sums();
  EXPECT_EQ(fuse_operators(refused, config).stats.nodes_fused, 0u);
  config.check_backend_support = false;
  Graph unasked = sums();
  const PassResult result = fuse_operators(unasked, config);
  EXPECT_EQ(result.stats.rules.count("FusedAddRelu"), 1u);
  config.target_backend = "toaster";
  config.check_backend_support = true;
  Graph unknown = sums();
  EXPECT_THROW(fuse_operators(unknown, config), PyFlameRTError);
}

TEST(GuideOptimization, quick_and_custom_configuration) {
  Graph graph = network();
  const Graph before = graph.clone();
  {
    // Quick optimization
    PassManager pm = PassManager::create_default(OptLevel::Extended);
    PassResult result = pm.run_until_fixed_point(graph);
    EXPECT_TRUE(result.modified);
    EXPECT_EQ(graph.nodes().size(), 4u);  // Conv and its tail Relu, Add, Mul
    expect_same(before, graph);
    EXPECT_FALSE(pm.run_until_fixed_point(graph).modified);
  }
  graph = before.clone();
  {
    // Custom configuration
    PassManagerConfig config;
    config.opt_level = OptLevel::All;
    config.verbose = true;
    config.skip_passes = {"LayoutOptimizationPass"};

    PassManager pm(config);
    pm.register_pass(std::make_unique<ConstantFoldingPass>());
    pm.register_pass(std::make_unique<DeadCodeEliminationPass>());
    pm.register_pass(std::make_unique<CSEPass>());
    pm.register_pass(std::make_unique<OperatorFusionPass>());

    PassResult result = pm.run(graph);

    if (result.modified) {
      std::cout << "Removed " << result.stats.nodes_removed << " nodes\n";
    }
    EXPECT_TRUE(result.modified);
    ASSERT_EQ(result.reports.size(), 4u);
    EXPECT_EQ(result.reports[0].pass, "ConstantFoldingPass");
    EXPECT_EQ(result.reports[0].runs, 1u);
    EXPECT_GE(result.reports[1].nodes_before, result.reports[1].nodes_after);
    expect_same(before, graph);
  }
}

TEST(GuideOptimization, the_pass_manager_in_the_words_of_the_python_snippet) {
  Graph graph = network();
  const Graph before = graph.clone();
  PassManagerConfig config;
  config.opt_level = OptLevel::Extended;
  config.max_iterations = 10;         // Max fixed-point iterations
  config.verbose = true;              // Enable logging
  config.validate_after_pass = true;  // Validate after each pass
  PassManager pm(config);
  EXPECT_FALSE(pm.run(graph).modified) << "no pass is registered";
  pm = PassManager::create_default(OptLevel::Extended);

  PassResult result = pm.run(graph);
  EXPECT_TRUE(result.modified);
  result = pm.run_pass("ConstantFoldingPass", graph);
  EXPECT_FALSE(result.modified);
  result = pm.run_until_fixed_point(graph);
  std::cout << "Modified: " << result.modified << "\nStats: " << result.stats << "\n";
  for (const std::string& warning : result.warnings) std::cout << "Warning: " << warning << "\n";
  expect_same(before, graph);

  result = optimize(graph, OptLevel::All);
  EXPECT_FALSE(result.modified);
  EXPECT_THROW(pm.run_pass("ConstantFoldngPass", graph), PyFlameRTError);
}

TEST(GuideOptimization, passes_above_the_level_are_left_out) {
  Graph graph = network();
  PassManagerConfig config;
  config.opt_level = OptLevel::Basic;
  PassManager pm(config);
  pm.register_pass(std::make_unique<CSEPass>());
  EXPECT_FALSE(pm.run(graph).modified);
  EXPECT_TRUE(pm.run_pass("CSEPass", graph).modified) << "by name it runs whatever the level";
}

class MyCustomPass : public Pass {
 public:
  const char* name() const override { return "MyCustomPass"; }
  const char* description() const override { return "Custom optimization pass"; }

  PassResult run(Graph& graph) override {
    PassResult result;

    // Iterate through nodes
    for (auto& node : graph.nodes()) {
      // Apply transformations
      if (should_transform(*node)) {
        transform_node(graph, *node);
        result.modified = true;
        result.stats.nodes_removed++;
      }
    }
    if (result.modified) result.warnings.push_back("Floor of Round was there");
    return result;
  }

  bool should_run(OptLevel level) const override { return level >= OptLevel::Extended; }

 private:
  bool should_transform(const Node& node) {
    return node.op_type() == "Floor" && node.inputs()[0].find("round") != std::string::npos;
  }
  void transform_node(Graph& graph, Node& node) {
    graph.replace_uses(node.outputs()[0], node.inputs()[0]);
    graph.remove_node(node);
  }
};

Graph rounded() {
  Graph graph("rounded");
  graph.add_input({"input", {4}, DType::Float32});
  add(graph, "Round", {"input"}, "round");
  add(graph, "Floor", {"round"}, "twice");
  add(graph, "Neg", {"twice"}, "output");
  graph.add_output({"output", {4}, DType::Float32});
  return graph;
}

TEST(GuideOptimization, custom_pass) {
  for (const bool with_built_in : {false, true}) {
    Graph graph = rounded();
    PassManager pm = with_built_in ? PassManager::create_default(OptLevel::Extended)
                                   : PassManager(PassManagerConfig());
    pm.register_pass(std::make_unique<MyCustomPass>());
    const PassResult result = pm.run_until_fixed_point(graph);
    EXPECT_TRUE(result.modified);
    EXPECT_EQ(count(graph, "Floor"), 0u);
    ASSERT_EQ(result.warnings.size(), 1u);
    EXPECT_NE(result.warnings[0].find("Floor of Round"), std::string::npos);
  }
  Graph graph = rounded();
  PassManagerConfig basic;
  basic.opt_level = OptLevel::Basic;
  PassManager pm(basic);
  pm.register_pass(std::make_unique<MyCustomPass>());
  EXPECT_FALSE(pm.run(graph).modified) << "should_run says Extended";
}

class FollowingPass : public Pass {
 public:
  FollowingPass(const char* name, Names after) : name_(name), after_(std::move(after)) {}
  const char* name() const override { return name_; }
  PassResult run(Graph&) override { return {}; }
  Names after() const override { return after_; }

 private:
  const char* name_;
  Names after_;
};

TEST(GuideOptimization, passes_run_after_those_that_they_follow) {
  PassManagerConfig config;
  config.opt_level = OptLevel::All;
  PassManager pm(config);
  pm.register_pass(std::make_unique<FollowingPass>("Last", Names{"Own", "OperatorFusionPass"}));
  pm.register_pass(std::make_unique<LayoutOptimizationPass>());
  pm.register_pass(std::make_unique<FollowingPass>("Own", Names{"CSEPass", "NotHere"}));
  pm.register_pass(std::make_unique<OperatorFusionPass>());
  pm.register_pass(std::make_unique<CSEPass>());
  pm.register_pass(std::make_unique<ConstantFoldingPass>());
  Graph graph = network();
  Names ran;
  for (const PassReport& report : pm.run(graph).reports) ran.push_back(report.pass);
  EXPECT_EQ(ran, (Names{"ConstantFoldingPass", "CSEPass", "Own", "OperatorFusionPass", "Last",
                        "LayoutOptimizationPass"}));
  pm.register_pass(std::make_unique<FollowingPass>("Own", Names{"Last"}));
  EXPECT_THROW(pm.run(graph), InputError);
}

// The headers name the passes that each built-in pass follows, and the library obeys them.
TEST(GuideOptimization, built_in_passes_say_what_they_follow) {
  const auto make = [](const std::string& name) -> std::unique_ptr<Pass> {
    if (name == "ConstantFoldingPass") return std::make_unique<ConstantFoldingPass>();
    if (name == "DeadCodeEliminationPass") return std::make_unique<DeadCodeEliminationPass>();
    if (name == "CSEPass") return std::make_unique<CSEPass>();
    if (name == "OperatorFusionPass") return std::make_unique<OperatorFusionPass>();
    return std::make_unique<LayoutOptimizationPass>();
  };
  for (const std::string& name : PassManager::create_default(OptLevel::All).passes()) {
    for (const std::string& first : make(name)->after()) {
      // This registers only the two passes, in the wrong order.
      PassManagerConfig config;
      config.opt_level = OptLevel::All;
      PassManager pm(config);
      pm.register_pass(make(name));
      pm.register_pass(make(first));
      Graph graph = network();
      const PassResult result = pm.run(graph);
      ASSERT_EQ(result.reports.size(), 2u);
      EXPECT_EQ(result.reports[0].pass, first);
      EXPECT_EQ(result.reports[1].pass, name);
    }
  }
}

TEST(GuideOptimization, layouts_that_no_graph_can_say_are_refused) {
  Graph graph = network();
  LayoutConfig config;
  config.conv_layout = Layout::NC4HW4;
  EXPECT_THROW((void)optimize_layout(graph, config), PyFlameRTError);
  EXPECT_EQ(count(graph, "Conv"), 1u);
}

class BreakingPass : public Pass {
 public:
  const char* name() const override { return "BreakingPass"; }
  PassResult run(Graph& graph) override {
    graph.remove_node(*graph.nodes().front());
    PassResult result;
    result.modified = true;
    return result;
  }
};

class ThrowingPass : public Pass {
 public:
  const char* name() const override { return "ThrowingPass"; }
  PassResult run(Graph&) override { throw std::runtime_error("the pass has had enough"); }
};

TEST(GuideOptimization, a_pass_that_fails_leaves_the_graph_as_it_was) {
  for (const bool throws : {false, true}) {
    Graph graph = rounded();
    PassManager pm;
    if (throws)
      pm.register_pass(std::make_unique<ThrowingPass>());
    else
      pm.register_pass(std::make_unique<BreakingPass>());
    try {
      pm.run(graph);
      FAIL() << "nothing was said";
    } catch (const PyFlameRTError& e) {
      EXPECT_NE(std::string(e.what()).find(throws ? "had enough" : "BreakingPass"),
                std::string::npos)
          << e.what();
    }
    EXPECT_EQ(graph.nodes().size(), 3u);
    EXPECT_TRUE(graph.validate().empty());
  }
}

void fuse_matmul_add(Graph& graph, Node* matmul_node, Node* add_node) {
  const std::string bias = add_node->inputs()[0] == matmul_node->outputs()[0]
                               ? add_node->inputs()[1]
                               : add_node->inputs()[0];
  const std::string out = add_node->outputs()[0];
  auto gemm = std::make_shared<Node>(
      "gemm_" + out, "Gemm", Names{matmul_node->inputs()[0], matmul_node->inputs()[1], bias},
      Names{out + "_fused"});
  graph.add_node(gemm);
  graph.replace_uses(out, out + "_fused");
  graph.remove_node(*add_node);
  graph.remove_node(*matmul_node);
}

TEST(GuideOptimization, pattern_matching) {
  Graph graph("dense");
  graph.add_input({"x", {3, 4}, DType::Float32});
  graph.add_initializer("w", filled({4, 2}, 1, 1));
  graph.add_initializer("b", filled({2}, 1, 1));
  add(graph, "MatMul", {"x", "w"}, "product");
  add(graph, "Add", {"product", "b"}, "y");
  add(graph, "MatMul", {"x", "w"}, "shared");
  add(graph, "Add", {"shared", "b"}, "z");
  add(graph, "Relu", {"shared"}, "r");
  for (const char* name : {"y", "z", "r"}) graph.add_output({name, {3, 2}, DType::Float32});

  // Define a pattern: MatMul followed by Add
  Pattern pattern;
  pattern.add_node(PatternNode::op("MatMul", "matmul"));
  pattern.add_node(PatternNode::op("Add", "add"));
  pattern.add_edge(PatternEdge::output_to_input("matmul", "add", 0));
  pattern.set_root("add");

  // Find matches
  PatternMatcher matcher;
  auto matches = matcher.find_all(graph, pattern);
  ASSERT_EQ(matches.size(), 2u);

  for (const auto& match : matches) {
    Node* matmul_node = match.get_node("matmul");
    Node* add_node = match.get_node("add");

    // Check single-consumer constraint
    if (match.is_single_consumer("matmul")) {
      // Safe to fuse
      fuse_matmul_add(graph, matmul_node, add_node);
    }
  }
  EXPECT_EQ(count(graph, "Gemm"), 1u);
  EXPECT_EQ(count(graph, "MatMul"), 1u) << "the shared product has two consumers";
  EXPECT_TRUE(graph.validate().empty());
  EXPECT_EQ(matches[0].get_node("matmul"), nullptr) << "removed";
  EXPECT_FALSE(matches[0].is_single_consumer("matmul"));
  EXPECT_THROW(matches[0].get_node("mul"), PyFlameRTError);
}

TEST(GuideOptimization, patterns_that_make_no_sense_are_refused) {
  Graph graph = network();
  PatternMatcher matcher;
  EXPECT_THROW(matcher.find_all(graph, Pattern()), PyFlameRTError);
  Pattern apart;
  apart.add_node(PatternNode::op("Conv", "conv"));
  apart.add_node(PatternNode::any("other"));
  EXPECT_THROW(matcher.find_all(graph, apart), PyFlameRTError) << "no edge joins them";
  EXPECT_THROW(apart.add_node(PatternNode::op("Relu", "conv")), PyFlameRTError);
  EXPECT_THROW(apart.add_edge(PatternEdge::output_to_input("conv", "nobody", 0)), PyFlameRTError);
  apart.add_edge(PatternEdge::output_to_any_input("conv", "other"));
  apart.set_root("conv");
  EXPECT_EQ(matcher.find_all(graph, apart).size(), 1u);
}

TEST(GuideOptimization, initializers_that_are_inputs_are_not_constants) {
  Graph graph("overridable");
  graph.add_input({"x", {3}, DType::Float32});
  graph.add_input({"c", {3}, DType::Float32});
  graph.add_initializer("c", filled({3}, 1, 1));
  add(graph, "Neg", {"c"}, "n");
  add(graph, "Add", {"x", "n"}, "output");
  graph.add_output({"output", {3}, DType::Float32});
  EXPECT_EQ(optimize(graph, OptLevel::All).stats.constants_folded, 0u);
  EXPECT_EQ(count(graph, "Neg"), 1u);
  EXPECT_EQ(graph.initializer("c").data_ptr<float>()[1], 2.0f);
}

TEST(GuideOptimization, every_rule_belongs_to_a_pass_and_says_what_it_does) {
  const std::vector<RuleInfo> rules = known_rules();
  EXPECT_GT(rules.size(), 15u);
  for (const RuleInfo& rule : rules) {
    EXPECT_NE(rule.pass.find("Pass"), std::string::npos);
    EXPECT_FALSE(rule.text.empty()) << rule.rule;
    EXPECT_TRUE(rule.level == "basic" || rule.level == "extended" || rule.level == "all" ||
                rule.level == "by name");
    EXPECT_EQ(rule.level == "by name", rule.pass == "DataflowPass") << rule.rule;
  }
}

}  // namespace
}  // namespace pfrt_test
