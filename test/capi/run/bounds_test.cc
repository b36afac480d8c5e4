// SPDX-License-Identifier: Apache-2.0
//
// Values that cannot be, from a caller or a model: ranks, numbers, names and sizes beyond all
// bounds. Each gets an error with a message, and nobody else is blamed.
#include <cmath>
#include <limits>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr size_t kRank = 1'000'000'000;

TEST(Bounds, ranks_are_checked_before_dims_are_read) {
  const int64_t dims[] = {1};
  pfrt_value* value = nullptr;
  EXPECT_TRUE(fails(api().value->create_tensor(PFRT_DTYPE_FLOAT32, dims, kRank, &value),
                    PFRT_CODE_INVALID_ARGUMENT, {"rank 1000000000", "64"}));
  const auto values = value_of(floats({1}, {1})), indices = value_of(int64s({1}, {0}));
  EXPECT_TRUE(fails(api().value->create_sparse(values.get(), indices.get(), dims, kRank, &value),
                    PFRT_CODE_INVALID_ARGUMENT, {"rank 1000000000"}));
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1});
  g.node("Neg", {"x"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  EXPECT_TRUE(fails(api().value->create_on(session.get(), str("CPUExecutionProvider"),
                                           PFRT_DTYPE_FLOAT32, dims, kRank, &value),
                    PFRT_CODE_INVALID_ARGUMENT, {"rank 1000000000"}));
  Array array = floats({1}, {1});
  pfrt_tensor view = array.view();
  view.rank = kRank;
  EXPECT_TRUE(fails(api().value->wrap_tensor(&view, nullptr, nullptr, &value),
                    PFRT_CODE_INVALID_ARGUMENT, {"rank 1000000000"}));
  EXPECT_TRUE(fails(api().value->wrap_unaligned(&view, nullptr, nullptr, &value),
                    PFRT_CODE_INVALID_ARGUMENT, {"rank 1000000000"}));
  EXPECT_TRUE(fails(api().graph->add_initializer(g.get(), str("c"), &view, 0, nullptr, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"rank 1000000000"}));
  pfrt_io in{};
  in.struct_size = sizeof in;
  in.tensor = view;
  pfrt_io out{};
  out.struct_size = sizeof out;
  EXPECT_TRUE(fails(api().session->run(session.get(), &in, 1, &out, 1, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"rank 1000000000"}));
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.name = str("z");
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.rank = static_cast<int32_t>(kRank);
  info.dims = dims;
  EXPECT_TRUE(fails(api().graph->add_input(g.get(), &info), PFRT_CODE_INVALID_ARGUMENT,
                    {"'z'", "rank 1000000000"}));
  EXPECT_EQ(value, nullptr);
}

// This must be found before a string of the caller's is taken for one of the library's.
TEST(Bounds, strings_have_no_strides) {
  const pfrt_string words[] = {str("a"), str("b")};
  const int64_t dims[] = {2}, strides[] = {1};
  pfrt_tensor view{};
  view.struct_size = sizeof view;
  view.dtype = PFRT_DTYPE_STRING;
  view.rank = 1;
  view.data = const_cast<pfrt_string*>(words);
  view.bytes = sizeof words;
  view.dims = dims;
  view.strides = strides;
  GraphBuilder g;
  EXPECT_TRUE(fails(api().graph->add_initializer(g.get(), str("c"), &view, 0, nullptr, nullptr),
                    PFRT_CODE_UNSUPPORTED, {"strides"}));
}

TEST(Bounds, float_options_are_finite) {
  const auto options = make_options(PFRT_OPTIONS_SESSION);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -0.5})
    EXPECT_TRUE(fails(api().options->set_float(options.get(), str("max_error"), bad),
                      PFRT_CODE_INVALID_ARGUMENT, {"max_error", "finite"}));
  for (const std::string_view bad : {"nan", "inf", "-inf", "-1"})
    EXPECT_TRUE(fails(api().options->set_text(options.get(), str("max_error"), str(bad)),
                      PFRT_CODE_INVALID_ARGUMENT, {"max_error", "finite"}));
  EXPECT_TRUE(ok(api().options->set_text(options.get(), str("max_error"), str("0.25"))));
}

TEST(Bounds, paths_and_names_are_not_cut_at_a_NUL) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1});
  g.node("Neg", {"x"}, {"y"});
  g.output("y");
  const auto model = make_model(env.get(), g);
  const std::string path = testing::TempDir() + std::string("pfrt_cut.pfm\0.pfm", 17);
  EXPECT_TRUE(fails(api().model->save(env.get(), model.get(), str(path), nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"NUL"}));
  pfrt_model* loaded = nullptr;
  EXPECT_TRUE(fails(api().model->load_file(env.get(), str(path), nullptr, &loaded),
                    PFRT_CODE_INVALID_ARGUMENT, {"NUL"}));
  const auto options = make_options(PFRT_OPTIONS_ENV);
  EXPECT_TRUE(fails(api().options->set_string(options.get(), str("plugin_path"),
                                              str(std::string_view("/tmp\0/x", 7))),
                    PFRT_CODE_INVALID_ARGUMENT, {"plugin_path", "NUL"}));
}

TEST(Bounds, branches_of_an_If_give_one_type) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Neg", {"x"}, {"a"});
  yes.output("a");
  no.node("Cast", {"x"}, {"b"}, {Attr::of_int("to", PFRT_DTYPE_INT64)});
  no.output("b");
  g.node("If", {"c"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  EXPECT_TRUE(fails(try_session(env.get(), g), PFRT_CODE_INVALID_MODEL,
                    {"If", "float32", "then_branch", "int64", "else_branch"}));
}

// The size is at fault, not the provider, which stays in use.
TEST(Bounds, a_transform_beyond_all_memory_is_no_fault_of_its_provider) {
  const auto env = make_env();
  GraphBuilder g;
  g.opset(20);
  g.input("x", PFRT_DTYPE_FLOAT32, {1, "N", 1});
  g.constant("n", int64s({}, {int64_t{1} << 40}));
  g.node("DFT", {"x", "n"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  EXPECT_TRUE(fails(try_run(session.get(), {floats({1, 4, 1}, {1, 2, 3, 4})}),
                    PFRT_CODE_SHAPE_MISMATCH, {"dimensions at hand are too large"}));
  pfrt_provider_state state{};
  state.struct_size = sizeof state;
  ASSERT_TRUE(ok(api().session->provider_state(session.get(), 0, &state)));
  EXPECT_EQ(state.failures, 0u) << text(state.reason);
}

// The order of the products is chosen in time that grows with the operands, not with their pairs.
TEST(Bounds, a_product_of_very_many_operands) {
  constexpr size_t kOperands = 5000;
  const auto env = make_env();
  GraphBuilder g;
  std::vector<std::string> names;
  std::vector<Array> in;
  std::string equation;
  for (size_t i = 0; i < kOperands; ++i) {
    names.push_back("x" + std::to_string(i));
    g.input(names.back(), PFRT_DTYPE_FLOAT32, {"N"});
    equation += i == 0 ? "a" : ",a";
    in.push_back(floats({2}, {i % 1000 == 0 ? 2.0f : 1.0f, 1}));
  }
  g.node("Einsum", names, {"y"}, {Attr::of_string("equation", equation + "->a")});
  g.output("y");
  const auto session = make_session(env.get(), g);
  EXPECT_EQ(run(session.get(), in)[0].as<float>(), (std::vector<float>{32, 1}));
}

}  // namespace
}  // namespace pfrt_test
