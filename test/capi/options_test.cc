// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr pfrt_options_kind kKinds[] = {
    PFRT_OPTIONS_ENV, PFRT_OPTIONS_LOAD,    PFRT_OPTIONS_SESSION, PFRT_OPTIONS_OPTIMIZER,
    PFRT_OPTIONS_ASK, PFRT_OPTIONS_BATCHER, PFRT_OPTIONS_STREAMS};

std::string get(const pfrt_options* options, std::string_view key) {
  pfrt_string value{};
  EXPECT_TRUE(ok(api().options->get_text(options, str(key), &value)));
  return text(value);
}

TEST(Options, begin_with_the_defaults_of_their_schema) {
  for (const pfrt_options_kind kind : kKinds) {
    const auto options = make_options(kind);
    const size_t count = api().options->schema_count(kind);
    EXPECT_GT(count, 0u);
    for (size_t i = 0; i < count; ++i) {
      pfrt_option_info info{};
      info.struct_size = sizeof info;
      ASSERT_TRUE(ok(api().options->schema_at(kind, i, &info)));
      EXPECT_NE(info.type, uint32_t{PFRT_OPTION_UNSET});
      EXPECT_FALSE(text(info.doc).empty()) << text(info.key);
      EXPECT_EQ(get(options.get(), text(info.key)), text(info.default_value)) << text(info.key);
    }
    pfrt_option_info info{};
    info.struct_size = sizeof info;
    EXPECT_TRUE(fails(api().options->schema_at(kind, count, &info), PFRT_CODE_INVALID_ARGUMENT,
                      {std::to_string(count)}));
  }
  EXPECT_EQ(api().options->schema_count(99), 0u);
}

TEST(Options, accept_every_choice_of_their_schema) {
  for (const pfrt_options_kind kind : kKinds) {
    const auto options = make_options(kind);
    for (size_t i = 0; i < api().options->schema_count(kind); ++i) {
      pfrt_option_info info{};
      info.struct_size = sizeof info;
      ASSERT_TRUE(ok(api().options->schema_at(kind, i, &info)));
      std::string choices = text(info.choices);
      while (!choices.empty()) {
        const size_t space = choices.find(' ');
        const std::string word = choices.substr(0, space);
        EXPECT_TRUE(ok(api().options->set_text(options.get(), info.key, str(word))));
        EXPECT_EQ(get(options.get(), text(info.key)), word);
        choices = space == std::string::npos ? "" : choices.substr(space + 1);
      }
    }
  }
}

TEST(Options, have_setters_of_every_type) {
  const auto options = make_options(PFRT_OPTIONS_SESSION);
  std::set<pfrt_option_type> types;
  for (size_t i = 0; i < api().options->schema_count(PFRT_OPTIONS_SESSION); ++i) {
    pfrt_option_info info{};
    info.struct_size = sizeof info;
    ASSERT_TRUE(ok(api().options->schema_at(PFRT_OPTIONS_SESSION, i, &info)));
    types.insert(info.type);
    const pfrt_string words[] = {str("a"), str("b")};
    const bool choice = info.choices.size != 0;
    const std::pair<pfrt_option_type, pfrt_status*> set[] = {
        {PFRT_OPTION_BOOL, api().options->set_bool(options.get(), info.key, 1)},
        {PFRT_OPTION_INT, api().options->set_int(options.get(), info.key, 1)},
        {PFRT_OPTION_FLOAT, api().options->set_float(options.get(), info.key, 0.5)},
        {PFRT_OPTION_STRING, api().options->set_string(options.get(), info.key, str("a"))},
        {PFRT_OPTION_STRINGS, api().options->set_strings(options.get(), info.key, words, 2)}};
    for (const auto& [type, status] : set) {
      const Failure failure = take(status);
      if (type != info.type) {
        EXPECT_EQ(failure.code, PFRT_CODE_INVALID_ARGUMENT) << text(info.key);
      } else if (!choice) {
        EXPECT_TRUE(ok(failure)) << text(info.key);
      }
    }
  }
  EXPECT_EQ(types, (std::set<pfrt_option_type>{PFRT_OPTION_BOOL, PFRT_OPTION_INT, PFRT_OPTION_FLOAT,
                                               PFRT_OPTION_STRING, PFRT_OPTION_STRINGS}));
  EXPECT_EQ(get(options.get(), "max_error"), "0.5");
  EXPECT_EQ(get(options.get(), "providers"), "a,b");
}

TEST(Options, of_an_unknown_kind_are_refused) {
  pfrt_options* options = nullptr;
  for (const pfrt_options_kind kind : {8u, 9u, 0x7fffffffu}) {
    EXPECT_TRUE(fails(api().options->create(kind, &options), PFRT_CODE_UNSUPPORTED,
                      {"kind " + std::to_string(kind)}));
    EXPECT_EQ(options, nullptr);
  }
}

TEST(Options, name_the_nearest_key_when_one_is_unknown) {
  const auto options = make_options(PFRT_OPTIONS_SESSION);
  EXPECT_TRUE(fails(api().options->set_int(options.get(), str("num_thread"), 2),
                    PFRT_CODE_INVALID_ARGUMENT, {"num_thread", "num_threads", "session"}));
  EXPECT_TRUE(fails(api().options->set_text(options.get(), str("optimisation_level"), str("all")),
                    PFRT_CODE_INVALID_ARGUMENT, {"optimization_level"}));
  EXPECT_TRUE(fails(api().options->set_text(options.get(), str("zzzzzz"), str("1")),
                    PFRT_CODE_INVALID_ARGUMENT, {"zzzzzz"}));
  EXPECT_TRUE(fails(api().options->set_text(options.get(), str(""), str("1")),
                    PFRT_CODE_INVALID_ARGUMENT, {}));
  pfrt_string value = str("left over");
  EXPECT_TRUE(fails(api().options->get_text(options.get(), str("nope"), &value),
                    PFRT_CODE_INVALID_ARGUMENT, {"nope"}));
  EXPECT_EQ(value.size, 0u);
}

TEST(Options, name_the_type_when_it_is_wrong) {
  const auto options = make_options(PFRT_OPTIONS_SESSION);
  EXPECT_TRUE(fails(api().options->set_string(options.get(), str("num_threads"), str("2")),
                    PFRT_CODE_INVALID_ARGUMENT, {"num_threads", "int", "string"}));
  EXPECT_TRUE(fails(api().options->set_int(options.get(), str("enable_profiling"), 1),
                    PFRT_CODE_INVALID_ARGUMENT, {"enable_profiling", "bool"}));
  EXPECT_TRUE(fails(api().options->set_float(options.get(), str("num_threads"), 1.5),
                    PFRT_CODE_INVALID_ARGUMENT, {"num_threads"}));
  EXPECT_TRUE(fails(api().options->set_bool(options.get(), str("device"), 1),
                    PFRT_CODE_INVALID_ARGUMENT, {"device"}));
  const pfrt_string list[] = {str("a")};
  EXPECT_TRUE(fails(api().options->set_strings(options.get(), str("device"), list, 1),
                    PFRT_CODE_INVALID_ARGUMENT, {"device"}));
}

TEST(Options, list_the_choices_when_a_word_is_none_of_them) {
  const auto options = make_options(PFRT_OPTIONS_SESSION);
  EXPECT_TRUE(fails(api().options->set_string(options.get(), str("optimization_level"), str("max")),
                    PFRT_CODE_INVALID_ARGUMENT, {"max", "none basic extended all"}));
  EXPECT_EQ(get(options.get(), "optimization_level"), "extended");
  EXPECT_TRUE(fails(api().options->set_string(options.get(), str("execution_mode"), str("")),
                    PFRT_CODE_INVALID_ARGUMENT, {"execution_mode"}));
}

TEST(Options, parse_text_by_the_type_of_the_key) {
  const auto options = make_options(PFRT_OPTIONS_SESSION);
  for (const char* bad : {"", "two", "2x", "1.5", "-1", "99999999999999999999", " 2"})
    EXPECT_TRUE(fails(api().options->set_text(options.get(), str("num_threads"), str(bad)),
                      PFRT_CODE_INVALID_ARGUMENT, {"num_threads"}))
        << bad;
  for (const char* bad : {"", "yes", "TRUE", "2"})
    EXPECT_TRUE(fails(api().options->set_text(options.get(), str("enable_profiling"), str(bad)),
                      PFRT_CODE_INVALID_ARGUMENT, {"enable_profiling", "true or false"}))
        << bad;
  EXPECT_TRUE(ok(api().options->set_text(options.get(), str("num_threads"), str("4"))));
  EXPECT_EQ(get(options.get(), "num_threads"), "4");
  EXPECT_TRUE(ok(api().options->set_text(options.get(), str("enable_profiling"), str("on"))));
  EXPECT_EQ(get(options.get(), "enable_profiling"), "true");
}

TEST(Options, keep_lists_in_order) {
  const auto options = make_options(PFRT_OPTIONS_SESSION);
  const pfrt_string list[] = {str("B"), str("A")};
  EXPECT_TRUE(ok(api().options->set_strings(options.get(), str("providers"), list, 2)));
  EXPECT_EQ(get(options.get(), "providers"), "B,A");
  EXPECT_TRUE(ok(api().options->set_strings(options.get(), str("providers"), nullptr, 0)));
  EXPECT_EQ(get(options.get(), "providers"), "");
  const pfrt_string comma[] = {str("A,B")};
  EXPECT_TRUE(fails(api().options->set_strings(options.get(), str("providers"), comma, 1),
                    PFRT_CODE_INVALID_ARGUMENT, {"A,B"}));
  EXPECT_TRUE(fails(api().options->set_strings(options.get(), str("providers"), nullptr, 2),
                    PFRT_CODE_INVALID_ARGUMENT, {}));
}

TEST(Options, of_the_wrong_kind_are_refused_where_they_are_used) {
  const auto others = make_options(PFRT_OPTIONS_OPTIMIZER);
  pfrt_env* env_raw = nullptr;
  EXPECT_TRUE(fails(api().env->create(others.get(), &env_raw), PFRT_CODE_INVALID_ARGUMENT,
                    {"optimizer", "environment"}));
  const auto env = make_env();
  const GraphBuilder g = add_graph();
  EXPECT_TRUE(fails(try_session(env.get(), g, others.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"optimizer", "session"}));
  pfrt_model* model = nullptr;
  EXPECT_TRUE(fails(api().model->load_memory(env.get(), "x", 1, PFRT_COPY, nullptr, nullptr,
                                             others.get(), &model),
                    PFRT_CODE_INVALID_ARGUMENT, {"optimizer", "load"}));
  EXPECT_TRUE(fails(api().model->from_graph(env.get(), g.get(), others.get(), &model),
                    PFRT_CODE_INVALID_ARGUMENT, {"optimizer", "load"}));
}

}  // namespace
}  // namespace pfrt_test
