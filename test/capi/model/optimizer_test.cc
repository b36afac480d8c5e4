// SPDX-License-Identifier: Apache-2.0
//
// The optimizer and pattern areas of the C table: the work of the guide's chapter, without C++.
#include <map>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

struct OptimizerRelease {
  void operator()(pfrt_optimizer* p) const { api().optimizer->release(p); }
  void operator()(pfrt_optimization* p) const { api().optimizer->release_result(p); }
  void operator()(pfrt_pattern* p) const { api().pattern->release(p); }
  void operator()(pfrt_matches* p) const { api().pattern->release_matches(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, OptimizerRelease>;

Owned<pfrt_optimizer> make_optimizer(pfrt_env* env, const Settings& settings = {}) {
  const auto options = make_options(PFRT_OPTIONS_OPTIMIZER, settings);
  pfrt_optimizer* out = nullptr;
  EXPECT_TRUE(ok(api().optimizer->create(env, options.get(), &out)));
  return Owned<pfrt_optimizer>(out);
}

Owned<pfrt_optimization> optimise(pfrt_optimizer* optimizer, pfrt_graph* graph,
                                  std::string_view pass = {}, bool until_fixed_point = true) {
  pfrt_optimization* out = nullptr;
  EXPECT_TRUE(
      ok(api().optimizer->run(optimizer, graph, str(pass), until_fixed_point ? 1 : 0, &out)));
  return Owned<pfrt_optimization>(out);
}

pfrt_pass_stats totals(const pfrt_optimization* result) {
  pfrt_pass_stats stats{};
  stats.struct_size = sizeof stats;
  EXPECT_TRUE(ok(api().optimizer->totals(result, &stats)));
  return stats;
}

std::vector<std::string> ops(const pfrt_graph* graph) {
  std::vector<std::string> out;
  for (size_t i = 0; i < api().graph->node_count(graph); ++i) {
    pfrt_node node{};
    node.struct_size = sizeof node;
    EXPECT_TRUE(ok(api().graph->node_at(graph, i, &node)));
    out.push_back(text(node.op));
  }
  return out;
}

// y = Relu(Identity(x) W + b), and a sum of constants.
void dense(GraphBuilder& g) {
  g.input("x", PFRT_DTYPE_FLOAT32, {"batch", 8});
  g.constant("w", floats({8, 4}, random_floats(32, 1)));
  g.constant("b", floats({4}, random_floats(4, 2)));
  g.node("Identity", {"x"}, {"same"});
  g.node("MatMul", {"same", "w"}, {"product"});
  g.node("Add", {"product", "b"}, {"sum"});
  g.node("Relu", {"sum"}, {"y"});
  g.node("Add", {"b", "b"}, {"twice"});
  g.output("y");
  g.output("twice");
}

TEST(Optimizer, runs_the_default_passes_and_reports_them) {
  const auto env = make_env();
  GraphBuilder g;
  dense(g);
  const auto optimizer = make_optimizer(env.get(), {{"level", "all"}});
  EXPECT_EQ(api().optimizer->pass_count(optimizer.get()), 0u);
  ASSERT_TRUE(ok(api().optimizer->add_default_passes(optimizer.get())));
  ASSERT_EQ(api().optimizer->pass_count(optimizer.get()), 5u);
  EXPECT_EQ(text(api().optimizer->pass_at(optimizer.get(), 2)), "CSEPass");
  const auto result = optimise(optimizer.get(), g.get());
  const pfrt_pass_stats all = totals(result.get());
  EXPECT_EQ(all.modified, 1u);
  EXPECT_EQ(all.constants_folded, 1u);
  EXPECT_GE(all.nodes_fused, 1u);
  EXPECT_EQ(ops(g.get()), (std::vector<std::string>{"Relu", "Gemm"}));
  std::map<std::string, uint64_t> rules;
  ASSERT_EQ(api().optimizer->report_count(result.get()), 5u);
  for (size_t i = 0; i < 5; ++i) {
    pfrt_pass_report report{};
    report.struct_size = sizeof report;
    ASSERT_TRUE(ok(api().optimizer->report_at(result.get(), i, &report)));
    EXPECT_GE(report.runs, report.stats->modified ? 2u : 1u) << "until nothing changes";
    for (size_t r = 0; r < api().optimizer->rule_count(result.get(), i); ++r) {
      pfrt_string rule{};
      uint64_t count = 0;
      ASSERT_TRUE(ok(api().optimizer->rule_at(result.get(), i, r, &rule, &count)));
      rules[text(rule)] += count;
    }
  }
  EXPECT_EQ(rules["Gemm"], 1u);
  EXPECT_EQ(rules["RemoveIdentity"], 1u);
  EXPECT_EQ(totals(optimise(optimizer.get(), g.get()).get()).modified, 0u);

  const auto session = make_session(env.get(), g);
  const std::vector<float> x = random_floats(24, 3);
  GraphBuilder plain;
  dense(plain);
  const auto none = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", "none"}});
  const auto expected =
      run(make_session(env.get(), plain, none.get()).get(), {floats({3, 8}, x)})[0].as<float>();
  const auto got = run(session.get(), {floats({3, 8}, x)})[0].as<float>();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5f);
}

TEST(Optimizer, takes_passes_by_name_with_their_options) {
  const auto env = make_env();
  const auto optimizer = make_optimizer(env.get());
  const auto keep = make_options(PFRT_OPTIONS_OPTIMIZER, {{"dce.remove_identity", "false"}});
  ASSERT_TRUE(
      ok(api().optimizer->add_pass(optimizer.get(), str("DeadCodeEliminationPass"), keep.get())));
  GraphBuilder g;
  dense(g);
  EXPECT_EQ(totals(optimise(optimizer.get(), g.get()).get()).modified, 0u);
  ASSERT_TRUE(
      ok(api().optimizer->add_pass(optimizer.get(), str("DeadCodeEliminationPass"), nullptr)));
  EXPECT_EQ(api().optimizer->pass_count(optimizer.get()), 1u) << "the second takes its place";
  EXPECT_EQ(totals(optimise(optimizer.get(), g.get(), {}, false).get()).nodes_removed, 1u);

  EXPECT_TRUE(fails(api().optimizer->add_pass(optimizer.get(), str("Pass"), nullptr),
                    PFRT_CODE_NOT_FOUND, {"'Pass'", "CSEPass"}));
  pfrt_optimization* result = nullptr;
  EXPECT_TRUE(fails(api().optimizer->run(optimizer.get(), g.get(), str("CSEPass"), 0, &result),
                    PFRT_CODE_NOT_FOUND, {"CSEPass", "DeadCodeEliminationPass"}));
  EXPECT_EQ(result, nullptr);
  const auto session = make_options(PFRT_OPTIONS_SESSION);
  pfrt_optimizer* other = nullptr;
  EXPECT_TRUE(fails(api().optimizer->create(env.get(), session.get(), &other),
                    PFRT_CODE_INVALID_ARGUMENT, {"session", "optimizer"}));
}

TEST(Optimizer, leaves_bodies_to_their_graphs) {
  const auto env = make_env();
  GraphBuilder g;
  GraphBuilder body(g, "body");
  const auto optimizer = make_optimizer(env.get());
  pfrt_optimization* result = nullptr;
  EXPECT_TRUE(fails(api().optimizer->run(optimizer.get(), body.get(), str(""), 0, &result),
                    PFRT_CODE_INVALID_ARGUMENT, {"body"}));
}

// A client's pass, which removes Relu.
struct Client {
  int calls = 0, released = 0;
  pfrt_code answer = PFRT_CODE_OK;
  bool says_modified = true;

  pfrt_custom_pass table() {
    pfrt_custom_pass c{};
    c.struct_size = sizeof c;
    c.abi = PFRT_ABI_VERSION;
    c.name = str("NoReluPass");
    c.level = PFRT_PASS_EXTENDED;
    c.user = this;
    c.release = [](void* user) { ++static_cast<Client*>(user)->released; };
    c.run = [](void* user, pfrt_pass_call* call) -> pfrt_code {
      auto& self = *static_cast<Client*>(user);
      ++self.calls;
      if (self.answer != PFRT_CODE_OK)
        return call->sink->fail(call->sink, self.answer, PFRT_NO_INDEX, str("not today"));
      uint32_t id = PFRT_NO_NODE;
      while ((id = call->api->graph->next_node(call->graph, id)) != PFRT_NO_NODE) {
        pfrt_node node{};
        node.struct_size = sizeof node;
        EXPECT_TRUE(ok(call->api->graph->node_by_id(call->graph, id, &node)));
        if (text(node.op) != "Relu") continue;
        const std::string from = text(node.outputs[0]), to = text(node.inputs[0]);
        EXPECT_TRUE(ok(call->api->graph->replace_uses(call->graph, str(from), str(to), id)));
        EXPECT_TRUE(ok(call->api->graph->remove_node(call->graph, id)));
        call->stats->modified = self.says_modified;
        call->stats->nodes_removed = 7;  // the report has this count, which is the pass's own
      }
      call->sink->log(call->sink, PFRT_LOG_WARNING, str("negative numbers come through"));
      return PFRT_CODE_OK;
    };
    return c;
  }
};

TEST(Optimizer, runs_passes_of_the_client) {
  const auto env = make_env();
  Client client;
  {
    const auto optimizer = make_optimizer(env.get());
    const pfrt_custom_pass table = client.table();
    ASSERT_TRUE(ok(api().optimizer->add_custom_pass(optimizer.get(), &table)));
    GraphBuilder g;
    dense(g);
    const auto result = optimise(optimizer.get(), g.get(), {}, false);
    EXPECT_EQ(client.calls, 1);
    EXPECT_EQ(totals(result.get()).nodes_removed, 7u);
    ASSERT_EQ(api().optimizer->warning_count(result.get()), 1u);
    EXPECT_EQ(text(api().optimizer->warning_at(result.get(), 0)), "negative numbers come through");
    for (const std::string& op : ops(g.get())) EXPECT_NE(op, "Relu");

    GraphBuilder kept;
    dense(kept);
    client.says_modified = false;
    EXPECT_EQ(totals(optimise(optimizer.get(), kept.get()).get()).modified, 0u);
    EXPECT_EQ(ops(kept.get()).size(), 5u) << "edits that it does not own up to are dropped";

    client.answer = PFRT_CODE_UNSUPPORTED;
    pfrt_optimization* none = nullptr;
    EXPECT_TRUE(fails(api().optimizer->run(optimizer.get(), kept.get(), str(""), 0, &none),
                      PFRT_CODE_UNSUPPORTED, {"NoReluPass", "not today"}));
    EXPECT_EQ(ops(kept.get()).size(), 5u);
    EXPECT_EQ(client.released, 0);
  }
  EXPECT_EQ(client.released, 1);

  const auto optimizer = make_optimizer(env.get());
  pfrt_custom_pass table = client.table();
  table.name = str("CSEPass");
  EXPECT_TRUE(fails(api().optimizer->add_custom_pass(optimizer.get(), &table),
                    PFRT_CODE_INVALID_ARGUMENT, {"CSEPass", "built-in"}));
  EXPECT_EQ(client.released, 2) << "also when it is refused";
}

TEST(Optimizer, runs_beside_sessions_of_the_same_graph) {
  const auto env = make_env();
  GraphBuilder g;
  dense(g);
  const auto session = make_session(env.get(), g);
  const std::vector<float> x = random_floats(8, 3);
  const auto before = run(session.get(), {floats({1, 8}, x)});
  const auto optimizer = make_optimizer(env.get());
  ASSERT_TRUE(ok(api().optimizer->add_default_passes(optimizer.get())));
  optimise(optimizer.get(), g.get());
  EXPECT_EQ(run(session.get(), {floats({1, 8}, x)})[0].bytes, before[0].bytes);
}

TEST(Optimizer, a_session_skips_passes_that_there_are) {
  const auto env = make_env();
  GraphBuilder g;
  dense(g);
  const auto model = make_model(env.get(), g);
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"skip_passes", "CSEPass,CSPass"}});
  pfrt_session_desc desc{};
  desc.struct_size = sizeof desc;
  desc.model = model.get();
  desc.options = options.get();
  pfrt_session* session = nullptr;
  EXPECT_TRUE(fails(api().session->create(env.get(), &desc, &session), PFRT_CODE_INVALID_ARGUMENT,
                    {"'CSPass'", "CSEPass"}));
  EXPECT_EQ(session, nullptr);

  const auto optimizer = make_optimizer(env.get(), {{"skip_passes", "CSPass"}});
  pfrt_optimization* result = nullptr;
  EXPECT_TRUE(fails(api().optimizer->run(optimizer.get(), g.get(), str(""), 0, &result),
                    PFRT_CODE_INVALID_ARGUMENT, {"'CSPass'", "CSEPass"}));
}

TEST(Optimizer, lists_every_rewrite) {
  const size_t count = api().optimizer->known_rule_count();
  ASSERT_GT(count, 15u);
  pfrt_string pass{}, rule{}, level{}, what{};
  for (size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(ok(api().optimizer->known_rule_at(i, &pass, &rule, &level, &what)));
    EXPECT_FALSE(text(rule).empty());
  }
  EXPECT_TRUE(fails(api().optimizer->known_rule_at(count, &pass, &rule, &level, &what),
                    PFRT_CODE_INVALID_ARGUMENT, {}));
}

TEST(Pattern, finds_nodes_along_edges) {
  GraphBuilder g;
  dense(g);
  pfrt_pattern* made = nullptr;
  ASSERT_TRUE(ok(api().pattern->create(&made)));
  const Owned<pfrt_pattern> pattern(made);
  const auto& p = *api().pattern;
  ASSERT_TRUE(ok(p.add_node(made, str("MatMul"), str(""), str("product"))));
  ASSERT_TRUE(ok(p.add_node(made, str("Add"), str(""), str("sum"))));
  ASSERT_TRUE(ok(p.add_node(made, str(""), str(""), str("after"))));
  ASSERT_TRUE(ok(p.add_edge(made, str("product"), 0, str("sum"), PFRT_ANY_INPUT)));
  ASSERT_TRUE(ok(p.add_edge(made, str("sum"), 0, str("after"), 0)));
  ASSERT_TRUE(ok(p.set_root(made, str("sum"))));
  pfrt_matches* found = nullptr;
  ASSERT_TRUE(ok(p.find_all(made, g.get(), &found)));
  const Owned<pfrt_matches> matches(found);
  ASSERT_EQ(p.match_count(found), 1u);
  uint32_t id = PFRT_NO_NODE, single = 0;
  ASSERT_TRUE(ok(p.node(found, 0, str("after"), &id)));
  pfrt_node node{};
  node.struct_size = sizeof node;
  ASSERT_TRUE(ok(api().graph->node_by_id(g.get(), id, &node)));
  EXPECT_EQ(text(node.op), "Relu");
  ASSERT_TRUE(ok(p.is_single_consumer(found, 0, str("product"), &single)));
  EXPECT_EQ(single, 1u);
  ASSERT_TRUE(ok(p.is_single_consumer(found, 0, str("after"), &single)));
  EXPECT_EQ(single, 0u) << "a graph output";
  EXPECT_TRUE(fails(p.node(found, 1, str("after"), &id), PFRT_CODE_INVALID_ARGUMENT, {"match 1"}));
  EXPECT_TRUE(fails(p.node(found, 0, str("before"), &id), PFRT_CODE_NOT_FOUND, {"'before'"}));
}

}  // namespace
}  // namespace pfrt_test
