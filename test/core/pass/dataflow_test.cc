// SPDX-License-Identifier: Apache-2.0
//
// Products of one input, which become a single product where a provider estimates that this takes
// less time. The providers are made up: only their estimates are known.
#include <gtest/gtest.h>

#include <cmath>

#include "core/exec/compiled_graph.h"
#include "core/ir/verify.h"
#include "core/op/engine/canonicalise.h"
#include "core/pass/engine/passes.h"
#include "core/pass/rules/numbers.h"
#include "core/session/pass_options.h"
#include "providers/cpu/provider.h"

namespace pfrt::test {
namespace {

Tensor numbers(const Dims& dims, int seed) {
  std::vector<double> values(static_cast<size_t>(element_count(dims.data(), dims.size())));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<double>(i) * 1.7 + seed);
  return *from_doubles(PFRT_DTYPE_FLOAT32, dims, values);
}

class Dataflow : public testing::Test {
 protected:
  Dataflow() {
    graph->opsets[""] = 17;
    // Each step has a cost, and each column of a product, so a wider product costs less than two.
    context.cost = [this](const Graph& of, std::span<const Node* const> nodes,
                          std::string_view target) -> Result<std::optional<double>> {
      asked.emplace_back(target);
      double ns = 0;
      for (const Node* node : nodes) {
        if (node->op == refused) return std::optional<double>();
        ns += node->op == "MatMul" ? 100 : split_ns;
        if (node->op == "MatMul")
          ns += static_cast<double>(of.constant(node->inputs[1])->dims[1]) * column_ns;
      }
      return std::optional<double>(ns);
    };
  }
  void input(const std::string& name, const Dims& dims) {
    Shape shape;
    for (const int64_t d : dims) shape.push_back(Dim(d));
    graph->at(graph->value(name)).type = Type::tensor(PFRT_DTYPE_FLOAT32, std::move(shape));
    graph->inputs.push_back(graph->value(name));
  }
  void constant(const std::string& name, const Dims& dims) {
    graph->set_constant(graph->value(name), Value::of(numbers(dims, ++seed)));
  }
  void node(const std::string& op, const std::vector<std::string>& in, const std::string& out) {
    Node made;
    made.op = op;
    made.name = out;
    for (const std::string& name : in) made.inputs.push_back(graph->value(name));
    made.outputs = {graph->value(out)};
    ASSERT_TRUE(graph->add_node(std::move(made)).ok());
  }
  void product(const std::string& in, const std::string& out, int64_t depth, int64_t width) {
    constant(out + "_w", {depth, width});
    node("MatMul", {in, out + "_w"}, out);
  }
  void output(const std::string& name) { graph->outputs.push_back(graph->value(name)); }

  // Three products of different widths, one with a bias, whose results are outputs.
  void projections(const Dims& of) {
    input("x", of);
    for (const int64_t width : {4, 6, 2})
      product("x", "y" + std::to_string(width), of.back(), width);
    constant("bias", {6});
    node("Add", {"y6", "bias"}, "biased");
    for (const char* name : {"y4", "biased", "y2"}) output(name);
  }
  PassResult run(const DataflowConfig& config = {}) {
    EXPECT_TRUE(canonicalise(*graph).ok());
    before = graph->clone();
    PassResult result;
    context.gate.begin("DataflowPass");
    const Status status = dataflow_pass(config)->run(graph, context, result);
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
  // Computes the outputs on the CPU.
  std::vector<std::vector<double>> outputs_of(const std::shared_ptr<Graph>& of) {
    ProviderSource source;
    source.name = "CPUExecutionProvider";
    source.device = "cpu";
    source.table = &cpu::provider_table();
    source.features = cpu::kFeatures;
    Logger logger;
    PackedStore packed;
    auto provider = Provider::open(source, &logger);
    EXPECT_TRUE(provider.ok());
    auto compiled =
        CompiledGraph::create(of, {{{source.name, *provider, ""}}, &packed, &logger, Progress()});
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    std::vector<ValuePtr> inputs, outputs;
    for (ValueId id : of->inputs) {
      Dims dims;
      for (const Dim& d : of->at(id).type.shape) dims.push_back(d.value());
      inputs.push_back(Value::of(numbers(dims, 99)));
    }
    RunControl control;
    const Status ran = (*compiled)->run(
        std::move(inputs), std::vector<OutputRequest>(of->outputs.size()), control, outputs);
    EXPECT_TRUE(ran.ok()) << ran.message();
    std::vector<std::vector<double>> out;
    for (const ValuePtr& value : outputs) out.push_back(*to_doubles(&value->tensor));
    return out;
  }
  void expect_same_results() {
    const auto was = outputs_of(before), is = outputs_of(graph);
    ASSERT_EQ(was.size(), is.size());
    for (size_t i = 0; i < was.size(); ++i) {
      ASSERT_EQ(was[i].size(), is[i].size());
      for (size_t k = 0; k < was[i].size(); ++k) EXPECT_NEAR(was[i][k], is[i][k], 1e-5) << i;
    }
  }

  std::shared_ptr<Graph> graph = std::make_shared<Graph>("g"), before;
  PassContext context;
  std::vector<std::string> asked;
  std::string refused;
  double split_ns = 10, column_ns = 1;
  int seed = 0;
};

TEST_F(Dataflow, products_of_one_input_become_one_and_a_split) {
  projections({3, 8});
  const PassResult result = run({"the target"});
  EXPECT_EQ(ops(), "MatMul, Split, Add");
  EXPECT_EQ(result.stats.rules.at("MergedProducts"), 1u);
  EXPECT_TRUE(result.modified);
  EXPECT_EQ(asked, (std::vector<std::string>{"the target", "the target"}));
  expect_same_results();
}

TEST_F(Dataflow, of_rank_3_too) {
  projections({2, 3, 8});
  run();
  EXPECT_EQ(ops(), "MatMul, Split, Add");
  expect_same_results();
}

TEST_F(Dataflow, each_input_has_its_own) {
  input("x", {3, 8});
  product("x", "a", 8, 8);
  product("x", "b", 8, 8);
  node("Mul", {"a", "b"}, "c");
  product("c", "d", 8, 5);
  product("c", "e", 8, 5);
  node("Sub", {"d", "e"}, "f");
  output("f");
  EXPECT_EQ(run().stats.rules.at("MergedProducts"), 2u);
  EXPECT_EQ(ops(), "MatMul, Split, Mul, MatMul, Split, Sub");
  expect_same_results();
}

TEST_F(Dataflow, nothing_where_it_takes_longer_or_as_long) {
  for (const double ns : {200.0, 201.0}) {
    graph = std::make_shared<Graph>("g");
    graph->opsets[""] = 17;
    split_ns = ns;
    projections({3, 8});
    EXPECT_FALSE(run().modified);
    EXPECT_EQ(graph->node_count(), before->node_count());
    expect_same_results();
  }
}

TEST_F(Dataflow, nothing_where_the_provider_refuses_a_part) {
  for (const char* op : {"MatMul", "Split"}) {
    graph = std::make_shared<Graph>("g");
    graph->opsets[""] = 17;
    refused = op;
    projections({3, 8});
    EXPECT_FALSE(run().modified) << op;
  }
}

TEST_F(Dataflow, nothing_where_nobody_can_be_asked) {
  context.cost = nullptr;
  projections({3, 8});
  EXPECT_FALSE(run().modified);
}

TEST_F(Dataflow, what_the_provider_fails_with_is_a_warning) {
  context.cost = [](const Graph&, std::span<const Node* const>, std::string_view) {
    return Result<std::optional<double>>(error(Code::kPROVIDER, "the device is asleep"));
  };
  projections({3, 8});
  const PassResult result = run();
  EXPECT_FALSE(result.modified);
  ASSERT_FALSE(result.warnings.empty());
  EXPECT_NE(result.warnings[0].find("MergedProducts at 'y4': the device is asleep"),
            std::string::npos)
      << result.warnings[0];
}

TEST_F(Dataflow, other_products_stay_as_they_are) {
  input("x", {3, 8});
  input("z", {8, 4});
  input("batch", {2, 2, 3, 8});
  // Two products share a matrix, one has a fed matrix, and one has no partner.
  constant("shared", {8, 4});
  node("MatMul", {"x", "shared"}, "a");
  node("MatMul", {"x", "shared"}, "b");
  node("MatMul", {"x", "z"}, "c");
  product("x", "d", 8, 4);
  // These have rank 4.
  product("batch", "e", 8, 4);
  product("batch", "f", 8, 4);
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) output(name);
  EXPECT_FALSE(run().modified);
  EXPECT_EQ(graph->node_count(), 6u);
}

TEST(DataflowPass, is_of_no_level_and_added_by_name) {
  const Options options(PFRT_OPTIONS_OPTIMIZER);
  ASSERT_EQ(passes_by_name().size(), 1u);
  EXPECT_EQ(passes_by_name()[0], "DataflowPass");
  PipelineConfig config;
  config.level = OptLevel::kAll;
  for (const std::string& name : Pipeline::standard(config).names())
    EXPECT_NE(name, "DataflowPass");
  const std::unique_ptr<Pass> pass = built_in_pass("DataflowPass", options);
  ASSERT_NE(pass, nullptr);
  EXPECT_EQ(pass->name(), "DataflowPass");
}

}  // namespace
}  // namespace pfrt::test
