// SPDX-License-Identifier: Apache-2.0
//
// The host with plug-ins that break their contracts in ways that no loader can see.
#include <map>

#include "pyflame_rt/plugin.h"
#include "test/capi/client.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

Handle<pfrt_env> broken_env() { return make_env({{"plugin_path", PFRT_BROKEN_PLUGINS}}); }

std::map<std::string, std::string> reasons(pfrt_env* env) {
  std::map<std::string, std::string> out;
  for (size_t i = 0; i < api().env->plugin_count(env); ++i) {
    pfrt_plugin_info info{};
    info.struct_size = sizeof info;
    EXPECT_TRUE(ok(api().env->plugin_at(env, i, &info)));
    std::string file = text(info.path);
    file = file.substr(file.rfind('/') + 1);
    out[file] = info.loaded ? "" : text(info.reason);
  }
  return out;
}

GraphBuilder sum() {
  GraphBuilder g;
  g.input("a", PFRT_DTYPE_FLOAT32, {3});
  g.input("b", PFRT_DTYPE_FLOAT32, {3});
  g.node("Add", {"a", "b"}, {"y"});
  g.output("y");
  return g;
}

TEST(Robust, strings_without_text_are_turned_away) {
  const auto env = broken_env();
  auto all = reasons(env.get());
  EXPECT_NE(all["libpyflamert_provider_lying_name.so"].find("no name"), std::string::npos);
  EXPECT_NE(all["libpyflamert_provider_lying_devices.so"].find("devices"), std::string::npos);
}

TEST(Robust, exceptions_of_a_provider_end_at_its_edge) {
  const auto env = broken_env();
  const auto options =
      make_options(PFRT_OPTIONS_SESSION, {{"providers", "ThrowingExecutionProvider"}});
  const Failure failure = try_session(env.get(), sum(), options.get());
  EXPECT_FALSE(failure.ok());
  EXPECT_NE(failure.message.find("claim threw this"), std::string::npos) << failure.message;

  const auto both = make_options(PFRT_OPTIONS_SESSION,
                                 {{"providers", "ThrowingExecutionProvider,CPUExecutionProvider"}});
  const auto session = make_session(env.get(), sum(), both.get());
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({3}, {1, 2, 3}), floats({3}, {4, 5, 6})})[0].as<float>(),
            (std::vector<float>{5, 7, 9}));
}

TEST(Robust, program_of_structs_too_small_is_not_read) {
  const std::string folder = PFRT_BROKEN_PLUGINS "/libpyflamert_provider_short_steps.so";
  const TemporaryFolder here;
  write_file(here.path() + "/libpyflamert_provider_bad.so", read_file(folder));
  const auto env = make_env({{"plugin_path", here.path()}});
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", "BadExecutionProvider"}});
  const auto session = make_session(env.get(), sum(), options.get());
  ASSERT_TRUE(session);
  const Failure failure = try_run(session.get(), {floats({3}, {1, 2, 3}), floats({3}, {4, 5, 6})});
  EXPECT_FALSE(failure.ok());
  EXPECT_NE(failure.message.find("a pfrt_step: its size in the array is 8, fewer bytes than"),
            std::string::npos)
      << failure.message;
}

// A folder of its own has each plug-in whose structs are of a later minor.
Handle<pfrt_env> newer_env(const std::string& name) {
  return make_env({{"plugin_path", PFRT_BROKEN_PLUGINS "/" + name}});
}

TEST(Robust, newer_members_of_steps_are_unsupported) {
  const auto env = newer_env("newer_steps");
  const auto alone = make_options(PFRT_OPTIONS_SESSION, {{"providers", "BadExecutionProvider"}});
  const auto session = make_session(env.get(), sum(), alone.get());
  ASSERT_TRUE(session);
  const std::vector<Array> inputs = {floats({3}, {1, 2, 3}), floats({3}, {4, 5, 6})};
  EXPECT_TRUE(fails(try_run(session.get(), inputs), PFRT_CODE_UNSUPPORTED,
                    {"BadExecutionProvider", "pfrt_step", "newer headers"}));
  const auto both = make_options(PFRT_OPTIONS_SESSION,
                                 {{"providers", "BadExecutionProvider,CPUExecutionProvider"}});
  const auto next = make_session(env.get(), sum(), both.get());
  ASSERT_TRUE(next);
  EXPECT_EQ(run(next.get(), inputs)[0].as<float>(), (std::vector<float>{5, 7, 9}));
}

TEST(Robust, newer_members_of_operators_are_unsupported) {
  const auto env = newer_env("newer_op");
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {3});
  g.node("Twice", {"x"}, {"y"}, {}, {}, "test.ops");
  g.output("y");
  EXPECT_TRUE(fails(try_session(env.get(), g), PFRT_CODE_UNSUPPORTED,
                    {"newer_op.so", "operator 0", "pfrt_custom_op", "newer headers"}));
}

TEST(Robust, newer_members_of_passes_are_unsupported) {
  const auto env = newer_env("newer_pass");
  pfrt_optimizer* optimizer = nullptr;
  ASSERT_TRUE(ok(api().optimizer->create(env.get(), nullptr, &optimizer)));
  EXPECT_TRUE(fails(api().optimizer->add_pass(optimizer, str("NewerPass"), nullptr),
                    PFRT_CODE_UNSUPPORTED,
                    {"newer_pass.so", "pass 0", "pfrt_custom_pass", "newer headers"}));
  api().optimizer->release(optimizer);
}

TEST(Robust, a_service_without_the_function_of_its_feature_is_turned_away) {
  const auto env = newer_env("no_address");
  EXPECT_NE(reasons(env.get())["libpyflamert_service_no_address.so"].find("'address'"),
            std::string::npos);
}

TEST(Robust, memory_that_a_plugin_lends_outlives_the_environment) {
  const TemporaryFolder here;
  const std::string file = here.path() + "/model.lend";
  write_file(file, "LEND");
  auto env = broken_env();
  pfrt_model* raw = nullptr;
  ASSERT_TRUE(ok(api().model->load_file(env.get(), str(file), nullptr, &raw)));
  Handle<pfrt_model> model(raw);
  auto session = make_session(env.get(), model.get());
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({2}, {1, 2})})[0].as<float>(), (std::vector<float>{11, 22}));
  pfrt_graph* graph = nullptr;
  ASSERT_TRUE(ok(api().model->graph(model.get(), &graph)));
  Handle<pfrt_graph> held(graph);
  pfrt_string name{};
  pfrt_value* weights = nullptr;
  ASSERT_TRUE(ok(api().graph->initializer_at(graph, 0, &name, &weights)));
  api().value->retain(weights);
  const Handle<pfrt_value> kept(weights);
  held.reset();
  session.reset();
  model.reset();
  env.reset();
  EXPECT_EQ(array_of(kept.get()).as<float>(), (std::vector<float>{10, 20}))
      << "the plug-in, whose memory it is, is still loaded";
}

}  // namespace
}  // namespace pfrt_test
