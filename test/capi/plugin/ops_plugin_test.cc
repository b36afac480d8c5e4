// SPDX-License-Identifier: Apache-2.0
//
// Plug-ins of kind ops: found by file name, opened when a model needs an operator that nobody
// knows.
#include <cstdio>
#include <fstream>

#include "test/capi/plugin/custom_operator.h"

namespace pfrt_test {
namespace {

std::string folder(const char* name) { return std::string(PFRT_OPS_PLUGINS "/") + name; }

GraphBuilder clamp_graph(const std::vector<Attr>& attrs = {}) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Clamp", {"x"}, {"y"}, attrs, "n1", "sample");
  g.output("y");
  return g;
}

bool opened(pfrt_env* env, std::string_view path_part) {
  for (size_t i = 0; i < api().env->plugin_count(env); ++i) {
    pfrt_plugin_info info{};
    info.struct_size = sizeof info;
    EXPECT_TRUE(ok(api().env->plugin_at(env, i, &info)));
    if (text(info.path).find(path_part) != std::string::npos) return info.loaded != 0;
  }
  return false;
}

TEST(OpsPlugin, is_opened_when_a_model_needs_it) {
  Handle<pfrt_session> session;
  {
    const auto env = make_env({{"plugin_path", folder("clamp")}});
    session =
        make_session(env.get(), clamp_graph({Attr::of_float("lo", -2), Attr::of_float("hi", 4)}));
    ASSERT_TRUE(session);
    EXPECT_TRUE(opened(env.get(), "libpyflamert_ops_clamp.so"));
  }
  // The session keeps the plug-in loaded.
  EXPECT_EQ(run(session.get(), {floats({4}, {-9, -1, 3, 9})})[0].as<float>(),
            (std::vector<float>{-2, -1, 3, 4}));
  std::vector<float> many = random_floats(100'000, 3), expected = many;
  for (float& v : many) v *= 8;
  for (size_t i = 0; i < many.size(); ++i) expected[i] = std::min(4.0f, std::max(-2.0f, many[i]));
  EXPECT_EQ(run(session.get(), {floats({100'000}, many)})[0].as<float>(), expected);
}

TEST(OpsPlugin, is_opened_when_operators_are_listed) {
  const auto env = make_env({{"plugin_path", folder("clamp")}});
  size_t count = 0, again = 0;
  ASSERT_TRUE(ok(api().env->custom_operator_count(env.get(), &count)));
  ASSERT_TRUE(ok(api().env->custom_operator_count(env.get(), &again)));
  EXPECT_EQ(count, again);
  std::multiset<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    pfrt_operator_info info{};
    info.struct_size = sizeof info;
    ASSERT_TRUE(ok(api().env->custom_operator_at(env.get(), i, &info)));
    names.insert(text(info.domain) + "." + text(info.op));
  }
  EXPECT_EQ(names.count("sample.Clamp"), 1u);
  EXPECT_EQ(names.count(".ImageDecoder"), 1u);  // from the project's own plug-ins
  EXPECT_EQ(names.count(".RegexFullMatch"), 1u);
}

TEST(OpsPlugin, reports_like_a_built_in_operator) {
  const auto env = make_env({{"plugin_path", folder("clamp")}});
  EXPECT_TRUE(
      fails(try_session(env.get(), clamp_graph({Attr::of_float("lo", 2), Attr::of_float("hi", 1)})),
            PFRT_CODE_INVALID_MODEL, {"Clamp 'n1'", "'lo' is above 'hi'"}));
  GraphBuilder ints;
  ints.input("x", PFRT_DTYPE_INT64, {3});
  ints.node("Clamp", {"x"}, {"y"}, {}, "n1", "sample");
  ints.output("y");
  EXPECT_TRUE(
      fails(try_session(env.get(), ints), PFRT_CODE_DTYPE_MISMATCH, {"Clamp 'n1'", "float32"}));
}

TEST(OpsPlugin, conflicts_name_both_sides) {
  TestOperator op("Clamp", "sample");
  op.compute = compute_scaled;
  op.input_types = op.output_types = {PFRT_DTYPE_FLOAT32};
  const auto env = make_env({{"plugin_path", folder("clamp")}});
  ASSERT_TRUE(ok(op.add_to(env.get())));
  // A model that needs no further operator opens no plug-in.
  EXPECT_TRUE(make_session(env.get(), clamp_graph()));
  GraphBuilder other;
  other.input("x", PFRT_DTYPE_FLOAT32, {3});
  other.node("Nobody", {"x"}, {"y"}, {}, "n1", "sample");
  other.output("y");
  EXPECT_TRUE(fails(try_model(env.get(), other), PFRT_CODE_INVALID_ARGUMENT,
                    {"'sample.Clamp'", "libpyflamert_ops_clamp.so", "the client"}));
}

TEST(OpsPlugin, brings_all_its_operators_or_none) {
  const auto env = make_env({{"plugin_path", folder("bad_name")}});
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {3});
  g.node("Good", {"x"}, {"y"}, {}, "n1", "test");
  g.output("y");
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(fails(try_model(env.get(), g), PFRT_CODE_INVALID_ARGUMENT,
                      {"'ai.onnx.Relu'", "libpyflamert_ops_bad_name.so", "built-in"}));
}

// y = Tokenizer(x) of the project's own plug-in.
GraphBuilder tokenizer_graph(const std::vector<Attr>& attrs, int64_t rank = 1) {
  GraphBuilder g;
  const std::vector<DimSpec> dims{"N", "C", "D"};
  g.input("x", PFRT_DTYPE_STRING, {dims.begin(), dims.begin() + rank});
  g.node("Tokenizer", {"x"}, {"y"}, attrs, "split", "com.microsoft");
  g.output("y");
  g.opset(1, "com.microsoft");
  return g;
}

TEST(Tokenizer, names_the_attribute_that_is_wrong) {
  const Attr mark = Attr::of_int("mark", 0), least = Attr::of_int("mincharnum", 1),
             pad = Attr::of_string("pad_value", "#"), words = Attr::of_string("tokenexp", "[a-z]+");
  const auto env = make_env();
  EXPECT_TRUE(ok(try_session(env.get(), tokenizer_graph({mark, least, pad, words}))));
  const struct {
    std::vector<Attr> attrs;
    const char* says;
  } all[] = {
      {{least, pad, words}, "'mark' is absent"},
      {{mark, pad, words}, "'mincharnum' is absent"},
      {{mark, least, words}, "'pad_value' is absent"},
      {{mark, least, pad}, "neither 'separators' nor 'tokenexp'"},
      {{mark, Attr::of_int("mincharnum", 0), pad, words}, "'mincharnum' is 0"},
      {{mark, Attr::of_int("mincharnum", 2), pad, Attr::of_string("tokenexp", ".")}, "characters"},
      {{mark, least, pad, Attr::of_string("tokenexp", "(?i)b|[")}, "'(?i)b|['"},
  };
  for (const auto& bad : all)
    EXPECT_TRUE(fails(try_session(env.get(), tokenizer_graph(bad.attrs)), PFRT_CODE_INVALID_MODEL,
                      {"Tokenizer 'split'", bad.says}));
  EXPECT_TRUE(fails(try_session(env.get(), tokenizer_graph({mark, least, pad, words}, 3)),
                    PFRT_CODE_SHAPE_MISMATCH, {"Tokenizer 'split'", "[C] or [N, C]"}));
}

TEST(Tokenizer, splits_many_texts_and_names_one_that_is_no_text) {
  const auto env = make_env();
  const auto session = make_session(
      env.get(),
      tokenizer_graph({Attr::of_int("mark", 0), Attr::of_int("mincharnum", 1),
                       Attr::of_string("pad_value", "#"), Attr::of_string("tokenexp", "[0-9]+")}));
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back(i % 3 == 0 ? "-" : std::to_string(i) + " x 7");
  Handle<pfrt_value> x = texts_value({1000}, texts), y;
  ASSERT_TRUE(ok(try_run_values(session.get(), {x.get()}, &y)));
  const std::vector<std::string> tokens = texts_of(y.get());
  ASSERT_EQ(tokens.size(), 2000u);
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(tokens[2 * i], i % 3 == 0 ? "#" : std::to_string(i));
    EXPECT_EQ(tokens[2 * i + 1], i % 3 == 0 ? "#" : "7");
  }
  texts[700] = "7 \xff";
  x = texts_value({1000}, texts);
  EXPECT_TRUE(fails(try_run_values(session.get(), {x.get()}, &y), PFRT_CODE_INVALID_ARGUMENT,
                    {"Tokenizer 'split'", "text 700", "UTF-8"}));
}

GraphBuilder tag_graph(pfrt_dtype dtype, int64_t opset) {
  GraphBuilder g;
  g.input("x", dtype, {1});
  g.node("Tag", {"x"}, {"y"}, {}, "n1", "test");
  g.output("y");
  g.opset(opset, "test");
  return g;
}

std::string tag_of(pfrt_env* env, pfrt_dtype dtype, int64_t opset) {
  const auto session = make_session(env, tag_graph(dtype, opset));
  if (!session) return {};
  const auto x = value_of(dtype == PFRT_DTYPE_FLOAT32 ? floats({1}, {0}) : int64s({1}, {0}));
  Handle<pfrt_value> y;
  EXPECT_TRUE(ok(try_run_values(session.get(), {x.get()}, &y)));
  return y ? texts_of(y.get())[0] : std::string();
}

TEST(OpsPlugin, brings_versions_types_states_and_strings) {
  const auto env = make_env({{"plugin_path", folder("overloads")}});
  EXPECT_EQ(tag_of(env.get(), PFRT_DTYPE_FLOAT32, 1), "first float32 at opset 1");
  EXPECT_EQ(tag_of(env.get(), PFRT_DTYPE_FLOAT32, 2), "second float32 at opset 2");
  EXPECT_EQ(tag_of(env.get(), PFRT_DTYPE_INT64, 3), "second int64 at opset 3");
  EXPECT_TRUE(fails(try_session(env.get(), tag_graph(PFRT_DTYPE_INT64, 1)),
                    PFRT_CODE_DTYPE_MISMATCH, {"Tag 'n1'", "there is 'float32 -> string'"}));
}

TEST(OpsPlugin, is_opened_for_types_and_versions_that_nobody_else_has) {
  TestOperator own("Tag", "test");
  own.input_types = {PFRT_DTYPE_FLOAT64};
  own.c.since_version = 2;
  own.infer = infer_like_input;
  own.compute = compute_scaled;
  const auto env = make_env({{"plugin_path", folder("overloads")}});
  ASSERT_TRUE(ok(own.add_to(env.get())));
  EXPECT_TRUE(make_session(env.get(), tag_graph(PFRT_DTYPE_FLOAT64, 2)));
  EXPECT_EQ(tag_of(env.get(), PFRT_DTYPE_FLOAT32, 2), "second float32 at opset 2");
  EXPECT_EQ(tag_of(env.get(), PFRT_DTYPE_FLOAT32, 1), "first float32 at opset 1");
  EXPECT_TRUE(make_session(env.get(), tag_graph(PFRT_DTYPE_FLOAT64, 2)));
}

TEST(OpsPlugin, is_rejected_with_a_short_table) {
  const auto env = make_env({{"plugin_path", folder("short_table")}});
  EXPECT_FALSE(opened(env.get(), "libpyflamert_ops_short_table.so"));
  EXPECT_TRUE(fails(try_session(env.get(), clamp_graph()), PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Clamp 'n1'", "unknown"}));
}

TEST(OpsPlugin, is_opened_by_its_path) {
  const auto env = make_env();
  const auto graph = clamp_graph({Attr::of_float("lo", -2), Attr::of_float("hi", 4)});
  EXPECT_TRUE(fails(try_session(env.get(), graph), PFRT_CODE_UNSUPPORTED_OPERATOR, {"Clamp"}));
  const std::string file = folder("clamp") + "/libpyflamert_ops_clamp.so";
  pfrt_plugin_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().env->open_plugin(env.get(), str(file), &info)));
  EXPECT_EQ(text(info.kind), "ops");
  EXPECT_EQ(info.loaded, 1u);
  EXPECT_TRUE(opened(env.get(), "libpyflamert_ops_clamp.so"));
  ASSERT_TRUE(ok(api().env->open_plugin(env.get(), str(file), nullptr)));  // once more is no fault
  const auto session = make_session(env.get(), graph);
  EXPECT_EQ(run(session.get(), {floats({3}, {-9, 1, 9})})[0].as<float>(),
            (std::vector<float>{-2, 1, 4}));
}

TEST(OpsPlugin, says_why_a_path_is_not_opened) {
  const auto env = make_env();
  const auto open = [&](const std::string& path) {
    return take(api().env->open_plugin(env.get(), str(path), nullptr));
  };
  EXPECT_TRUE(fails(open("/nowhere/libpyflamert_ops_x.so"), PFRT_CODE_NOT_FOUND,
                    {"/nowhere/libpyflamert_ops_x.so", "no such file"}));
  EXPECT_TRUE(fails(open("/proc/self/exe"), PFRT_CODE_PLUGIN,
                    {"does not say what it is", "libpyflamert_KIND_NAME.so"}));
  EXPECT_TRUE(fails(take(api().env->open_plugin(nullptr, str("x"), nullptr)),
                    PFRT_CODE_INVALID_ARGUMENT, {"env"}));
  // A copy has the name of the one that is open.
  const std::string file = folder("clamp") + "/libpyflamert_ops_clamp.so";
  const std::string copy = testing::TempDir() + "libpyflamert_ops_copy.so";
  std::ofstream(copy, std::ios::binary) << std::ifstream(file, std::ios::binary).rdbuf();
  ASSERT_TRUE(ok(open(file)));
  EXPECT_TRUE(fails(open(copy), PFRT_CODE_PLUGIN, {"is there already", "keep one"}));
  std::remove(copy.c_str());
}

}  // namespace
}  // namespace pfrt_test
