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
