// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

struct Row {
  std::string nodes, ops, provider, kernel, reason, refused;
  double measured_ns = 0;
};

std::vector<Row> explain(pfrt_session* session, std::vector<std::string>* notes = nullptr) {
  pfrt_report* raw = nullptr;
  EXPECT_TRUE(ok(api().session->explain(session, &raw)));
  const Handle<pfrt_report> report(raw);
  std::vector<Row> rows;
  for (size_t i = 0; i < api().report->row_count(raw); ++i) {
    pfrt_report_row row{};
    row.struct_size = sizeof row;
    EXPECT_TRUE(ok(api().report->row_at(raw, i, &row)));
    rows.push_back({text(row.nodes), text(row.ops), text(row.provider), text(row.kernel),
                    text(row.reason), text(row.refused), row.measured_ns});
  }
  for (size_t i = 0; notes && i < api().report->note_count(raw); ++i)
    notes->push_back(text(api().report->note_at(raw, i)));
  return rows;
}

TEST(Session, lists_inputs_and_outputs) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("d", PFRT_DTYPE_FLOAT32, {3});
  g.constant("d", floats({3}, {1, 2, 3}));
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.node("Add", {"x", "d"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_EQ(api().session->input_count(session.get()), 2u);
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().session->input_at(session.get(), 0, &info)));
  EXPECT_EQ(text(info.name), "x") << "those that must be fed come first";
  EXPECT_EQ(info.has_initializer, 0u);
  ASSERT_TRUE(ok(api().session->input_at(session.get(), 1, &info)));
  EXPECT_EQ(text(info.name), "d");
  EXPECT_EQ(info.has_initializer, 1u);
  ASSERT_TRUE(ok(api().session->output_at(session.get(), 0, &info)));
  EXPECT_EQ(text(info.name), "y");
  EXPECT_EQ(info.dtype, uint32_t{PFRT_DTYPE_FLOAT32});
  ASSERT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[0], -1);
  EXPECT_EQ(text(info.dim_names[0]), "N");
  EXPECT_EQ(info.dims[1], 3);
  EXPECT_FALSE(ok(api().session->output_at(session.get(), 1, &info)));
}

// PaddlePaddle writes "?" for the height and for the width.
TEST(Session, dimensions_without_names_are_each_their_own) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {-1, "?", "?"});
  g.node("Softmax", {"x"}, {"a"});
  g.node("Add", {"a", "x"}, {"b"});
  g.node("Relu", {"b"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  for (const auto port : {api().session->input_at, api().session->output_at}) {
    ASSERT_TRUE(ok(port(session.get(), 0, &info)));
    ASSERT_EQ(info.rank, 3);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(info.dims[i], -1);
      EXPECT_EQ(text(info.dim_names[i]), "");
    }
  }
  EXPECT_EQ(run(session.get(), {floats({1, 2, 1}, {1, -3})})[0].as<float>(),
            (std::vector<float>{2, 0}));
  // Both shapes follow from x, so Add and Relu are fused into the step of Softmax.
  pfrt_report* raw = nullptr;
  ASSERT_TRUE(ok(api().session->explain(session.get(), &raw)));
  const Handle<pfrt_report> report(raw);
  ASSERT_EQ(api().report->row_count(raw), 1u);
  pfrt_report_row row{};
  row.struct_size = sizeof row;
  ASSERT_TRUE(ok(api().report->row_at(raw, 0, &row)));
  EXPECT_EQ(text(row.ops), "Softmax,Add,Relu");
}

TEST(Session, overridable_initializer_is_a_constant_until_it_is_fed) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.input("d", PFRT_DTYPE_FLOAT32, {3});
  g.constant("d", floats({3}, {1, 2, 3}));
  g.node("Add", {"x", "d"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  const Array x = floats({1, 3}, {0, 0, 0});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(run(session.get(), {x, Array{}})[0].as<float>(), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(run(session.get(), {x, floats({3}, {7, 8, 9})})[0].as<float>(),
              (std::vector<float>{7, 8, 9}));
  }
  EXPECT_TRUE(
      fails(try_run(session.get(), {x, floats({2}, {7, 8})}), PFRT_CODE_SHAPE_MISMATCH, {"'d'"}));
}

TEST(Session, equal_dimension_names_are_equal_sizes) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("a", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.input("b", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.node("Add", {"a", "b"}, {"y"});
  g.output("y");
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"strict_dimension_names", "true"}});
  const auto session = make_session(env.get(), g, options.get());
  const Array two = floats({2, 2}, {1, 2, 3, 4}), one = floats({1, 2}, {1, 2});
  EXPECT_TRUE(fails(try_run(session.get(), {two, one}), PFRT_CODE_SHAPE_MISMATCH,
                    {"'b'", "'N'", "2", "'a'"}));
  EXPECT_EQ(run(session.get(), {two, two})[0].as<float>(), (std::vector<float>{2, 4, 6, 8}));
}

TEST(Session, shapes_that_do_not_fit_are_an_error_of_the_run) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("a", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("b", PFRT_DTYPE_FLOAT32, {"M"});
  g.node("Add", {"a", "b"}, {"y"}, {}, "adder");
  g.output("y");
  const auto session = make_session(env.get(), g);
  const Array two = floats({2}, {1, 2}), three = floats({3}, {1, 2, 3});
  EXPECT_TRUE(
      fails(try_run(session.get(), {two, three}), PFRT_CODE_SHAPE_MISMATCH, {"adder", "2", "3"}));
  EXPECT_EQ(run(session.get(), {three, three})[0].as<float>(), (std::vector<float>{2, 4, 6}));
}

TEST(Session, inner_values_can_be_asked_for) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Neg", {"x"}, {"a"});
  g.node("Abs", {"a"}, {"b"});
  g.node("Add", {"a", "b"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g, nullptr, {"a", "b", "x"});
  ASSERT_TRUE(session);
  const auto outputs = run(session.get(), {floats({2}, {1, -2})});
  ASSERT_EQ(outputs.size(), 4u);
  EXPECT_EQ(outputs[0].as<float>(), (std::vector<float>{0, 4}));
  EXPECT_EQ(outputs[1].as<float>(), (std::vector<float>{-1, 2}));
  EXPECT_EQ(outputs[2].as<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(outputs[3].as<float>(), (std::vector<float>{1, -2}));
  EXPECT_TRUE(fails(try_session(env.get(), g, nullptr, {"c"}), PFRT_CODE_NOT_FOUND, {"'c'"}));
}

TEST(Session, unwanted_outputs_are_skipped) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Neg", {"x"}, {"a"});
  g.node("Abs", {"x"}, {"b"});
  g.output("a");
  g.output("b");
  const auto session = make_session(env.get(), g);
  const Array x = floats({2}, {1, -2});
  pfrt_io in = x.io(), out[2] = {};
  out[0].struct_size = out[1].struct_size = sizeof(pfrt_io);
  out[0].flags = PFRT_IO_SKIP;
  ASSERT_TRUE(ok(api().session->run(session.get(), &in, 1, out, 2, nullptr)));
  EXPECT_EQ(out[0].value, nullptr);
  ASSERT_NE(out[1].value, nullptr);
  EXPECT_EQ(array_of(out[1].value).as<float>(), (std::vector<float>{1, 2}));
  api().value->release(out[1].value);
}

TEST(Session, memory_of_two_outputs_must_not_overlap) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Neg", {"x"}, {"a"});
  g.node("Abs", {"x"}, {"b"});
  g.output("a");
  g.output("b");
  const auto session = make_session(env.get(), g);
  const Array x = floats({2}, {1, -2});
  std::vector<float> room(4, 0);
  pfrt_io in = x.io(), out[2] = {};
  for (pfrt_io& io : out) {
    io.struct_size = sizeof io;
    io.tensor.struct_size = sizeof io.tensor;
    io.tensor.bytes = 8;
  }
  out[0].tensor.data = room.data();
  out[1].tensor.data = room.data() + 1;
  EXPECT_TRUE(fails(api().session->run(session.get(), &in, 1, out, 2, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"'b'", "overlaps"}));
  out[1].tensor.data = room.data() + 2;
  ASSERT_TRUE(ok(api().session->run(session.get(), &in, 1, out, 2, nullptr)));
  EXPECT_EQ(room, (std::vector<float>{-1, 2, 1, 2}));
}

// Outputs stay right after the caller's input memory is gone, by whichever node they came.
TEST(Session, outputs_do_not_borrow_the_callers_inputs) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {3});
  g.input("c", PFRT_DTYPE_BOOL, {});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Identity", {"x"}, {"r"});
  yes.output("r");
  no.node("Neg", {"x"}, {"r2"});
  no.output("r2");
  g.node("Identity", {"x"}, {"same"});
  g.node("SequenceConstruct", {"x", "x"}, {"list"});
  g.node("If", {"c"}, {"branch"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  for (const char* name : {"x", "same", "list", "branch"}) g.output(name);
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  std::vector<pfrt_io> out(4);
  {
    Array x = floats({3}, {1, 2, 3});
    Array c{PFRT_DTYPE_BOOL, {}, {1}};
    const pfrt_io in[] = {x.io(), c.io()};
    for (pfrt_io& io : out) io.struct_size = sizeof io;
    ASSERT_TRUE(ok(api().session->run(session.get(), in, 2, out.data(), 4, nullptr)));
    std::fill(x.bytes.begin(), x.bytes.end(), '\0');
  }
  const std::vector<float> expected = {1, 2, 3};
  EXPECT_EQ(array_of(out[0].value).as<float>(), expected) << "an input that is an output";
  EXPECT_EQ(array_of(out[1].value).as<float>(), expected) << "Identity";
  pfrt_value* element = nullptr;
  ASSERT_TRUE(ok(api().value->element(out[2].value, 1, &element)));
  EXPECT_EQ(array_of(element).as<float>(), expected) << "an element of a sequence";
  EXPECT_EQ(array_of(out[3].value).as<float>(), expected) << "a branch's capture";
  for (pfrt_io& io : out) api().value->release(io.value);
}

TEST(Session, writing_to_an_output_leaves_the_model_alone) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.constant("k", floats({2}, {1, 2}));
  g.node("Add", {"x", "k"}, {"y"});
  g.output("y");
  g.output("k");
  const auto session = make_session(env.get(), g);
  const Array x = floats({2}, {0, 0});
  for (int round = 0; round < 2; ++round) {
    pfrt_io in = x.io(), out[2] = {};
    out[0].struct_size = out[1].struct_size = sizeof(pfrt_io);
    ASSERT_TRUE(ok(api().session->run(session.get(), &in, 1, out, 2, nullptr)));
    for (const pfrt_io& io : out) {
      EXPECT_EQ(array_of(io.value).as<float>(), (std::vector<float>{1, 2})) << "round " << round;
      pfrt_tensor t{};
      t.struct_size = sizeof t;
      ASSERT_TRUE(ok(api().value->tensor(io.value, &t)));
      std::memset(t.data, 0x7f, t.bytes);
      api().value->release(io.value);
    }
  }
}

TEST(Session, runs_without_inputs) {
  const auto env = make_env();
  GraphBuilder g;
  g.constant("a", floats({2}, {1, 2}));
  g.node("Neg", {"a"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  EXPECT_EQ(run(session.get(), {})[0].as<float>(), (std::vector<float>{-1, -2}));
}

TEST(Session, data_dependent_shapes_are_found_by_the_run) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("NonZero", {"x"}, {"where"});
  g.node("Shape", {"where"}, {"size"});
  g.node("ConstantOfShape", {"size"}, {"zeros"});
  g.output("where");
  g.output("zeros");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  auto outputs = run(session.get(), {floats({4}, {0, 1, 0, 2})});
  EXPECT_EQ(outputs[0].as<int64_t>(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(outputs[1].dims, (std::vector<int64_t>{1, 2}));
  outputs = run(session.get(), {floats({4}, {0, 0, 0, 0})});
  EXPECT_EQ(outputs[0].dims, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(outputs[1].dims, (std::vector<int64_t>{1, 0}));
}

TEST(Session, shape_given_as_an_input_is_checked_in_the_run) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("shape", PFRT_DTYPE_INT64, {"R"});
  g.node("Reshape", {"x", "shape"}, {"y"}, {}, "reshape");
  g.output("y");
  const auto session = make_session(env.get(), g);
  const Array x = floats({6}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(session.get(), {x, int64s({2}, {2, -1})})[0].dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(run(session.get(), {x, int64s({3}, {1, 6, 1})})[0].dims,
            (std::vector<int64_t>{1, 6, 1}));
  EXPECT_TRUE(fails(try_run(session.get(), {x, int64s({2}, {4, -1})}), PFRT_CODE_SHAPE_MISMATCH,
                    {"reshape"}));
  EXPECT_FALSE(ok(try_run(session.get(), {x, int64s({2}, {-1, -1})})));
  EXPECT_FALSE(ok(try_run(session.get(), {x, int64s({2}, {INT64_MAX, INT64_MAX})})));
  EXPECT_EQ(run(session.get(), {x, int64s({2}, {3, 2})})[0].dims, (std::vector<int64_t>{3, 2}));
}

TEST(Session, tuning_keeps_the_bits_and_is_explained) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 640});
  g.constant("w", floats({640, 600}, random_floats(640 * 600, 3)));
  g.node("MatMul", {"x", "w"}, {"p"});
  g.node("Relu", {"p"}, {"y"});
  g.output("y");
  const auto env = make_env();
  const auto model = make_model(env.get(), g);
  std::vector<std::vector<char>> results;
  for (const char* tune : {"off", "on", "on"}) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"tune", tune}});
    const auto session = make_session(env.get(), model.get(), options.get());
    const auto y = run(session.get(), {floats({300, 640}, random_floats(300 * 640, 4))});
    results.emplace_back(y[0].bytes.begin(), y[0].bytes.end());
    EXPECT_EQ(results.back(), results.front());
    for (const Row& row : explain(session.get()))
      EXPECT_EQ(row.reason.find("tuned: ") != std::string::npos,
                tune == std::string("on") && row.kernel.find("panels") != std::string::npos)
          << row.kernel << ": " << row.reason;
  }
  const auto options = make_options(PFRT_OPTIONS_SESSION, {});
  EXPECT_TRUE(fails(api().options->set_text(options.get(), str("tune"), str("auto")),
                    PFRT_CODE_INVALID_ARGUMENT, {"tune", "auto", "off on"}));
}

TEST(Session, explains_every_node) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {8});
  g.node("Softmax", {"x"}, {"a"}, {}, "soft");
  g.node("TopK", {"a", "k"}, {"v", "i"}, {}, "top");
  g.constant("k", int64s({1}, {2}));
  g.output("v");
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"enable_profiling", "true"}});
  const auto session = make_session(env.get(), g, options.get());
  std::string nodes;
  for (const Row& row : explain(session.get())) {
    EXPECT_EQ(row.provider, "CPUExecutionProvider");
    EXPECT_FALSE(row.kernel.empty());
    EXPECT_FALSE(row.reason.empty());
    nodes += row.nodes + " ";
  }
  EXPECT_NE(nodes.find("soft"), std::string::npos);
  EXPECT_NE(nodes.find("top"), std::string::npos);
  run(session.get(), {floats({8}, random_floats(8, 1))});
  double measured = 0;
  for (const Row& row : explain(session.get())) measured += row.measured_ns;
  EXPECT_GT(measured, 0);
}

TEST(Providers, missing_one_is_named_with_what_is_there) {
  const auto env = make_env();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", "MoonExecutionProvider"}});
  EXPECT_TRUE(fails(try_session(env.get(), add_graph(), options.get()), PFRT_CODE_NOT_FOUND,
                    {"MoonExecutionProvider", "CPUExecutionProvider"}));
}

TEST(Providers, null_first_leaves_the_work_to_the_cpu) {
  const auto env = make_env();
  for (const Settings& settings :
       {Settings{{"device", "null"}},
        Settings{{"providers", "NullExecutionProvider,CPUExecutionProvider"}}}) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, settings);
    const auto session = make_session(env.get(), add_graph(), options.get());
    ASSERT_TRUE(session);
    EXPECT_EQ(providers_of(session.get()),
              (std::vector<std::string>{"NullExecutionProvider", "CPUExecutionProvider"}));
    EXPECT_EQ(run(session.get(), {floats({1, 3}, {0, 0, 0})})[0].as<float>(),
              (std::vector<float>{1, 2, 3}));
    const auto rows = explain(session.get());
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].provider, "CPUExecutionProvider");
    EXPECT_NE(rows[0].refused.find("NullExecutionProvider"), std::string::npos) << rows[0].refused;
    EXPECT_NE(rows[0].refused.find("runs nothing"), std::string::npos) << rows[0].refused;
  }
}

TEST(Providers, null_alone_runs_nothing_and_says_so_for_each_node) {
  const auto env = make_env();
  GraphBuilder g = add_graph();
  g.node("Relu", {"y"}, {"z"}, {}, "relu");
  g.output("z");
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", "NullExecutionProvider"}});
  const Failure failure = try_session(env.get(), g, options.get());
  EXPECT_TRUE(fails(failure, PFRT_CODE_UNSUPPORTED_OPERATOR, {"2 nodes"}));
  ASSERT_EQ(failure.children.size(), 2u);
  EXPECT_NE(failure.children[0].message.find("'add'"), std::string::npos);
  EXPECT_NE(failure.children[0].message.find("float32[N,3]"), std::string::npos);
  EXPECT_NE(failure.children[1].message.find("'relu'"), std::string::npos);
  EXPECT_NE(failure.children[1].message.find("NullExecutionProvider"), std::string::npos);
}

TEST(Providers, device_and_list_must_agree) {
  const auto env = make_env();
  auto options = make_options(PFRT_OPTIONS_SESSION,
                              {{"device", "null"}, {"providers", "CPUExecutionProvider"}});
  EXPECT_TRUE(fails(try_session(env.get(), add_graph(), options.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"null", "CPUExecutionProvider"}));
  options = make_options(PFRT_OPTIONS_SESSION,
                         {{"providers", "CPUExecutionProvider,CPUExecutionProvider"}});
  EXPECT_TRUE(fails(try_session(env.get(), add_graph(), options.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"twice"}));
  options = make_options(PFRT_OPTIONS_SESSION,
                         {{"device", "cpu"}, {"providers", "CPUExecutionProvider"}});
  EXPECT_TRUE(ok(try_session(env.get(), add_graph(), options.get())));
}

TEST(Providers, list_their_kernels) {
  const auto env = make_env();
  size_t count = 0;
  ASSERT_TRUE(ok(api().env->kernel_count(env.get(), str("CPUExecutionProvider"), &count)));
  EXPECT_GT(count, 50u);
  for (size_t i = 0; i < count; ++i) {
    pfrt_kernel_info info{};
    info.struct_size = sizeof info;
    ASSERT_TRUE(ok(api().env->kernel_at(env.get(), str("CPUExecutionProvider"), i, &info)));
    EXPECT_FALSE(text(info.op).empty());
    EXPECT_FALSE(text(info.name).empty()) << text(info.op);
    EXPECT_FALSE(text(info.types).empty()) << text(info.op);
  }
  ASSERT_TRUE(ok(api().env->kernel_count(env.get(), str("NullExecutionProvider"), &count)));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(fails(api().env->kernel_count(env.get(), str("Nope"), &count), PFRT_CODE_NOT_FOUND,
                    {"Nope"}));
}

TEST(Session, a_convolution_of_constants_is_folded) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 16, 4, 4});
  g.constant("image", floats({1, 16, 6, 6}, random_floats(16 * 36, 3)));
  g.constant("w", floats({16, 16, 3, 3}, random_floats(16 * 16 * 9, 4)));
  g.node("Conv", {"image", "w"}, {"c"});
  g.node("Add", {"x", "c"}, {"y"});
  g.output("y");
  const auto env = make_env();
  const auto model = make_model(env.get(), g);
  const auto plain = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", "none"}});
  const auto folded = make_session(env.get(), model.get());
  const auto whole = make_session(env.get(), model.get(), plain.get());
  pfrt_report* made = nullptr;
  ASSERT_TRUE(ok(api().session->explain(folded.get(), &made)));
  const Handle<pfrt_report> report(made);
  EXPECT_EQ(api().report->row_count(report.get()), 1u);
  const Array x = floats({1, 16, 4, 4}, random_floats(16 * 16, 5));
  const auto got = run(folded.get(), {x})[0].as<float>();
  const auto want = run(whole.get(), {x})[0].as<float>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4);
}

// Returns the bytes of a product of 64 x 512 by 512 x 64 at |precision|.
std::string product(const char* precision) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 512});
  g.constant("w", floats({512, 64}, random_floats(512 * 64, 3)));
  g.node("MatMul", {"x", "w"}, {"y"});
  g.output("y");
  const auto env = make_env();
  const auto model = make_model(env.get(), g);
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"precision", precision}});
  const auto session = make_session(env.get(), model.get(), options.get());
  const auto bytes = run(session.get(), {floats({64, 512}, random_floats(64 * 512, 4))})[0].bytes;
  return std::string(bytes.begin(), bytes.end());
}

TEST(Session, precision_ieee_is_plain_arithmetic) {
  const std::string ieee = product("ieee");
  // Without tiles both precisions use plain arithmetic and are equal.
  const char* const cap = getenv("PFRT_ISA");
  const std::string before = cap ? cap : "";
  if (before.empty() || before == "amx") setenv("PFRT_ISA", "avx512_bf16", 1);
  const std::string capped = product("fp32");
  EXPECT_EQ(product("ieee"), capped);
  cap ? setenv("PFRT_ISA", before.c_str(), 1) : unsetenv("PFRT_ISA");
  EXPECT_EQ(ieee, capped);
}

// Root mean square of the difference of |bytes| from |exact|, relative to that of |exact|.
double difference(const std::string& bytes, const std::string& exact) {
  double squares = 0, all = 0;
  for (size_t i = 0; i + sizeof(float) <= exact.size(); i += sizeof(float)) {
    float x, y;
    std::memcpy(&x, bytes.data() + i, sizeof x);
    std::memcpy(&y, exact.data() + i, sizeof y);
    const double d = static_cast<double>(x) - static_cast<double>(y);
    squares += d * d;
    all += static_cast<double>(y) * static_cast<double>(y);
  }
  return std::sqrt(squares / all);
}

TEST(Session, coarser_precisions_are_as_near_as_they_say) {
  const std::string exact = product("ieee");
  EXPECT_LT(difference(product("fp32"), exact), 1e-6);
  EXPECT_LT(difference(product("fast"), exact), 1e-5);
  EXPECT_LT(difference(product("bf16"), exact), 5e-3);
  const char* const cap = getenv("PFRT_ISA");
  if (cap != nullptr || difference(product("fp32"), exact) == 0)
    GTEST_SKIP() << "without tiles all are plain";
  EXPECT_GT(difference(product("fast"), exact), difference(product("fp32"), exact));
  EXPECT_GT(difference(product("bf16"), exact), 1e-4);
}

// Weights that were packed for many rows are right for one row and for none.
TEST(Session, products_and_convolutions_of_few_and_no_rows) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 64, 64});
  g.constant("w", floats({64, 96}, random_floats(64 * 96, 3)));
  g.constant("k", floats({32, 64, 3}, random_floats(32 * 64 * 3, 5)));
  g.node("MatMul", {"x", "w"}, {"y"});
  g.node("Conv", {"x", "k"}, {"z"});
  g.output("y");
  g.output("z");
  const auto env = make_env();
  const auto model = make_model(env.get(), g);
  const auto session = make_session(env.get(), model.get());
  const std::vector<float> numbers = random_floats(3 * 64 * 64, 4);
  const auto three = run(session.get(), {floats({3, 64, 64}, numbers)});
  const auto none = run(session.get(), {floats({0, 64, 64}, {})});
  EXPECT_EQ(none[0].dims, (std::vector<int64_t>{0, 64, 96}));
  EXPECT_EQ(none[1].dims, (std::vector<int64_t>{0, 32, 62}));
  const auto one =
      run(session.get(),
          {floats({1, 64, 64}, std::vector<float>(numbers.begin(), numbers.begin() + 4096))});
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(std::equal(one[i].bytes.begin(), one[i].bytes.end(), three[i].bytes.begin())) << i;
}

TEST(Session, convolves_an_image_whose_rank_is_known_late) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2, 48, 12, 9});
  g.input("shape", PFRT_DTYPE_INT64, {"R"});
  g.constant("k", floats({32, 48, 3, 3}, random_floats(32 * 48 * 9, 5)));
  g.node("Reshape", {"x", "shape"}, {"same"});
  g.node("Conv", {"same", "k"}, {"late"});
  g.node("Conv", {"x", "k"}, {"early"});
  g.output("late");
  g.output("early");
  const auto env = make_env();
  const auto model = make_model(env.get(), g);
  const auto session = make_session(env.get(), model.get());
  const auto out = run(session.get(), {floats({2, 48, 12, 9}, random_floats(2 * 48 * 108, 4)),
                                       int64s({4}, {2, 48, 12, 9})});
  EXPECT_EQ(out[0].dims, (std::vector<int64_t>{2, 32, 10, 7}));
  EXPECT_EQ(out[0].bytes, out[1].bytes);
}

TEST(Session, statistics_count_runs_and_plans) {
  const auto env = make_env();
  const auto session = make_session(env.get(), add_graph());
  const auto now = [&] {
    pfrt_session_statistics s{};
    s.struct_size = sizeof s;
    EXPECT_TRUE(ok(api().session->statistics(session.get(), &s)));
    return s;
  };
  EXPECT_EQ(now().runs + now().failures + now().plans + now().planning_ns, 0u);
  for (const int64_t n : {2, 2, 3, 2})
    (void)run(session.get(), {floats({n, 3}, std::vector<float>(static_cast<size_t>(3 * n)))});
  EXPECT_EQ(now().runs, 4u);
  EXPECT_EQ(now().plans, 2u);
  EXPECT_GT(now().planning_ns, 0u);
  EXPECT_FALSE(try_run(session.get(), {floats({3}, {1, 2, 3})}).ok());
  EXPECT_EQ(now().failures, 1u);
  EXPECT_EQ(now().plans, 2u);
}

TEST(Session, a_profile_is_of_its_runs_until_it_ends) {
  const auto env = make_env();
  const std::string prefix = testing::TempDir() + "/capi_profile";
  const auto options = make_options(
      PFRT_OPTIONS_SESSION, {{"enable_profiling", "true"}, {"profile_file_prefix", prefix}});
  const auto session = make_session(env.get(), add_graph(), options.get());
  EXPECT_GT(api().session->profiling_start_ns(session.get()), 0u);
  const auto run_once = [&] { (void)run(session.get(), {floats({2, 3}, std::vector<float>(6))}); };
  run_once();
  const auto end = [&] {
    pfrt_string path{};
    EXPECT_TRUE(ok(api().session->end_profiling(session.get(), &path)));
    return std::string(path.data, path.size);
  };
  const std::string path = end();
  EXPECT_EQ(path.rfind(prefix + "_", 0), 0u) << path;
  run_once();
  EXPECT_EQ(end(), path);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find("\"runs\":1,"), std::string::npos) << text.str();
  EXPECT_EQ(std::remove(path.c_str()), 0);

  const auto plain = make_session(env.get(), add_graph());
  pfrt_string none{};
  EXPECT_TRUE(ok(api().session->end_profiling(plain.get(), &none)));
  EXPECT_EQ(none.size, 0u);
  EXPECT_EQ(api().session->profiling_start_ns(plain.get()), 0u);
  EXPECT_EQ(api().session->profiling_start_ns(nullptr), 0u);
  EXPECT_TRUE(
      fails(api().session->end_profiling(nullptr, &none), PFRT_CODE_INVALID_ARGUMENT, {"session"}));
  EXPECT_TRUE(fails(api().session->end_profiling(plain.get(), nullptr), PFRT_CODE_INVALID_ARGUMENT,
                    {"out_path"}));
}

}  // namespace
}  // namespace pfrt_test
