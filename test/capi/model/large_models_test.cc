// SPDX-License-Identifier: Apache-2.0
//
// Models of very many small parts, and of few that ask for much. Loading, optimising and running
// take time in proportion to the model (work for each pair of nodes would not end here), stay
// within its memory and can be stopped everywhere.
#include <chrono>
#include <functional>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMany = 20'000;
#else
constexpr int kMany = 100'000;
#endif

std::string name(const char* stem, int i) { return stem + std::to_string(i); }

GraphBuilder begin() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  return g;
}

// Each node adds a constant of its own to the value before; all constants are equal.
GraphBuilder equal_constants() {
  GraphBuilder g = begin();
  for (int i = 0; i < kMany; ++i) {
    g.constant(name("c", i), floats({}, {1}));
    g.node("Add", {i == 0 ? "x" : name("v", i - 1), name("c", i)}, {name("v", i)});
  }
  g.output(name("v", kMany - 1));
  return g;
}

GraphBuilder dead_nodes() {
  GraphBuilder g = begin();
  for (int i = 0; i < kMany; ++i) g.node("Relu", {"x"}, {name("v", i)});
  g.node("Neg", {"x"}, {"y"});
  g.output("y");
  return g;
}

GraphBuilder equal_nodes() {
  GraphBuilder g = begin();
  std::vector<std::string> all;
  for (int i = 0; i < kMany; ++i) {
    all.push_back(name("v", i));
    g.node("Neg", {"x"}, {all.back()});
  }
  g.node("Concat", all, {"y"}, {Attr::of_int("axis", 0)});
  g.output("y");
  return g;
}

GraphBuilder chain_of_identities() {
  GraphBuilder g = begin();
  for (int i = 0; i < kMany; ++i)
    g.node("Identity", {i == 0 ? "x" : name("v", i - 1)}, {name("v", i)});
  g.node("Neg", {name("v", kMany - 1)}, {"y"});
  g.output("y");
  return g;
}

GraphBuilder constants_to_fold() {
  GraphBuilder g = begin();
  for (int i = 0; i < kMany / 2; ++i) {
    g.constant(name("c", i), floats({}, {static_cast<float>(i % 10)}));
    g.node("Neg", {name("c", i)}, {name("n", i)});
    g.node("Add", {i == 0 ? "x" : name("v", i - 1), name("n", i)}, {name("v", i)});
  }
  g.output(name("v", kMany / 2 - 1));
  return g;
}

GraphBuilder metadata() {
  GraphBuilder g = begin();
  for (int i = 0; i < kMany; ++i) {
    const std::string key = name("k", i);
    EXPECT_TRUE(ok(api().graph->set_metadata(g.get(), str(key), str("v"))));
  }
  g.node("Neg", {"x"}, {"y"});
  g.output("y");
  return g;
}

struct Large {
  const char* name;
  GraphBuilder (*make)();
  float result;  // first element, for x = {1, 1}
};
void PrintTo(const Large& large, std::ostream* out) { *out << large.name; }

class LargeModels : public testing::TestWithParam<Large> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, LargeModels,
    testing::Values(Large{"equal_constants", equal_constants, kMany + 1},
                    Large{"dead_nodes", dead_nodes, -1}, Large{"equal_nodes", equal_nodes, -1},
                    Large{"chain_of_identities", chain_of_identities, -1},
                    Large{"constants_to_fold", constants_to_fold, 1 - kMany / 2 / 10 * 45.0f},
                    Large{"metadata", metadata, -1}),
    [](const auto& test) { return test.param.name; });

TEST_P(LargeModels, end) {
  const auto env = make_env();
  const GraphBuilder g = GetParam().make();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", "all"}});
  const auto session = make_session(env.get(), g, options.get());
  const std::vector<Array> out = run(session.get(), {floats({2}, {1, 1})});
  ASSERT_FALSE(out.empty());
  EXPECT_FLOAT_EQ(out[0].as<float>()[0], GetParam().result);
}

// Each of |count| constants would take 16 MiB.
GraphBuilder fold_bomb(int count) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1});
  g.constant("shape", int64s({1}, {4 << 20}));
  std::string sum = "x";
  for (int i = 0; i < count; ++i) {
    g.node("ConstantOfShape", {"shape"}, {name("z", i)});
    g.constant(name("c", i), floats({}, {static_cast<float>(i)}));
    g.node("Add", {name("z", i), name("c", i)}, {name("f", i)});
    g.node("ReduceMax", {name("f", i)}, {name("m", i)}, {Attr::of_int("keepdims", 1)});
    g.node("Expand", {name("m", i), "shape"}, {name("e", i)});
    g.node("Add", {sum, name("e", i)}, {name("s", i)});
    sum = name("s", i);
  }
  g.output(sum);
  return g;
}

TEST(Folding, makes_no_more_than_a_model_of_its_size_may_ask_for) {
  const auto env = make_env();
  const auto session = make_session(env.get(), fold_bomb(40));
  pfrt_report* made = nullptr;
  ASSERT_TRUE(ok(api().session->explain(session.get(), &made)));
  const Handle<pfrt_report> report(made);
  std::string notes;
  for (size_t i = 0; i < api().report->note_count(made); ++i)
    notes += text(api().report->note_at(made, i)) + "\n";
  EXPECT_NE(notes.find("constants beyond what a model of this size may have computed beforehand"),
            std::string::npos)
      << notes;
  // The run computes the rest, and its result is right.
  const std::vector<Array> out = run(session.get(), {floats({1}, {1})});
  EXPECT_EQ(out[0].as<float>()[5], 1 + 39 * 40 / 2);
}

TEST(Stopping, ends_the_making_of_a_session_at_its_deadline) {
  const auto env = make_env();
  const auto model = make_model(env.get(), constants_to_fold());
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"create_timeout_ms", "20"}});
  EXPECT_TRUE(fails(try_session(env.get(), model.get(), options.get()), PFRT_CODE_DEADLINE,
                    {"the deadline has passed"}));
}

// Creation runs parts of the model on trial; here they hold a loop without end.
TEST(Stopping, ends_trials_at_the_deadline_of_the_session) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2, 2});
  g.constant("trips", int64s({}, {int64_t{1} << 62}));
  g.constant("w", floats({2, 2}, {1, 0, 0, 1}));
  GraphBuilder body(g, "body");
  body.input("i", PFRT_DTYPE_INT64, {});
  body.input("go", PFRT_DTYPE_BOOL, {});
  body.input("c", PFRT_DTYPE_FLOAT32, {2, 2});
  body.node("Identity", {"go"}, {"more"});
  body.node("Neg", {"c"}, {"d"});
  body.output("more");
  body.output("d");
  g.node("MatMul", {"x", "w"}, {"m"});
  g.node("Identity", {"m"}, {"n"});
  g.node("Loop", {"trips", "", "n"}, {"y"}, {Attr::of_graph("body", body.get())});
  g.output("y");
  for (const Settings& trial : {Settings{{"verify", "on"}}, Settings{{"precision", "auto"}}}) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, trial);
    EXPECT_TRUE(ok(api().options->set_text(options.get(), str("create_timeout_ms"), str("200"))));
    EXPECT_TRUE(fails(try_session(env.get(), g, options.get()), PFRT_CODE_DEADLINE,
                      {"the deadline has passed"}));
  }
}

TEST(Stopping, ends_the_making_of_a_session_that_is_cancelled) {
  const auto env = make_env();
  const auto model = make_model(env.get(), equal_constants());
  const auto options = make_options(PFRT_OPTIONS_SESSION);
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    api().options->cancel(options.get());
  });
  EXPECT_TRUE(fails(try_session(env.get(), model.get(), options.get()), PFRT_CODE_CANCELLED, {}));
  canceller.join();
}

TEST(Stopping, ends_the_making_of_a_model_at_its_deadline) {
  const auto env = make_env();
  const GraphBuilder g = chain_of_identities();
  const auto options = make_options(PFRT_OPTIONS_LOAD, {{"timeout_ms", "5"}});
  pfrt_model* model = nullptr;
  EXPECT_TRUE(fails(api().model->from_graph(env.get(), g.get(), options.get(), &model),
                    PFRT_CODE_DEADLINE, {"the deadline has passed"}));
  EXPECT_EQ(model, nullptr);
}

}  // namespace
}  // namespace pfrt_test
