// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pyflame_rt/custom.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>

#include "test/optimise/generator.h"
#include "test/optimise/run.h"

namespace pfrt_optimise {
namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kModels = 60;
#else
constexpr uint64_t kModels = 400;
#endif

uint64_t seed() { return number_from("PFRT_OPTIMISE_SEED", 1); }
uint64_t models() { return number_from("PFRT_OPTIMISE_MODELS", kModels); }

// The models are in four parts, which may run side by side.
class RandomModels : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Parts, RandomModels, testing::Range<uint64_t>(0, 4));

TEST_P(RandomModels, give_at_every_level_what_they_give_at_none) {
  RunOptions options;
  options.seed = seed();
  options.count = models() / 4;
  options.first = GetParam() * options.count;
  options.configs = configs();
  std::printf("seed %llu, models %llu to %llu\n", static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(options.first),
              static_cast<unsigned long long>(options.first + options.count - 1));
  const RunResult result = run_models(options);
  for (const Report& report : result.reports) ADD_FAILURE() << report.text;
  EXPECT_EQ(result.failures, 0u);
}

// Models of one kind, whose sizes mostly grow and shrink from feed to feed.
class KindsOfModels : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, KindsOfModels, testing::Values("dependent", "sizes"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(KindsOfModels, give_at_every_level_and_size_what_they_give_alone) {
  RunOptions options;
  options.seed = seed();
  options.kind = GetParam();
  options.count = models() / 4;
  options.configs = configs();
  const RunResult result = run_models(options);
  for (const Report& report : result.reports) ADD_FAILURE() << report.text;
  EXPECT_EQ(result.failures, 0u);
}

using Outcome = std::optional<std::vector<Tensor>>;  // none when it was refused

std::vector<Outcome> outcomes_of(const ModelSpec& model, pyflame_rt::OptLevel level) {
  std::vector<Outcome> out(model.feeds.size());
  std::optional<pyflame_rt::InferenceSession> session;
  try {
    pyflame_rt::SessionOptions options;
    options.optimization_level = level;
    session.emplace(pyflame_rt::Model::from_graph(build(model)), options);
  } catch (const std::exception&) {
    return out;
  }
  for (size_t feed = 0; feed < out.size(); ++feed) {
    try {
      out[feed] = session->run({}, model.feeds[feed]);
    } catch (const std::exception&) {  // alike with and without declarations
    }
  }
  return out;
}

std::string first_difference(const Outcome& wanted, const Outcome& got) {
  if (wanted.has_value() != got.has_value()) return wanted ? "is refused" : "is not refused";
  for (size_t i = 0; wanted && i < wanted->size(); ++i)
    if (const auto text = difference((*wanted)[i], (*got)[i], {1e-6, 1e-5}))
      return "output " + std::to_string(i) + ": " + *text;
  return {};
}

// A declaration of a value has no effect where it contradicts the nodes.
TEST(Declarations, that_are_wrong_change_no_result_at_any_level) {
  using pyflame_rt::OptLevel;
  const uint64_t count = models() / 4;
  uint64_t run = 0;
  for (uint64_t i = 0; i < count && !HasFailure(); ++i) {
    ModelSpec model = generate(seed(), i);
    for (const OptLevel level :
         {OptLevel::None, OptLevel::Basic, OptLevel::Extended, OptLevel::All}) {
      model.misdeclared = 0;
      const std::vector<Outcome> wanted = outcomes_of(model, level);
      model.misdeclared = i + 1;
      const std::vector<Outcome> got = outcomes_of(model, level);
      for (size_t feed = 0; feed < wanted.size(); ++feed) {
        run += wanted[feed].has_value();
        EXPECT_EQ(first_difference(wanted[feed], got[feed]), "")
            << "seed " << seed() << ", model " << i << ", feed " << feed << " at level "
            << static_cast<int>(level) << "\n"
            << text_of(model);
      }
    }
  }
  EXPECT_GT(run, count);
}

// Switches on a wrong pass, which makes an Abs of the first Relu behind an Add.
std::atomic<bool> planted_on = false;

pfrt_code planted(void*, pfrt_pass_call* call) {
  if (!planted_on) return PFRT_CODE_OK;
  pyflame_rt::Graph graph(pyflame_rt::GraphHandle::share(call->graph));
  for (const auto& node : graph.nodes()) {
    if (node->op_type() != "Relu") continue;
    const auto before = graph.producer(node->inputs()[0]);
    if (before == nullptr || before->op_type() != "Add") continue;
    graph.remove_node(node);
    graph.add_node(
        std::make_shared<pyflame_rt::Node>(node->name(), "Abs", node->inputs(), node->outputs()));
    call->stats->modified = 1;
    break;
  }
  return PFRT_CODE_OK;
}

TEST(PlantedFault, is_found_and_cut_down_to_a_few_nodes) {
  pfrt_custom_pass pass{};
  pass.struct_size = sizeof pass;
  pass.abi = PFRT_ABI_VERSION;
  pass.name = pyflame_rt::detail::text("planted");
  pass.level = PFRT_PASS_ALL;
  pass.run = planted;
  pyflame_rt::detail::check(
      pyflame_rt::api().env->register_pass(pyflame_rt::Environment::instance().handle(), &pass));
  RunOptions options;
  options.count = 100;
  options.folder = testing::TempDir();
  options.configs = {config_named("extended"), config_named("all")};
  planted_on = true;
  const RunResult result = run_models(options);
  planted_on = false;
  ASSERT_FALSE(result.reports.empty());
  for (const Report& report : result.reports) {
    SCOPED_TRACE(report.text);
    EXPECT_EQ(report.config.name, "all");
    EXPECT_EQ(report.failure.kind, FailureKind::Differs);
    EXPECT_EQ(node_count(report.small.graph), 2u);
    std::set<std::string> ops;
    for (const NodeSpec& node : report.small.graph.nodes) ops.insert(node.op);
    EXPECT_EQ(ops, (std::set<std::string>{"Add", "Relu"}));
    EXPECT_NE(report.text.find("--seed 1 --only " + std::to_string(report.index) + " --config all"),
              std::string::npos);
    // The file alone reproduces the failure, where the pass is registered.
    const std::string file =
        options.folder + "random_1_" + std::to_string(report.index) + "_all.onnx";
    EXPECT_EQ(pyflame_rt::load_model(file).nodes().size(), report.small.graph.nodes.size());
    std::filesystem::remove(file);
  }
}

Tensor floats(const std::vector<float>& values) {
  return Tensor::from_vector(values, {static_cast<int64_t>(values.size())});
}

TEST(Difference, allows_rounding_and_no_more) {
  const Tolerance tolerance{1e-6, 1e-5};
  EXPECT_FALSE(difference(floats({100, 1}), floats({100, 1.0005f}), tolerance));
  EXPECT_TRUE(difference(floats({100, 1}), floats({100, 1.002f}), tolerance));
  EXPECT_FALSE(difference(floats({0}), floats({-0.0f}), {}));
  const std::vector<double> slack = {0, 0.5};
  EXPECT_FALSE(difference(floats({1, 1}), floats({1, 1.4f}), {0, 0, &slack}));
  EXPECT_TRUE(difference(floats({1, 1}), floats({1.4f, 1}), {0, 0, &slack}));
}

TEST(Difference, takes_nan_for_nan_and_infinity_for_itself) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tolerance tolerance{1, 1};
  EXPECT_FALSE(difference(floats({kNan, kInf}), floats({kNan, kInf}), tolerance));
  EXPECT_TRUE(difference(floats({kNan}), floats({0}), tolerance));
  EXPECT_TRUE(difference(floats({0}), floats({kNan}), tolerance));
  EXPECT_TRUE(difference(floats({kInf, 1e30f}), floats({-kInf, 1e30f}), tolerance));
  EXPECT_TRUE(difference(floats({kInf, 1e30f}), floats({1e30f, 1e30f}), tolerance));
}

TEST(Difference, sees_types_and_shapes) {
  EXPECT_TRUE(
      difference(make_tensor(DType::Int64, {1}, {3}), make_tensor(DType::Int32, {1}, {3}), {1, 1}));
  EXPECT_TRUE(difference(Tensor({2, 1}, DType::Float32), Tensor({1, 2}, DType::Float32), {1, 1}));
  EXPECT_TRUE(
      difference(make_tensor(DType::Int64, {1}, {3}), make_tensor(DType::Int64, {1}, {4}), {}));
}

TEST(Generator, gives_the_same_for_the_same_numbers) {
  EXPECT_EQ(text_of(generate(3, 5)), text_of(generate(3, 5)));
  EXPECT_NE(text_of(generate(3, 5)), text_of(generate(3, 6)));
  EXPECT_NE(text_of(generate(3, 5)), text_of(generate(4, 5)));
}

void collect(const GraphSpec& graph, std::set<std::string>* ops) {
  for (const NodeSpec& node : graph.nodes) {
    ops->insert(node.op);
    for (const BodySpec& body : node.bodies) collect(body.graph, ops);
  }
}

TEST(Generator, covers_what_passes_rewrite) {
  std::set<std::string> ops;
  std::set<int64_t> opsets;
  std::set<DType> types;
  size_t smallest = 1000, largest = 0, empty = 0, varying = 0, open = 0, series = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const ModelSpec model = generate(1, i);
    series += model.feeds.size() >= 10;
    collect(model.graph, &ops);
    opsets.insert(model.opset);
    smallest = std::min(smallest, node_count(model.graph));
    largest = std::max(largest, node_count(model.graph));
    for (const std::string& name : model.graph.inputs) {
      types.insert(model.types.at(name).type);
      open += model.graph.initializers.count(name);
      for (const Dim& dim : model.types.at(name).dims) {
        empty += dim.n == 0;
        varying += dim.symbol != 0;
      }
    }
  }
  for (const char* op : {"Add",
                         "Mul",
                         "Relu",
                         "Identity",
                         "Dropout",
                         "Cast",
                         "Transpose",
                         "Reshape",
                         "Squeeze",
                         "Unsqueeze",
                         "Flatten",
                         "Slice",
                         "Split",
                         "Concat",
                         "Pad",
                         "Gather",
                         "Expand",
                         "Where",
                         "Tile",
                         "Conv",
                         "Gemm",
                         "MatMul",
                         "Softmax",
                         "ReduceMean",
                         "ReduceSum",
                         "Sqrt",
                         "Pow",
                         "Erf",
                         "Tanh",
                         "Sigmoid",
                         "Softplus",
                         "Clip",
                         "Shape",
                         "Constant",
                         "ConstantOfShape",
                         "If",
                         "Loop",
                         "Scan",
                         "QuantizeLinear",
                         "DequantizeLinear",
                         "Upsample",
                         "Resize",
                         "MaxPool",
                         "AveragePool",
                         "BatchNormalization",
                         "InstanceNormalization",
                         "LayerNormalization",
                         "GlobalAveragePool",
                         "ScatterND",
                         "ArgMax",
                         "TopK",
                         "NonZero",
                         "Compress",
                         "Unique",
                         "NonMaxSuppression",
                         "GatherND",
                         "Range"})
    EXPECT_EQ(ops.count(op), 1u) << op;
  EXPECT_EQ(opsets.size(), 16u);  // 7 to 21, and the newest
  EXPECT_EQ(types.size(), 7u);
  EXPECT_LE(smallest, 4u);
  EXPECT_GE(largest, 30u);
  EXPECT_LE(largest, 120u);
  EXPECT_GT(empty, 0u);
  EXPECT_GT(varying, 50u);
  EXPECT_GT(open, 5u);
  EXPECT_GT(series, 20u);
}

}  // namespace
}  // namespace pfrt_optimise
