// SPDX-License-Identifier: Apache-2.0
//
// Verified passes: wrong rewrites of several kinds, planted in a pass beside right ones, are
// caught, named and undone, and the right ones stay.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/pass/engine/pipeline.h"
#include "core/pass/rules/numbers.h"
#include "core/pass/rules/rule_tables.h"
#include "core/session/optimise.h"
#include "core/verify/trial_inputs.h"
#include "test/core/pass/networks.h"

namespace pfrt::test {
namespace {

// ---- rules, right and wrong ----

// The value that a rule looks for; tests run one after another.
struct Plant {
  std::string at;  // name of the value that it spoils
  double factor = 1;
} plant;

bool here(const Editor& editor, const Node& node) {
  return node.has_output(0) && editor.graph().at(node.outputs[0]).name == plant.at;
}

// True for a node that a rule has rewritten, so that rewriting ends.
bool done(const Node& node) { return node.doc == "planted"; }

Result<ValueId> number(Editor& editor, double value, pfrt_dtype dtype = PFRT_DTYPE_FLOAT32) {
  PFRT_ASSIGN(Tensor made, from_doubles(dtype, {}, {value}));
  return editor.add_constant("planted", std::move(made));
}

// Replaces |node|'s output by |make| of it.
template <typename Make>
Result<bool> spoil(Editor& editor, Node& node, Make make) {
  if (!here(editor, node) || done(node)) return false;
  Node copy = node;
  copy.doc = "planted";
  const ValueId out = node.outputs[0];
  const std::string stem = node.name;
  PFRT_ASSIGN(const std::vector<ValueId> again, editor.add_node(std::move(copy), stem));
  PFRT_ASSIGN(const ValueId made, make(again[0]));
  editor.replace(out, made);
  return true;
}

Result<bool> other_factor(Editor& editor, Node& node, const RuleContext&) {
  return spoil(editor, node, [&](ValueId was) -> Result<ValueId> {
    PFRT_ASSIGN(const ValueId factor, number(editor, plant.factor));
    return editor.add("Mul", "planted", {was, factor});
  });
}

// Multiplies by 1 + dimension 0 modulo 2, which is wrong where the dimension is odd.
Result<bool> odd_batch(Editor& editor, Node& node, const RuleContext&) {
  return spoil(editor, node, [&](ValueId was) -> Result<ValueId> {
    PFRT_ASSIGN(const ValueId shape,
                editor.add("Shape", "planted", {was},
                           {Attribute::of_int("start", 0), Attribute::of_int("end", 1)}));
    PFRT_ASSIGN(const ValueId two, editor.int64s("two", {2}));
    PFRT_ASSIGN(const ValueId odd,
                editor.add("Mod", "planted", {shape, two}, {Attribute::of_int("fmod", 0)}));
    PFRT_ASSIGN(const ValueId one, editor.int64s("one", {1}));
    PFRT_ASSIGN(const ValueId sum, editor.add("Add", "planted", {odd, one}));
    PFRT_ASSIGN(const ValueId factor, editor.add("Cast", "planted", {sum},
                                                 {Attribute::of_int("to", PFRT_DTYPE_FLOAT32),
                                                  Attribute::of_int("saturate", 1)}));
    return editor.add("Mul", "planted", {was, factor});
  });
}

// Takes the largest along dimension 0 in place of the value, which is right only where the
// dimension is 1.
Result<bool> only_one(Editor& editor, Node& node, const RuleContext&) {
  return spoil(editor, node, [&](ValueId was) -> Result<ValueId> {
    PFRT_ASSIGN(const ValueId axes, editor.int64s("axes", {0}));
    PFRT_ASSIGN(const ValueId most, editor.add("ReduceMax", "planted", {was, axes},
                                               {Attribute::of_int("keepdims", 1),
                                                Attribute::of_int("noop_with_empty_axes", 0)}));
    PFRT_ASSIGN(const ValueId zero, number(editor, 0));
    PFRT_ASSIGN(const ValueId nothing, editor.add("Mul", "planted", {was, zero}));
    return editor.add("Add", "planted", {most, nothing});
  });
}

Result<bool> double_precision(Editor& editor, Node& node, const RuleContext&) {
  return spoil(editor, node, [&](ValueId was) {
    return editor.add(
        "Cast", "planted", {was},
        {Attribute::of_int("to", PFRT_DTYPE_FLOAT64), Attribute::of_int("saturate", 1)});
  });
}

// Exchanges the first two outputs, and with a factor other than 1 their names too.
Result<bool> swap_outputs(Editor& editor, Node& node, const RuleContext&) {
  Graph& graph = editor.graph();
  if (!here(editor, node) || graph.depth > 0 || graph.doc == "planted") return false;
  graph.doc = "planted";
  const ValueId a = graph.outputs[0], b = graph.outputs[1];
  const std::string first = graph.at(a).name, second = graph.at(b).name;
  if (plant.factor != 1) graph.rename({{a, second}, {b, first}});
  std::swap(graph.outputs[0], graph.outputs[1]);
  return true;
}

// Turns a sum in a body into a difference.
Result<bool> in_body(Editor& editor, Node& node, const RuleContext&) {
  if (editor.graph().depth == 0 || !here(editor, node)) return false;
  PFRT_ASSIGN(const ValueId made, editor.add("Sub", node.name, {node.inputs[0], node.inputs[1]}));
  editor.replace(node.outputs[0], made);
  return true;
}

// This rewrite is right, but makes a node that other_sqrt rewrites wrongly.
Result<bool> abs_of_square(Editor& editor, Node& node, const RuleContext&) {
  if (!here(editor, node)) return false;
  PFRT_ASSIGN(const ValueId square, editor.add("Mul", node.name, {node.inputs[0], node.inputs[0]}));
  PFRT_ASSIGN(const ValueId root, editor.add("Sqrt", node.name, {square}));
  editor.replace(node.outputs[0], root);
  return true;
}
Result<bool> other_sqrt(Editor& editor, Node& node, const RuleContext&) {
  PFRT_ASSIGN(const ValueId made, editor.add("Softplus", node.name, {node.inputs[0]}));
  editor.replace(node.outputs[0], made);
  return true;
}

Result<bool> breaks_the_graph(Editor& editor, Node& node, const RuleContext&) {
  if (!here(editor, node)) return false;
  node.inputs[0] = editor.graph().fresh("nobody");
  return true;
}

using Apply = Result<bool> (*)(Editor&, Node&, const RuleContext&);

// Runs the rules of convolutions and identities, and wrong ones.
class PlantedPass : public Pass {
 public:
  explicit PlantedPass(std::vector<Rule> wrong) : wrong_(std::move(wrong)) {}
  std::string_view name() const override { return "PlantedPass"; }
  std::string_view description() const override { return "right rewrites, and wrong ones"; }
  OptLevel level() const override { return OptLevel::kBasic; }
  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) override {
    std::vector<const Rule*> rules;
    for (const Rule& rule : wrong_) rules.push_back(&rule);
    for (const auto family : {conv_rules(), identity_rules()})
      for (const Rule& rule : family) rules.push_back(&rule);
    return run_rules(*graph, rules, {context, "", true}, result);
  }

 private:
  const std::vector<Rule> wrong_;
};

Rule rule(std::string_view name, std::string_view op, Apply apply) {
  return {name, op, "", OptLevel::kBasic, false, apply};
}

// A graph that goes through a pipeline with verification, and the results of that.
class Verified {
 public:
  explicit Verified(std::shared_ptr<Graph> canonical) : graph(std::move(canonical)) {}
  Verified(Writer writer) : graph(writer.canonical()) {}  // NOLINT(google-explicit-constructor)

  Status run(std::unique_ptr<Pass> pass, bool with_standard = false) {
    Verifier::Context context;
    context.candidates = cpu_alone();
    context.packed = packed();
    context.logger = &silent_logger();
    context.samples = samples;
    context.seconds = seconds;
    const Progress progress(cancelled, nullptr, nullptr);
    context.progress = progress;
    Verifier verifier(std::move(context));
    PassServices services({cpu_alone(), packed(), &silent_logger(), progress}, &verifier);
    PassContext passes = services.context();
    PipelineConfig config;
    config.level = OptLevel::kAll;
    Pipeline pipeline = with_standard ? Pipeline::standard(config) : Pipeline(config);
    PFRT_TRY(pipeline.add(std::move(pass)));
    Status status = pipeline.run_until_fixed_point(graph, passes, result);
    for (const PassReport& report : pipeline.reports())
      undone.insert(undone.end(), report.undone.begin(), report.undone.end());
    notes = verifier.notes();
    return status;
  }
  Status run(std::vector<Rule> wrong, bool with_standard = false) {
    return run(std::make_unique<PlantedPass>(std::move(wrong)), with_standard);
  }
  uint64_t applied(const std::string& name) const {
    const auto found = result.stats.rules.find(name);
    return found == result.stats.rules.end() ? 0 : found->second;
  }
  uint64_t count(std::string_view op) const {
    uint64_t n = 0;
    for (NodeId id : graph->node_ids()) n += graph->node(id)->op == op;
    return n;
  }
  bool told(std::string_view text) const {
    const auto says = [&](const std::string& line) { return line.find(text) != line.npos; };
    return std::ranges::any_of(result.warnings, says) || std::ranges::any_of(notes, says);
  }

  std::shared_ptr<Graph> graph;
  std::vector<NamedValues> samples;
  double seconds = 20;
  const uint32_t* cancelled = nullptr;
  PassResult result;
  std::vector<Application> undone;
  std::vector<std::string> notes;
};

std::vector<ValuePtr> outputs_of(const std::shared_ptr<const Graph>& graph, uint32_t variant) {
  auto compiled =
      CompiledGraph::create(graph, {cpu_alone(), packed(), &silent_logger(), Progress()});
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  if (!compiled.ok()) return {};
  auto inputs = TrialInputs(*graph, (*compiled)->inputs()).make(variant, 7);
  EXPECT_TRUE(inputs.ok());
  RunControl control;
  std::vector<ValuePtr> outputs;
  const Status status = (*compiled)->run(
      inputs.take(), std::vector<OutputRequest>(graph->outputs.size()), control, outputs);
  EXPECT_TRUE(status.ok()) << status.message();
  return outputs;
}

// Expects equal results of both graphs at several shapes.
void expect_same(const std::shared_ptr<const Graph>& before,
                 const std::shared_ptr<const Graph>& after) {
  for (const uint32_t variant : {0u, 1u, 2u, 4u, 7u}) {
    const std::vector<ValuePtr> want = outputs_of(before, variant);
    const std::vector<ValuePtr> got = outputs_of(after, variant);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(want[i]->tensor.dtype, got[i]->tensor.dtype);
      ASSERT_EQ(want[i]->tensor.dims, got[i]->tensor.dims);
      const auto w = to_doubles(&want[i]->tensor), g = to_doubles(&got[i]->tensor);
      ASSERT_TRUE(w && g);
      for (size_t k = 0; k < w->size(); ++k)
        EXPECT_NEAR((*w)[k], (*g)[k], 1e-5 * (1 + std::abs((*w)[k]))) << "output " << i;
    }
  }
}

const Application& only(const Verified& v) {
  static const Application none;
  EXPECT_EQ(v.undone.size(), 1u);
  return v.undone.empty() ? none : v.undone[0];
}

TEST(Verify, right_rewrites_stay) {
  for (Writer w : {convolutions("N", 3), convolutions("2", 3), layers()}) {
    Verified v(w);
    const std::shared_ptr<const Graph> before = v.graph->clone();
    const Status status = v.run(std::vector<Rule>{}, true);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(v.undone.empty());
    EXPECT_TRUE(v.result.warnings.empty());
    EXPECT_TRUE(v.result.modified);
    EXPECT_TRUE(v.told("graphs compared"));
    expect_same(before, v.graph);
  }
}

TEST(Verify, a_small_factor) {
  for (const double factor : {1.001, 1.0001, 0.999}) {
    plant = {"sum3", factor};
    Verified v(convolutions("N", 8));
    const std::shared_ptr<const Graph> before = v.graph->clone();
    ASSERT_TRUE(v.run({rule("OtherFactor", "Add", other_factor)}).ok());
    EXPECT_EQ(only(v), (Application{"PlantedPass", "OtherFactor", "sum3"})) << factor;
    EXPECT_TRUE(v.told("OtherFactor at 'sum3' in PlantedPass changes results (output 'scores'"));
    EXPECT_TRUE(v.told("undone"));
    EXPECT_EQ(v.applied("FusedConvBN"), 8u);
    EXPECT_EQ(v.applied("RemoveIdentity"), 8u);
    EXPECT_EQ(v.applied("OtherFactor"), 0u);
    EXPECT_EQ(v.count("BatchNormalization"), 0u);
    expect_same(before, v.graph);
  }
}

TEST(Verify, wrong_at_one_shape_only) {
  for (const Apply apply : {odd_batch, only_one}) {
    plant = {"sum1", 1};
    Verified v(convolutions("N", 4));
    const std::shared_ptr<const Graph> before = v.graph->clone();
    ASSERT_TRUE(v.run({rule("OneShape", "Add", apply)}).ok());
    EXPECT_EQ(only(v), (Application{"PlantedPass", "OneShape", "sum1"}));
    EXPECT_EQ(v.applied("FusedConvBN"), 4u);
    expect_same(before, v.graph);
  }
}

TEST(Verify, a_wrong_dtype) {
  plant = {"scores", 1};
  Verified v(convolutions("N", 3));
  const std::shared_ptr<const Graph> before = v.graph->clone();
  ASSERT_TRUE(v.run({rule("WrongType", "Add", double_precision),
                     rule("WrongType", "Gemm", double_precision)})
                  .ok());
  EXPECT_EQ(only(v).rule, "WrongType");
  EXPECT_EQ(only(v).at, "scores");
  EXPECT_EQ(v.applied("FusedConvBN"), 3u);
  expect_same(before, v.graph);
}

TEST(Verify, outputs_in_another_order) {
  for (const bool renamed : {false, true}) {
    plant = {"r1", renamed ? 2.0 : 1.0};
    Verified v(layers());
    const std::shared_ptr<const Graph> before = v.graph->clone();
    ASSERT_TRUE(v.run({rule("SwapOutputs", "Add", swap_outputs)}).ok());
    EXPECT_EQ(only(v), (Application{"PlantedPass", "SwapOutputs", "r1"}));
    EXPECT_TRUE(v.told(renamed ? "(output 'r2' has "
                               : "(the outputs are 'r1', 'r2' instead of 'r2', 'r1')"));
    EXPECT_EQ(v.applied("RemoveIdentity"), 3u);
    expect_same(before, v.graph);
  }
}

TEST(Verify, in_a_subgraph) {
  plant = {"small", 1};  // name of the sum once the node after it is gone
  Verified v(loop());
  const std::shared_ptr<const Graph> before = v.graph->clone();
  ASSERT_TRUE(v.run({rule("InBody", "Add", in_body)}, true).ok());
  EXPECT_EQ(only(v).rule, "InBody");
  EXPECT_NE(only(v).at.find("/small"), std::string::npos);
  EXPECT_GE(v.applied("RemoveIdentity"), 2u);
  expect_same(before, v.graph);
}

TEST(Verify, several_wrong_ones_and_one_that_another_makes_room_for) {
  Writer w = layers();
  w.node("Abs", {"r0"}, {"distance"}).output("distance");
  plant = {"distance", 1.5};
  Verified v(w);
  const std::shared_ptr<const Graph> before = v.graph->clone();
  ASSERT_TRUE(
      v.run({rule("AbsOfSquare", "Abs", abs_of_square), rule("Root", "Sqrt", other_sqrt)}).ok());
  EXPECT_EQ(only(v).rule, "Root");
  EXPECT_EQ(v.applied("AbsOfSquare"), 1u);
  EXPECT_EQ(v.count("Sqrt"), 1u);
  expect_same(before, v.graph);
}

// This rewrite is wrong at every Sigmoid, so the rule is given up and right rewrites stay.
Result<bool> every_sigmoid(Editor& editor, Node& node, const RuleContext&) {
  PFRT_ASSIGN(const ValueId made, editor.add("Tanh", node.name, {node.inputs[0]}));
  editor.replace(node.outputs[0], made);
  return true;
}

TEST(Verify, a_rule_that_is_wrong_everywhere_is_given_up) {
  Writer w;
  w.input("x", {"N", "4"});
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    w.weights("k" + n, {4}, 0.5, 2).node("Mul", {"x", "k" + n}, {"scaled" + n});
    w.node("Sigmoid", {"scaled" + n}, {"s" + n}).node("Identity", {"s" + n}, {"y" + n});
    w.output("y" + n);
  }
  Verified v(w);
  const std::shared_ptr<const Graph> before = v.graph->clone();
  ASSERT_TRUE(v.run({rule("Everywhere", "Sigmoid", every_sigmoid)}).ok());
  EXPECT_EQ(v.undone.size(), 5u);
  EXPECT_TRUE(std::ranges::count(v.undone, Application{"PlantedPass", "Everywhere", ""}) == 1);
  EXPECT_TRUE(v.told("Everywhere in PlantedPass was wrong at 4 places"));
  EXPECT_EQ(v.applied("RemoveIdentity"), 12u);
  EXPECT_EQ(v.count("Sigmoid"), 12u);
  expect_same(before, v.graph);
}

// A pass that changes the graph without asking the gate.
class SecretPass : public Pass {
 public:
  std::string_view name() const override { return "SecretPass"; }
  std::string_view description() const override { return "changes Add to Sub"; }
  OptLevel level() const override { return OptLevel::kBasic; }
  Status run(std::shared_ptr<Graph>& graph, PassContext&, PassResult& result) override {
    for (NodeId id : graph->node_ids()) {
      if (graph->node(id)->op != "Add") continue;
      graph->node(id)->op = "Sub";
      result.modified = true;
    }
    return {};
  }
};

TEST(Verify, a_pass_that_asks_nobody_is_undone_as_a_whole) {
  Verified v(layers());
  const std::shared_ptr<const Graph> before = v.graph->clone();
  ASSERT_TRUE(v.run(std::make_unique<SecretPass>(), true).ok());
  EXPECT_EQ(only(v), (Application{"SecretPass", "", ""}));
  EXPECT_TRUE(v.told("SecretPass changes results (output 'r2'"));
  EXPECT_TRUE(v.told("undone as a whole"));
  EXPECT_EQ(v.count("Sub"), 0u);
  EXPECT_GT(v.applied("RemoveIdentity"), 0u);
  expect_same(before, v.graph);
}

TEST(Verify, a_graph_that_is_none_any_more) {
  plant = {"sum2", 1};
  Verified v(convolutions("N", 3));
  const std::shared_ptr<const Graph> before = v.graph->clone();
  ASSERT_TRUE(v.run({rule("Breaks", "Add", breaks_the_graph)}).ok());
  EXPECT_EQ(only(v).rule, "Breaks");
  EXPECT_EQ(v.applied("FusedConvBN"), 3u);
  expect_same(before, v.graph);
}

TEST(Verify, the_caller_may_cancel) {
  const uint32_t cancelled = 1;
  Verified v(layers());
  v.cancelled = &cancelled;
  EXPECT_EQ(v.run(std::vector<Rule>{}, true).code(), Code::kCANCELLED);
}

}  // namespace
}  // namespace pfrt::test
