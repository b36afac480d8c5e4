// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

struct TestPass {
  std::string name;
  std::function<pfrt_code(pfrt_graph*, const pfrt_sink*, uint32_t*)> run;
  pfrt_pass_level level = PFRT_PASS_LEVEL_UNSET;
  std::string after;
  int released = 0;

  Failure add_to(pfrt_env* env) {
    pfrt_custom_pass c{};
    c.struct_size = sizeof c;
    c.abi = PFRT_ABI_VERSION;
    c.name = str(name);
    c.after = str(after);
    c.level = level;
    if (run)
      c.run = [](void* user, pfrt_pass_call* call) {
        return static_cast<TestPass*>(user)->run(call->graph, call->sink, &call->stats->modified);
      };
    c.release = [](void* user) { ++static_cast<TestPass*>(user)->released; };
    c.user = this;
    return take(api().env->register_pass(env, &c));
  }
};

// Replaces the graph's Relu, where there is one, by |op|.
pfrt_code replace_relu(pfrt_graph* graph, std::string_view op, uint32_t* changed) {
  for (size_t i = 0; i < api().graph->node_count(graph); ++i) {
    pfrt_node node{};
    node.struct_size = sizeof node;
    EXPECT_TRUE(ok(api().graph->node_at(graph, i, &node)));
    if (text(node.op) != "Relu") continue;
    const std::string input = text(node.inputs[0]), output = text(node.outputs[0]);
    const pfrt_string inputs[] = {str(input)}, outputs[] = {str(output)};
    EXPECT_TRUE(ok(api().graph->remove_node(graph, node.id)));
    pfrt_node made{};
    made.struct_size = sizeof made;
    made.op = str(op);
    made.inputs = inputs;
    made.outputs = outputs;
    made.input_count = made.output_count = 1;
    EXPECT_TRUE(ok(api().graph->add_node(graph, &made, nullptr)));
    *changed = 1;
    return PFRT_CODE_OK;
  }
  return PFRT_CODE_OK;
}

GraphBuilder relu_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Relu", {"x"}, {"y"});
  g.output("y");
  return g;
}

std::vector<std::string> notes(pfrt_session* session) {
  pfrt_report* raw = nullptr;
  EXPECT_TRUE(ok(api().session->explain(session, &raw)));
  const Handle<pfrt_report> report(raw);
  std::vector<std::string> out;
  for (size_t i = 0; i < api().report->note_count(raw); ++i)
    out.push_back(text(api().report->note_at(raw, i)));
  return out;
}

bool has_note(pfrt_session* session, std::string_view part) {
  for (const std::string& note : notes(session))
    if (note.find(part) != std::string::npos) return true;
  return false;
}

std::vector<float> result(pfrt_session* session) {
  return run(session, {floats({2}, {-4, 9})})[0].as<float>();
}

TEST(ClientPass, rewrites_a_copy_and_says_so) {
  TestPass pass;
  pass.name = "relu_to_neg";
  pass.run = [](pfrt_graph* graph, const pfrt_sink*, uint32_t* changed) {
    return replace_relu(graph, "Neg", changed);
  };
  {
    const auto env = make_env();
    const auto model = make_model(env.get(), relu_graph());
    ASSERT_TRUE(pass.add_to(env.get()).ok());
    const auto session = make_session(env.get(), model.get());
    ASSERT_TRUE(session);
    EXPECT_EQ(result(session.get()), (std::vector<float>{4, -9}));
    EXPECT_TRUE(has_note(session.get(), "pass 'relu_to_neg' changed the graph"));
    // The pass did not change the model, so a session at level none computes Relu.
    const auto none = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", "none"}});
    const auto plain = make_session(env.get(), model.get(), none.get());
    EXPECT_EQ(result(plain.get()), (std::vector<float>{0, 9}));
    EXPECT_FALSE(has_note(plain.get(), "relu_to_neg"));
  }
  EXPECT_EQ(pass.released, 1);
}

TEST(ClientPass, runs_at_its_level_and_in_its_place) {
  std::string order;
  std::vector<std::unique_ptr<TestPass>> passes;
  const auto env = make_env();
  const auto add = [&](std::string name, std::string after, pfrt_pass_level level) {
    auto pass = std::make_unique<TestPass>();
    pass->name = name;
    pass->after = std::move(after);
    pass->level = level;
    pass->run = [&order, name](pfrt_graph*, const pfrt_sink*, uint32_t*) {
      order += name;
      return pfrt_code{PFRT_CODE_OK};
    };
    ASSERT_TRUE(pass->add_to(env.get()).ok());
    passes.push_back(std::move(pass));
  };
  add("a", "", PFRT_PASS_LEVEL_UNSET);
  add("c", "", PFRT_PASS_EXTENDED);
  add("b", "a", PFRT_PASS_BASIC);
  add("d", "", PFRT_PASS_ALL);
  const std::pair<const char*, const char*> expected[] = {
      {"none", ""}, {"basic", "ab"}, {"extended", "abc"}, {"all", "abcd"}};
  for (const auto& [level, passes_run] : expected) {
    order.clear();
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
    const auto session = make_session(env.get(), relu_graph(), options.get());
    ASSERT_TRUE(session);
    EXPECT_EQ(order, passes_run) << level;
    EXPECT_EQ(result(session.get()), (std::vector<float>{0, 9}));
    EXPECT_EQ(has_note(session.get(), "pass 'a' found nothing to change"), !order.empty());
  }
}

TEST(ClientPass, edits_count_only_when_announced) {
  const auto env = make_env();
  TestPass pass;
  pass.name = "secretive";
  pass.run = [](pfrt_graph* graph, const pfrt_sink*, uint32_t*) {
    uint32_t unannounced = 0;
    return replace_relu(graph, "Neg", &unannounced);
  };
  ASSERT_TRUE(pass.add_to(env.get()).ok());
  const auto session = make_session(env.get(), relu_graph());
  ASSERT_TRUE(session);
  EXPECT_EQ(result(session.get()), (std::vector<float>{0, 9}));
}

TEST(ClientPass, may_keep_its_graph_without_harm) {
  const auto env = make_env();
  Handle<pfrt_graph> kept;
  TestPass pass;
  pass.name = "keeper";
  pass.run = [&](pfrt_graph* graph, const pfrt_sink*, uint32_t* changed) {
    api().graph->retain(graph);
    kept.reset(graph);
    return replace_relu(graph, "Neg", changed);
  };
  ASSERT_TRUE(pass.add_to(env.get()).ok());
  const auto session = make_session(env.get(), relu_graph());
  ASSERT_TRUE(session);
  pfrt_node node{};
  node.struct_size = sizeof node;
  ASSERT_TRUE(ok(api().graph->node_at(kept.get(), 0, &node)));
  ASSERT_TRUE(ok(api().graph->remove_node(kept.get(), node.id)));
  EXPECT_EQ(result(session.get()), (std::vector<float>{4, -9}));
}

TEST(ClientPass, faults_name_the_pass) {
  const auto faulty = [](auto run, pfrt_code code, std::initializer_list<std::string_view> parts) {
    const auto env = make_env();
    TestPass pass;
    pass.name = "faulty";
    pass.run = run;
    ASSERT_TRUE(pass.add_to(env.get()).ok());
    const Failure failure = try_session(env.get(), relu_graph());
    EXPECT_TRUE(fails(failure, code, {"pass 'faulty'"}));
    EXPECT_TRUE(fails(failure, code, parts));
  };
  faulty(
      [](pfrt_graph*, const pfrt_sink* sink, uint32_t*) {
        return sink->fail(sink, PFRT_CODE_UNSUPPORTED, PFRT_NO_INDEX, str("not on Mondays"));
      },
      PFRT_CODE_UNSUPPORTED, {"not on Mondays"});
  faulty(
      [](pfrt_graph*, const pfrt_sink*, uint32_t*) -> pfrt_code { throw std::runtime_error(""); },
      PFRT_CODE_PROVIDER, {"exception"});
  // The output's producer is gone.
  faulty(
      [](pfrt_graph* graph, const pfrt_sink*, uint32_t* changed) {
        pfrt_node node{};
        node.struct_size = sizeof node;
        EXPECT_TRUE(ok(api().graph->node_at(graph, 0, &node)));
        EXPECT_TRUE(ok(api().graph->remove_node(graph, node.id)));
        *changed = 1;
        return pfrt_code{PFRT_CODE_OK};
      },
      PFRT_CODE_VALIDATION, {"after pass 'faulty'", "'y'"});
  faulty(
      [](pfrt_graph* graph, const pfrt_sink*, uint32_t* changed) {
        pfrt_value_info info{};
        info.struct_size = sizeof info;
        info.name = str("x");
        info.rank = -1;
        EXPECT_TRUE(ok(api().graph->add_output(graph, &info)));
        *changed = 1;
        return pfrt_code{PFRT_CODE_OK};
      },
      PFRT_CODE_VALIDATION, {"outputs are others"});
}

TEST(ClientPass, is_registered_once_and_after_one_that_exists) {
  const auto env = make_env();
  const auto nothing = [](pfrt_graph*, const pfrt_sink*, uint32_t*) {
    return pfrt_code{PFRT_CODE_OK};
  };
  TestPass first, again, lost, empty, nameless, odd;
  first.name = again.name = "mine";
  lost.name = "lost";
  lost.after = "nobody";
  empty.name = "empty";
  odd.name = "odd";
  odd.level = 4;
  for (TestPass* pass : {&first, &again, &lost, &nameless, &odd}) pass->run = nothing;
  ASSERT_TRUE(first.add_to(env.get()).ok());
  EXPECT_TRUE(fails(again.add_to(env.get()), PFRT_CODE_INVALID_ARGUMENT, {"'mine'"}));
  EXPECT_TRUE(fails(lost.add_to(env.get()), PFRT_CODE_NOT_FOUND, {"'lost'", "'nobody'"}));
  for (TestPass* pass : {&empty, &nameless})
    EXPECT_EQ(pass->add_to(env.get()).code, PFRT_CODE_INVALID_ARGUMENT);
  EXPECT_TRUE(fails(odd.add_to(env.get()), PFRT_CODE_UNSUPPORTED, {"'odd'", "level 4"}));
  for (const TestPass* pass : {&again, &lost, &empty, &nameless, &odd})
    EXPECT_EQ(pass->released, 1) << pass->name;
  EXPECT_EQ(first.released, 0);
}

TEST(ClientPass, runs_again_where_an_initializer_is_fed) {
  const auto env = make_env();
  int runs = 0;
  TestPass pass;
  pass.name = "relu_to_neg";
  pass.run = [&](pfrt_graph* graph, const pfrt_sink*, uint32_t* changed) {
    ++runs;
    return replace_relu(graph, "Neg", changed);
  };
  ASSERT_TRUE(pass.add_to(env.get()).ok());
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.input("b", PFRT_DTYPE_FLOAT32, {2});
  g.constant("b", floats({2}, {1, 1}));
  g.node("Add", {"x", "b"}, {"s"});
  g.node("Relu", {"s"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({2}, {1, 2}), Array{}})[0].as<float>(),
            (std::vector<float>{-2, -3}));
  EXPECT_EQ(run(session.get(), {floats({2}, {1, 2}), floats({2}, {5, 5})})[0].as<float>(),
            (std::vector<float>{-6, -7}));
  EXPECT_EQ(runs, 2);
}

TEST(ClientPass, of_one_set_of_fed_initializers_holds_up_no_run_of_another) {
  const auto env = make_env();
  std::atomic<bool> held{false}, go_on{false};
  TestPass pass;
  pass.name = "waits_where_b_is_fed";
  pass.run = [&](pfrt_graph* graph, const pfrt_sink*, uint32_t*) {
    pfrt_value* b = nullptr;
    if (take(api().graph->initializer(graph, str("b"), &b)).ok()) return PFRT_CODE_OK;
    held = true;
    while (!go_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return PFRT_CODE_OK;
  };
  ASSERT_TRUE(pass.add_to(env.get()).ok());
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  for (const char* name : {"b", "c"}) {
    g.input(name, PFRT_DTYPE_FLOAT32, {2});
    g.constant(name, floats({2}, {1, 1}));
  }
  g.node("Add", {"x", "b"}, {"s"});
  g.node("Mul", {"s", "c"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  const Array x = floats({2}, {1, 2}), five = floats({2}, {5, 5});
  std::vector<Array> slow, quick;
  std::thread other([&] { EXPECT_TRUE(ok(try_run(session.get(), {x, five, Array{}}, &slow))); });
  while (!held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const RunDesc limit({.timeout_ms = 20000});
  EXPECT_TRUE(ok(try_run(session.get(), {x, Array{}, five}, &quick, limit.get())));
  go_on = true;
  other.join();
  EXPECT_EQ(quick.at(0).as<float>(), (std::vector<float>{10, 15}));
  EXPECT_EQ(slow.at(0).as<float>(), (std::vector<float>{6, 7}));
}

}  // namespace
}  // namespace pfrt_test
