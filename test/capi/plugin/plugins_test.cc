// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

struct PluginRow {
  bool loaded = false;
  std::string kind, reason, name;
};

// Returns the plug-ins by the name that is in the file name.
std::map<std::string, PluginRow> list_plugins(pfrt_env* env) {
  std::map<std::string, PluginRow> rows;
  for (size_t i = 0; i < api().env->plugin_count(env); ++i) {
    pfrt_plugin_info info{};
    info.struct_size = sizeof info;
    EXPECT_TRUE(ok(api().env->plugin_at(env, i, &info)));
    std::string file = text(info.path);
    file = file.substr(file.rfind('/') + 1);
    file = file.substr(file.find('_') + 1);
    file = file.substr(file.find('_') + 1);
    file.resize(file.size() - 3);
    rows[file] = {info.loaded != 0, text(info.kind), text(info.reason), text(info.name)};
  }
  return rows;
}

TEST(Plugins, good_ones_are_listed_as_loaded) {
  const auto env = make_env();
  auto rows = list_plugins(env.get());
  for (const char* name : {"cpu", "null", "onnx"}) {
    ASSERT_EQ(rows.count(name), 1u) << name;
    EXPECT_TRUE(rows[name].loaded) << name << ": " << rows[name].reason;
    EXPECT_EQ(rows[name].reason, "") << name;
  }
  EXPECT_EQ(rows["cpu"].kind, "provider");
  EXPECT_EQ(rows["cpu"].name, "CPUExecutionProvider");
  EXPECT_EQ(rows["onnx"].kind, "import");
}

TEST(Plugins, each_bad_one_has_its_reason) {
  const auto env = make_env({{"plugin_path", PFRT_BAD_PLUGINS}});
  auto rows = list_plugins(env.get());
  const std::pair<const char*, std::vector<std::string>> expected[] = {
      {"no_symbol", {"pfrt_plugin_query"}},
      {"other_major", {"ABI 3.0", "build the plug-in against"}},
      {"newer_minor",
       {"ABI 2." + std::to_string(PFRT_ABI_MINOR + 3) + " to 2." +
            std::to_string(PFRT_ABI_MINOR + 5),
        "newer runtime"}},
      {"missing_function", {"'compile'", "every plug-in of this kind"}},
      {"short_table", {"'specialise'"}},
      {"missing_feature", {"'kernel_count'", "declares the feature"}},
      {"missing_runs", {"'run_begin'", "declares the feature"}},
      {"no_table", {"no table"}},
      {"other_kind", {"other_kind.so", "'provider'", "kind 2 (import)"}},
      {"words",
       {"libpyflamert_transport_words.so", "kind 'transport'",
        "it knows provider, import, ops, pass, service, executor"}},
      {"kind", {"libpyflamert_nonsense_kind.so", "kind 'nonsense'", "it knows provider, import"}},
      {"other_sanitizer", {"sanitizer"}},
      {"no_kind", {"'provider'", "kind 0"}},
      {"unknown_feature", {"features 1099511627776", "max_minor"}},
      {"reserved_word", {"reserved word", "1"}},
      {"failing_query", {"query failed"}},
      {"no_library", {"libpyflamert_provider_no_library.so"}},
      {"empty", {"libpyflamert_import_empty.so"}},
      {"missing_library", {"libpfrt_gone2.so.3", "on Debian, install libpfrt_gone2-3"}},
  };
  for (const auto& [name, parts] : expected) {
    ASSERT_EQ(rows.count(name), 1u) << name;
    EXPECT_FALSE(rows[name].loaded) << name;
    for (const std::string& part : parts)
      EXPECT_NE(rows[name].reason.find(part), std::string::npos)
          << name << " lacks '" << part << "': " << rows[name].reason;
  }
  EXPECT_EQ(rows["words"].kind, "transport");
  EXPECT_TRUE(rows["refuses_open"].loaded);
}

TEST(Plugins, bad_ones_are_unavailable_providers) {
  const auto env = make_env({{"plugin_path", PFRT_BAD_PLUGINS}});
  size_t unavailable = 0;
  for (size_t i = 0; i < api().env->provider_count(env.get()); ++i) {
    pfrt_provider_info info{};
    info.struct_size = sizeof info;
    ASSERT_TRUE(ok(api().env->provider_at(env.get(), i, &info)));
    EXPECT_EQ(info.available == 0, info.reason.size != 0) << text(info.path);
    unavailable += info.available == 0;
  }
  EXPECT_EQ(unavailable, 16u);
}

TEST(Plugins, bad_ones_leave_everything_else_alone) {
  const auto env = make_env({{"plugin_path", std::string("/nowhere:") + PFRT_BAD_PLUGINS}});
  list_plugins(env.get());
  const auto session = make_session(env.get(), add_graph());
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {0, 0, 0})})[0].as<float>(),
            (std::vector<float>{1, 2, 3}));
  ASSERT_TRUE(ok(api().env->refresh_plugins(env.get())));
  EXPECT_FALSE(list_plugins(env.get())["other_major"].loaded);
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {0, 0, 0})})[0].as<float>(),
            (std::vector<float>{1, 2, 3}));
}

TEST(Plugins, provider_that_does_not_open_is_passed_over) {
  const auto env = make_env({{"plugin_path", PFRT_BAD_PLUGINS}});
  auto options = make_options(PFRT_OPTIONS_SESSION,
                              {{"providers", "BadExecutionProvider,CPUExecutionProvider"}});
  const auto session = make_session(env.get(), add_graph(), options.get());
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {0, 0, 0})})[0].as<float>(),
            (std::vector<float>{1, 2, 3}));
  pfrt_report* raw = nullptr;
  ASSERT_TRUE(ok(api().session->explain(session.get(), &raw)));
  const Handle<pfrt_report> report(raw);
  std::string notes;
  for (size_t i = 0; i < api().report->note_count(raw); ++i)
    notes += text(api().report->note_at(raw, i)) + "\n";
  EXPECT_NE(notes.find("only tests the loader"), std::string::npos) << notes;

  options = make_options(
      PFRT_OPTIONS_SESSION,
      {{"providers", "BadExecutionProvider,CPUExecutionProvider"}, {"session.fallback", "off"}});
  const Failure failure = try_session(env.get(), add_graph(), options.get());
  EXPECT_FALSE(failure.ok());
  EXPECT_NE(failure.message.find("only tests the loader"), std::string::npos) << failure.message;
}

TEST(Plugins, rejected_one_is_named_when_its_provider_is_asked_for) {
  const auto env = make_env({{"plugin_path", PFRT_BAD_PLUGINS}});
  const auto options =
      make_options(PFRT_OPTIONS_SESSION, {{"providers", "Other_majorExecutionProvider"}});
  EXPECT_TRUE(fails(try_session(env.get(), add_graph(), options.get()), PFRT_CODE_NOT_FOUND,
                    {"other_major.so", "ABI 3.0"}));
}

TEST(Plugins, search_path_may_come_from_the_process_environment) {
  ASSERT_EQ(setenv("PFRT_PLUGIN_PATH", "/nowhere::" PFRT_BAD_PLUGINS, 1), 0);
  const auto env = make_env();
  unsetenv("PFRT_PLUGIN_PATH");
  const auto rows = list_plugins(env.get());
  EXPECT_EQ(rows.count("no_symbol"), 1u);
  EXPECT_EQ(rows.count("cpu"), 1u);
}

TEST(Plugins, missing_folder_is_named) {
  const auto env = make_env({{"plugin_path", "/nowhere:/dev/null"}, {"log_level", "warning"}});
  std::string log;
  const auto collect = [](void* user, pfrt_log_level, pfrt_string line) {
    *static_cast<std::string*>(user) += text(line) + "\n";
  };
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), collect, &log)));
  list_plugins(env.get());
  list_plugins(env.get());
  EXPECT_EQ(log,
            "plug-in folder '/nowhere' of the option 'plugin_path' cannot be searched: No such "
            "file or directory\n"
            "plug-in folder '/dev/null' of the option 'plugin_path' cannot be searched: Not a "
            "directory\n");
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), nullptr, nullptr)));
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", "XExecutionProvider"}});
  EXPECT_TRUE(fails(try_session(env.get(), add_graph(), options.get()), PFRT_CODE_NOT_FOUND,
                    {"/nowhere (No such file or directory)"}));
}

TEST(Logger, gets_what_would_go_to_stderr) {
  const auto env = make_env({{"plugin_path", PFRT_BAD_PLUGINS}, {"log_level", "warning"}});
  std::string log;
  const auto collect = [](void* user, pfrt_log_level level, pfrt_string line) {
    EXPECT_GE(level, uint32_t{PFRT_LOG_WARNING});
    *static_cast<std::string*>(user) += text(line) + "\n";
  };
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), collect, &log)));
  list_plugins(env.get());
  EXPECT_NE(log.find("no_symbol.so"), std::string::npos) << log;
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), nullptr, nullptr)));
}

}  // namespace
}  // namespace pfrt_test
