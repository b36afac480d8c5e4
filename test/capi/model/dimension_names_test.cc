// SPDX-License-Identifier: Apache-2.0
//
// Inputs whose dimensions share names but have different sizes in a run.
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr const char* kNamedLevels[] = {"none", "basic", "extended", "all"};

Handle<pfrt_session> session_of(pfrt_env* env, const GraphBuilder& g, Settings settings) {
  const auto options = make_options(PFRT_OPTIONS_SESSION, settings);
  return make_session(env, g, options.get());
}

// A graph with many nodes whose optimisation depends on equal dimensions: broadcasts, shapes of one
// input taken for another, reductions and products. With |tied| both inputs have the same names.
GraphBuilder broadcasts(bool tied) {
  GraphBuilder g;
  g.input("a", PFRT_DTYPE_FLOAT32, {"N", "C"});
  g.input("b", PFRT_DTYPE_FLOAT32, {tied ? "N" : "M", tied ? "C" : "D"});
  g.constant("zero", int64s({1}, {0}));
  g.node("Add", {"a", "b"}, {"sum"});
  g.node("Relu", {"sum"}, {"r"});
  g.node("Mul", {"r", "a"}, {"m"});
  g.node("Shape", {"a"}, {"shape"});
  g.node("Expand", {"b", "shape"}, {"wide"});
  g.node("Shape", {"b"}, {"other"});
  g.node("Sub", {"shape", "other"}, {"apart"});
  g.node("Transpose", {"b"}, {"t"}, {Attr::of_ints("perm", {1, 0})});
  g.node("Concat", {"shape", "other"}, {"both"}, {Attr::of_int("axis", 0)});
  g.node("Reshape", {"wide", "shape"}, {"back"});
  g.node("Greater", {"a", "b"}, {"above"});
  g.node("Where", {"above", "m", "back"}, {"chosen"});
  g.node("Softmax", {"m"}, {"soft"}, {Attr::of_int("axis", 1)});
  g.node("ReduceSum", {"wide", "zero"}, {"total"});
  for (const char* name : {"sum", "m", "wide", "apart", "t", "both", "chosen", "soft", "total"})
    g.output(name);
  return g;
}

TEST(DimensionNames, of_other_sizes_tie_nothing) {
  const auto env = make_env();
  const GraphBuilder named = broadcasts(true), plain = broadcasts(false);
  const std::vector<std::vector<int64_t>> sizes = {{4, 3}, {1, 3}, {4, 1}, {1, 1}, {4, 3}};
  const Array a = noise({4, 3}, 1);
  for (const char* level : kNamedLevels) {
    const auto session = session_of(env.get(), named, {{"optimization_level", level}});
    const auto reference = session_of(env.get(), plain, {{"optimization_level", "none"}});
    for (const std::vector<int64_t>& dims : sizes) {
      const Array b = noise(dims, 2);
      const std::vector<Array> got = run(session.get(), {a, b}),
                               want = run(reference.get(), {a, b});
      ASSERT_EQ(got.size(), want.size()) << level;
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].dims, want[i].dims) << level << " output " << i;
        if (got[i].dtype != PFRT_DTYPE_FLOAT32) {
          EXPECT_EQ(got[i].bytes, want[i].bytes) << level << " output " << i;
          continue;
        }
        const auto x = got[i].as<float>(), y = want[i].as<float>();
        for (size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(x[k], y[k], 1e-6) << level << i;
      }
    }
  }
}

// y = Relu(b) expanded to the shape of Relu(a): b, if both shapes were the same.
GraphBuilder expansion() {
  GraphBuilder g;
  g.input("a", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("b", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Relu", {"a"}, {"ra"});
  g.node("Relu", {"b"}, {"rb"});
  g.node("Shape", {"ra"}, {"shape"});
  g.node("Expand", {"rb", "shape"}, {"y"});
  g.output("y");
  return g;
}

// y has as many elements as a, whatever the sizes that came before.
void expect_expands(pfrt_session* session) {
  const Array seven = floats({1}, {7});
  for (int64_t n : {4, 1, 4, 5, 6, 7, 8, 9, 10, 40}) {
    const Array a = noise({n}, 1);
    const std::vector<Array> out = run(session, {a, seven});
    EXPECT_EQ(out[0].dims, (std::vector<int64_t>{n}));
    EXPECT_EQ(out[0].as<float>(), std::vector<float>(static_cast<size_t>(n), 7.0f));
    EXPECT_EQ(run(session, {a, floats({n}, std::vector<float>(static_cast<size_t>(n), 2))})[0]
                  .as<float>(),
              std::vector<float>(static_cast<size_t>(n), 2.0f));
  }
}

TEST(DimensionNames, of_other_sizes_leave_an_expansion_at_every_level) {
  const auto env = make_env();
  const GraphBuilder g = expansion();
  for (const char* level : kNamedLevels) {
    for (const char* mode : {"sequential", "parallel"}) {
      const auto session =
          session_of(env.get(), g,
                     {{"optimization_level", level}, {"execution_mode", mode}, {"verify", "on"}});
      expect_expands(session.get());
    }
  }
}

struct OptimizerRelease {
  void operator()(pfrt_optimizer* p) const { api().optimizer->release(p); }
  void operator()(pfrt_optimization* p) const { api().optimizer->release_result(p); }
};

TEST(DimensionNames, tie_nothing_in_a_graph_that_was_optimised_unless_the_option_says_so) {
  const auto env = make_env();
  const auto optimise = [&](pfrt_graph* graph, const Settings& settings) {
    const auto options = make_options(PFRT_OPTIONS_OPTIMIZER, settings);
    pfrt_optimizer* raw = nullptr;
    ASSERT_TRUE(ok(api().optimizer->create(env.get(), options.get(), &raw)));
    const std::unique_ptr<pfrt_optimizer, OptimizerRelease> optimizer(raw);
    ASSERT_TRUE(ok(api().optimizer->add_default_passes(raw)));
    pfrt_optimization* result = nullptr;
    ASSERT_TRUE(ok(api().optimizer->run(raw, graph, {}, 1, &result)));
    const std::unique_ptr<pfrt_optimization, OptimizerRelease> done(result);
  };
  for (const char* level : kNamedLevels) {
    GraphBuilder g = expansion();
    optimise(g.get(), {{"level", level}});
    expect_expands(session_of(env.get(), g, {}).get());
    for (const bool input : {true, false}) {
      if (!input && std::string_view(level) == "none") continue;  // nobody has inferred its type
      pfrt_value_info info{};
      info.struct_size = sizeof info;
      ASSERT_TRUE(ok(input ? api().graph->input_at(g.get(), 1, &info)
                           : api().graph->output_at(g.get(), 0, &info)));
      ASSERT_EQ(info.rank, 1);
      EXPECT_EQ(text(info.dim_names[0]), "N") << level;
    }
  }
  GraphBuilder g = expansion();
  optimise(g.get(), {{"level", "all"}, {"strict_dimension_names", "true"}});
  EXPECT_EQ(api().graph->node_count(g.get()), 1u) << "nothing is left to expand";
}

TEST(DimensionNames, of_one_input_may_differ_too) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", "N"});
  g.node("Transpose", {"x"}, {"t"}, {Attr::of_ints("perm", {1, 0})});
  g.node("MatMul", {"x", "t"}, {"y"});
  g.output("y");
  for (const char* level : kNamedLevels) {
    const auto session = session_of(env.get(), g, {{"optimization_level", level}});
    const std::vector<Array> out = run(session.get(), {floats({2, 3}, {1, 2, 3, 4, 5, 6})});
    EXPECT_EQ(out[0].as<float>(), (std::vector<float>{14, 32, 32, 77})) << level;
  }
}

TEST(DimensionNames, that_differ_beside_a_default_that_is_fed) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", "C"});
  g.input("b", PFRT_DTYPE_FLOAT32, {"N", "C"});
  g.constant("b", floats({1, 1}, {1}));
  g.node("Add", {"x", "b"}, {"y"});
  g.output("y");
  const auto session = session_of(env.get(), g, {});
  const Array x = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run(session.get(), {x, Array()})[0].as<float>(), (std::vector<float>{2, 3, 4, 5}));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(run(session.get(), {x, floats({2, 1}, {10, 20})})[0].as<float>(),
              (std::vector<float>{11, 12, 23, 24}));
    EXPECT_EQ(run(session.get(), {x, x})[0].as<float>(), (std::vector<float>{2, 4, 6, 8}));
  }
}

TEST(DimensionNames, are_warned_of_once_and_refused_where_the_option_says_so) {
  std::string lines;
  const auto env = make_env({{"log_level", "warning"}});
  ASSERT_TRUE(ok(api().env->set_logger(
      env.get(),
      [](void* user, pfrt_log_level, pfrt_string line) {
        *static_cast<std::string*>(user) += text(line) + "\n";
      },
      &lines)));
  const GraphBuilder g = broadcasts(true);
  const std::vector<Array> inputs{noise({4, 3}, 1), noise({1, 3}, 2)};
  const auto session = session_of(env.get(), g, {});
  for (int round = 0; round < 3; ++round) run(session.get(), inputs);
  const std::string warning = "dimension 'N' is 1 in input 'b' and 4 in input 'a'";
  const size_t first = lines.find(warning);
  ASSERT_NE(first, std::string::npos) << lines;
  EXPECT_EQ(lines.find(warning, first + 1), std::string::npos) << lines;
  const auto strict = session_of(env.get(), g, {{"strict_dimension_names", "true"}});
  EXPECT_TRUE(fails(try_run(strict.get(), inputs), PFRT_CODE_SHAPE_MISMATCH,
                    {"input 'b' expects [N,C], got [1,3]", "(dimension 'N' is 4 in input 'a')"}));
  EXPECT_TRUE(ok(try_run(strict.get(), {inputs[0], inputs[0]})));
}

}  // namespace
}  // namespace pfrt_test
