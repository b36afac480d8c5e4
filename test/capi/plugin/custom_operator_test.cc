// SPDX-License-Identifier: Apache-2.0
#include "test/capi/plugin/custom_operator.h"

#include <algorithm>

#include "test/onnx_writer.h"

namespace pfrt_test {
namespace {

struct Row {
  std::string nodes, ops, provider, kernel;
};
std::vector<Row> explain(pfrt_session* session) {
  pfrt_report* raw = nullptr;
  EXPECT_TRUE(ok(api().session->explain(session, &raw)));
  const Handle<pfrt_report> report(raw);
  std::vector<Row> rows;
  for (size_t i = 0; i < api().report->row_count(raw); ++i) {
    pfrt_report_row row{};
    row.struct_size = sizeof row;
    EXPECT_TRUE(ok(api().report->row_at(raw, i, &row)));
    rows.push_back({text(row.nodes), text(row.ops), text(row.provider), text(row.kernel)});
  }
  return rows;
}

TEST(CustomOperator, runs_between_built_in_ones) {
  const auto op = scale_operator();
  {
    const auto env = make_env();
    ASSERT_TRUE(ok(op->add_to(env.get())));
    const auto session = make_session(env.get(), scale_graph({Attr::of_float("factor", 3)}));
    ASSERT_TRUE(session);
    EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{0, 3, 6}));
    EXPECT_EQ(run(session.get(), {floats({2, 3}, {0, 1, 2, 3, 4, -5})})[0].as<float>(),
              (std::vector<float>{3, 6, 9, 12, 15, 0}));
    const std::vector<Row> rows = explain(session.get());
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[1].nodes, "scaling");
    EXPECT_EQ(rows[1].ops, "Scale");
    EXPECT_EQ(rows[1].provider, "RegisteredOperators");
    EXPECT_EQ(rows[1].kernel, "registered_Scale");
    EXPECT_EQ(rows[0].provider, "CPUExecutionProvider");
    // The operator's provider is not in the list of the session's providers.
    EXPECT_EQ(providers_of(session.get()).size(), 1u);
    EXPECT_EQ(op->released, 0);
  }
  EXPECT_EQ(op->released, 1);
}

TEST(CustomOperator, is_not_run_where_memory_for_its_output_is_too_small) {
  int runs = 0;
  TestOperator op("Count");
  op.infer = infer_like_input;
  op.compute = [&](const pfrt_op_compute* call) {
    ++runs;
    return compute_scaled(call);
  };
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 3});
  g.node("Count", {"x"}, {"y"}, {}, "n1", "acme");
  g.output("y");
  const auto env = make_env();
  ASSERT_TRUE(ok(op.add_to(env.get())));
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  std::vector<float> y(3);
  const auto run_into = [&](uint64_t bytes, pfrt_dtype dtype) {
    pfrt_io in = kRow.io(), out{};
    out.struct_size = sizeof out;
    out.tensor.struct_size = sizeof out.tensor;
    out.tensor.dtype = dtype;
    out.tensor.data = y.data();
    out.tensor.bytes = bytes;
    return take(api().session->run(session.get(), &in, 1, &out, 1, nullptr));
  };
  EXPECT_TRUE(fails(run_into(8, PFRT_DTYPE_UNSET), PFRT_CODE_SHAPE_MISMATCH,
                    {"'y' has 8 bytes, the result has 12"}));
  EXPECT_TRUE(fails(run_into(12, PFRT_DTYPE_INT32), PFRT_CODE_DTYPE_MISMATCH, {"'y'", "int32"}));
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(ok(run_into(12, PFRT_DTYPE_FLOAT32)));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(y, (std::vector<float>{-6, 0, 2}));
}

TEST(CustomOperator, keeps_symbolic_dimensions) {
  const auto op = scale_operator();
  const auto env = make_env();
  ASSERT_TRUE(ok(op->add_to(env.get())));
  const auto session = make_session(env.get(), scale_graph());
  ASSERT_TRUE(session);
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().session->output_at(session.get(), 0, &info)));
  ASSERT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[0], -1);
  EXPECT_EQ(text(info.dim_names[0]), "N");
  EXPECT_EQ(info.dims[1], 3);
  EXPECT_EQ(info.dtype, PFRT_DTYPE_FLOAT32);
}

TEST(CustomOperator, needs_no_shape_callback) {
  const auto op = scale_operator(false);
  const auto env = make_env();
  ASSERT_TRUE(ok(op->add_to(env.get())));
  const auto session = make_session(env.get(), scale_graph());
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{0, 2, 4}));
}

TEST(CustomOperator, gives_outputs_whose_size_only_a_run_tells) {
  TestOperator op("Positive");
  op.c.flags = PFRT_OP_DATA_DEPENDENT;
  op.infer = [](const pfrt_op_infer* call) {
    const int64_t open = -100;
    return call->set_output(call, 0, PFRT_DTYPE_FLOAT32, 1, &open);
  };
  op.compute = [](const pfrt_op_compute* call) -> pfrt_code {
    const auto* x = static_cast<const float*>(call->inputs[0].data);
    std::vector<float> kept;
    for (uint64_t i = 0; i < count_of(call->inputs[0]); ++i)
      if (x[i] > 0) kept.push_back(x[i]);
    const auto count = static_cast<int64_t>(kept.size());
    void* out = nullptr;
    const pfrt_code code = call->alloc_output(call, 0, PFRT_DTYPE_FLOAT32, &count, 1, &out);
    if (code == PFRT_CODE_OK && count) std::memcpy(out, kept.data(), kept.size() * sizeof(float));
    return code;
  };
  const auto env = make_env();
  ASSERT_TRUE(ok(op.add_to(env.get())));
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.node("Positive", {"x"}, {"p"}, {}, "", "acme");
  g.node("Neg", {"p"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {5, -1, 7})})[0].as<float>(),
            (std::vector<float>{-5, -7}));
  const Array none = run(session.get(), {floats({1, 3}, {-1, -1, 0})})[0];
  EXPECT_EQ(none.dims, (std::vector<int64_t>{0}));
}

TEST(CustomOperator, may_ask_for_contents_of_inputs) {
  // Fills the dimensions that input 1 lists with ones, times input 0.
  TestOperator op("Filled");
  op.c.min_inputs = 2;
  op.c.content_inputs = 2;
  op.infer = [](const pfrt_op_infer* call) -> pfrt_code {
    const pfrt_snapshot_value& dims = call->inputs[1];
    if (!dims.data) return call->set_output(call, 0, PFRT_DTYPE_FLOAT32, -1, nullptr);
    return call->set_output(call, 0, PFRT_DTYPE_FLOAT32,
                            static_cast<int32_t>(dims.bytes / sizeof(int64_t)),
                            static_cast<const int64_t*>(dims.data));
  };
  op.compute = [](const pfrt_op_compute* call) -> pfrt_code {
    std::fill_n(static_cast<float*>(call->outputs[0].data), count_of(call->outputs[0]),
                *static_cast<const float*>(call->inputs[0].data));
    return PFRT_CODE_OK;
  };
  const auto env = make_env();
  ASSERT_TRUE(ok(op.add_to(env.get())));

  GraphBuilder fed;  // the size is known at the run
  fed.input("x", PFRT_DTYPE_FLOAT32, {1});
  fed.input("dims", PFRT_DTYPE_INT64, {2});
  fed.node("Filled", {"x", "dims"}, {"y"}, {}, "", "acme");
  fed.output("y");
  auto session = make_session(env.get(), fed);
  ASSERT_TRUE(session);
  for (int64_t n : {2, 3}) {
    const Array y = run(session.get(), {floats({1}, {7}), int64s({2}, {n, 2})})[0];
    EXPECT_EQ(y.dims, (std::vector<int64_t>{n, 2}));
    EXPECT_EQ(y.as<float>(), std::vector<float>(static_cast<size_t>(2 * n), 7));
  }

  GraphBuilder shaped;  // the size follows from another input's dimensions
  shaped.input("x", PFRT_DTYPE_FLOAT32, {1});
  shaped.input("z", PFRT_DTYPE_FLOAT32, {"N", 2});
  shaped.node("Shape", {"z"}, {"dims"});
  shaped.node("Filled", {"x", "dims"}, {"y"}, {}, "", "acme");
  shaped.output("y");
  session = make_session(env.get(), shaped);
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({1}, {5}), floats({2, 2}, {0, 0, 0, 0})})[0].as<float>(),
            std::vector<float>(4, 5));
}

TEST(CustomOperator, reads_attributes_of_every_kind) {
  TestOperator op("Attributes");
  std::atomic<bool> infer_saw{false}, compute_saw{false};
  const auto right = [](const pfrt_snapshot_node& node, uint32_t size) {
    const auto* i = attribute(node, size, "i");
    const auto* f = attribute(node, size, "f");
    const auto* s = attribute(node, size, "s");
    const auto* ints = attribute(node, size, "ints");
    const auto* floats_attr = attribute(node, size, "floats");
    const auto* strings = attribute(node, size, "strings");
    const auto* tensor = attribute(node, size, "t");
    return i && i->i == -7 && f && f->f == 0.5f && s && text(s->s) == "words" && ints &&
           ints->count == 2 && ints->ints[1] == 9 && floats_attr &&
           floats_attr->floats[0] == 1.5f && strings && strings->count == 2 &&
           text(strings->strings[1]) == "b" && tensor && tensor->tensor.rank == 1 &&
           *static_cast<const float*>(tensor->tensor.data) == 4;
  };
  op.infer = [&](const pfrt_op_infer* call) {
    if (right(*call->node, call->attr_size)) infer_saw = true;
    return infer_like_input(call);
  };
  op.compute = [&](const pfrt_op_compute* call) {
    if (right(*call->node, call->attr_size)) compute_saw = true;
    return compute_scaled(call);
  };
  const auto env = make_env();
  ASSERT_TRUE(ok(op.add_to(env.get())));
  const auto tensor = value_of(floats({1}, {4}));
  Attr f, s, t;
  f.name = "floats", f.type = PFRT_ATTR_FLOATS, f.floats = {1.5f};
  s.name = "strings", s.type = PFRT_ATTR_STRINGS, s.strings = {"a", "b"};
  t.name = "t", t.type = PFRT_ATTR_TENSOR, t.tensor = tensor.get();
  const auto session = make_session(
      env.get(),
      one_node(op, {Attr::of_int("i", -7), Attr::of_float("f", 0.5f), Attr::of_string("s", "words"),
                    Attr::of_ints("ints", {8, 9}), f, s, t}));
  ASSERT_TRUE(session);
  run(session.get(), {kRow});
  EXPECT_TRUE(infer_saw);
  EXPECT_TRUE(compute_saw);

  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {3});
  GraphBuilder body(g, "body");
  g.node("Attributes", {"x"}, {"y"}, {Attr::of_graph("body", body.get())}, "n1", "acme");
  g.output("y");
  EXPECT_TRUE(fails(try_session(env.get(), g), PFRT_CODE_UNSUPPORTED,
                    {"Attributes 'n1'", "'body'", "graph"}));
}

TEST(CustomOperator, sees_absent_inputs_and_unwanted_outputs) {
  TestOperator op("Optional");
  op.c.min_inputs = 1;
  op.c.max_inputs = 3;
  op.c.max_outputs = 2;
  op.infer = [](const pfrt_op_infer* call) -> pfrt_code {
    if (call->input_count != 3 || call->inputs[1].rank != -1 || call->inputs[1].dtype != 0)
      return call->fail(call, PFRT_CODE_INTERNAL, str("input 1 should be absent"));
    if (call->output_count == 2 && call->output_names[1].size != 0)
      return call->fail(call, PFRT_CODE_INTERNAL, str("output 1 should be unwanted"));
    return infer_like_input(call);
  };
  op.compute = [](const pfrt_op_compute* call) -> pfrt_code {
    if (call->inputs[1].dtype != 0 || text(call->input_names[2]) != "z")
      return call->fail(call, PFRT_CODE_INTERNAL, str("input 1 should be absent, 2 is z"));
    void* unwanted = &unwanted;
    if (call->output_count == 2) {
      const int64_t dims[] = {1000};
      const pfrt_code code = call->alloc_output(call, 1, PFRT_DTYPE_INT8, dims, 1, &unwanted);
      if (code != PFRT_CODE_OK || unwanted || call->outputs[1].dtype != 0)
        return call->fail(call, PFRT_CODE_INTERNAL, str("output 1 should be unwanted"));
    }
    for (uint64_t i = 0; i < count_of(call->inputs[0]); ++i)
      static_cast<float*>(call->outputs[0].data)[i] =
          static_cast<const float*>(call->inputs[0].data)[i] +
          static_cast<const float*>(call->inputs[2].data)[i];
    return PFRT_CODE_OK;
  };
  const auto env = make_env();
  ASSERT_TRUE(ok(op.add_to(env.get())));
  for (const auto& outputs : {std::vector<std::string>{"y"}, {"y", ""}}) {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {2});
    g.input("z", PFRT_DTYPE_FLOAT32, {2});
    g.node("Optional", {"x", "", "z"}, outputs, {}, "", "acme");
    g.output("y");
    const auto session = make_session(env.get(), g);
    ASSERT_TRUE(session);
    EXPECT_EQ(run(session.get(), {floats({2}, {1, 2}), floats({2}, {10, 20})})[0].as<float>(),
              (std::vector<float>{11, 22}));
  }
}

TEST(CustomOperator, runs_in_bodies_and_one_after_the_other) {
  const auto op = scale_operator();
  const auto env = make_env();
  ASSERT_TRUE(ok(op->add_to(env.get())));
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  g.input("x", PFRT_DTYPE_FLOAT32, {3});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Scale", {"x"}, {"t"}, {}, "", "acme");
  yes.node("Scale", {"t"}, {"yes_y"}, {}, "", "acme");
  yes.output("yes_y");
  no.node("Neg", {"x"}, {"no_y"});
  no.output("no_y");
  g.node("If", {"c"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  const Array x = floats({3}, {1, 2, 3}), yes_value{PFRT_DTYPE_BOOL, {}, {1}},
              no_value{PFRT_DTYPE_BOOL, {}, {0}};
  EXPECT_EQ(run(session.get(), {yes_value, x})[0].as<float>(), (std::vector<float>{4, 8, 12}));
  EXPECT_EQ(run(session.get(), {no_value, x})[0].as<float>(), (std::vector<float>{-1, -2, -3}));
}

TEST(CustomOperator, without_inputs_has_the_type_that_the_graph_declares) {
  TestOperator op("Three");
  op.c.min_inputs = 0;
  op.compute = [](const pfrt_op_compute* call) -> pfrt_code {
    void* out = nullptr;
    const pfrt_code code = call->alloc_output(call, 0, PFRT_DTYPE_FLOAT32, nullptr, 0, &out);
    if (code == PFRT_CODE_OK) *static_cast<float*>(out) = 3;
    return code;
  };
  const auto env = make_env();
  ASSERT_TRUE(ok(op.add_to(env.get())));
  GraphBuilder g;
  g.node("Three", {}, {"t"}, {}, "n1", "acme");
  g.node("Neg", {"t"}, {"y"});
  g.output("y");
  EXPECT_TRUE(fails(try_session(env.get(), g), PFRT_CODE_UNSUPPORTED_OPERATOR, {"Neg"}));
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.rank = -1;
  info.name = str("t");
  ASSERT_TRUE(ok(api().graph->set_value_info(g.get(), &info)));
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {})[0].as<float>(), (std::vector<float>{-3}));

  GraphBuilder alone;
  alone.node("Three", {}, {"y"}, {}, "n1", "acme");
  alone.output("y");
  EXPECT_TRUE(fails(try_session(env.get(), alone), PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Three 'n1'", "element type of output 0 ('y') is not known"}));
}

TEST(CustomOperator, may_not_take_a_name_that_is_taken) {
  const auto env = make_env();
  TestOperator relu("Relu", "ai.onnx"), first("Mine", ""), second("Mine", "ai.onnx");
  relu.compute = first.compute = second.compute = compute_scaled;
  EXPECT_TRUE(fails(relu.add_to(env.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"'ai.onnx.Relu'", "the client", "built-in"}));
  EXPECT_EQ(relu.released, 1);
  // A new name in ONNX's domain is allowed.
  ASSERT_TRUE(ok(first.add_to(env.get())));
  EXPECT_TRUE(fails(second.add_to(env.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"'ai.onnx.Mine' of the client", "taken by operator 'ai.onnx.Mine'"}));
  EXPECT_EQ(second.released, 1);
  EXPECT_EQ(first.released, 0);
  TestOperator elsewhere("Relu", "acme");  // another domain is another operator
  elsewhere.infer = infer_like_input;
  elsewhere.compute = compute_scaled;
  ASSERT_TRUE(ok(elsewhere.add_to(env.get())));
  const auto session = make_session(env.get(), one_node(elsewhere));
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{-6, 0, 2}));
}

TEST(CustomOperator, is_refused_where_its_description_makes_no_sense) {
  const auto env = make_env();
  const auto refused = [&](const auto& spoil, std::initializer_list<std::string_view> parts,
                           pfrt_code code = PFRT_CODE_INVALID_ARGUMENT) {
    TestOperator op("Bad");
    op.compute = compute_scaled;
    spoil(op);
    EXPECT_TRUE(fails(op.add_to(env.get()), code, parts));
    EXPECT_EQ(op.released, 1);
  };
  refused([](TestOperator& op) { op.name.clear(); }, {"no name"});
  refused([](TestOperator& op) { op.c.compute = nullptr; }, {"'Bad'", "compute"});
  refused([](TestOperator& op) { op.c.flags = uint64_t{1} << 40; }, {"flags"},
          PFRT_CODE_UNSUPPORTED);
  refused([](TestOperator& op) { op.c.min_inputs = 3, op.c.max_inputs = 2; }, {"3 to 2 inputs"});
  refused([](TestOperator& op) { op.c.max_outputs = 1u << 30; }, {"outputs"});
  refused([](TestOperator& op) { op.c.since_version = UINT32_MAX; }, {"version"});
  refused([](TestOperator& op) { op.c.abi = PFRT_MAKE_ABI(9, 0); }, {"ABI 9.0"});
  EXPECT_TRUE(
      fails(api().env->register_operator(env.get(), nullptr), PFRT_CODE_INVALID_ARGUMENT, {"op"}));
  TestOperator op("Bad");
  EXPECT_TRUE(fails(op.add_to(nullptr), PFRT_CODE_INVALID_ARGUMENT, {"env"}));
  EXPECT_EQ(op.released, 1);
}

TEST(CustomOperator, has_its_arity_and_version_checked) {
  auto op = scale_operator();
  op->c.since_version = 3;
  const auto env = make_env();
  ASSERT_TRUE(ok(op->add_to(env.get())));
  GraphBuilder two;
  two.input("x", PFRT_DTYPE_FLOAT32, {3});
  two.node("Scale", {"x", "x"}, {"y"}, {}, "n1", "acme");
  two.output("y");
  EXPECT_TRUE(fails(try_session(env.get(), two), PFRT_CODE_INVALID_MODEL,
                    {"Scale 'n1'", "has 2 inputs, takes 1"}));
  GraphBuilder old = one_node(*op);
  old.opset(2, "acme");
  EXPECT_TRUE(fails(try_session(env.get(), old), PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Scale 'n1'", "opset 2", "known only for opsets 3 on"}));
  GraphBuilder current = one_node(*op);
  current.opset(5, "acme");
  EXPECT_TRUE(make_session(env.get(), current));
}

TEST(CustomOperator, is_named_by_name_checks) {
  const auto op = scale_operator();
  const auto env = make_env();
  ASSERT_TRUE(ok(op->add_to(env.get())));
  TestOperator scala("Scala"), other("Scale", "other");
  EXPECT_TRUE(fails(try_session(env.get(), one_node(scala)), PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Scala 'n1'", "nearest known name is 'Scale'"}));
  EXPECT_TRUE(fails(try_session(env.get(), one_node(other)), PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Scale 'n1'", "known only in domain 'acme'"}));
}

TEST(CustomOperator, comes_and_goes_while_models_live) {
  const auto op = scale_operator(), again = scale_operator();
  const auto env = make_env();
  const auto model = make_model(env.get(), scale_graph());  // made before anybody knows Scale
  ASSERT_TRUE(model);
  EXPECT_TRUE(fails(try_session(env.get(), model.get()), PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Scale 'scaling'"}));
  ASSERT_TRUE(ok(op->add_to(env.get())));
  auto session = make_session(env.get(), model.get());
  ASSERT_TRUE(session);
  ASSERT_TRUE(ok(api().env->unregister_operator(env.get(), str("acme"), str("Scale"))));
  EXPECT_TRUE(fails(api().env->unregister_operator(env.get(), str("acme"), str("Scale")),
                    PFRT_CODE_NOT_FOUND, {"'acme.Scale'"}));
  EXPECT_TRUE(fails(try_session(env.get(), model.get()), PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Scale 'scaling'"}));
  // The session keeps the operator that it was made with.
  EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{0, 2, 4}));
  EXPECT_EQ(op->released, 0);
  session.reset();
  EXPECT_EQ(op->released, 1);
  ASSERT_TRUE(ok(again->add_to(env.get())));  // the name is free
  session = make_session(env.get(), model.get());
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{0, 2, 4}));
}

TEST(CustomOperator, is_listed) {
  const auto op = scale_operator();
  const auto env = make_env();
  op->c.since_version = 4;
  ASSERT_TRUE(ok(op->add_to(env.get())));
  size_t count = 0;
  ASSERT_TRUE(ok(api().env->custom_operator_count(env.get(), &count)));
  ASSERT_GE(count, 1u);  // the project's own plug-ins bring operators too
  pfrt_operator_info info{};
  info.struct_size = sizeof info;
  for (size_t i = 0; i < count && text(info.op) != "Scale"; ++i)
    ASSERT_TRUE(ok(api().env->custom_operator_at(env.get(), i, &info)));
  EXPECT_EQ(text(info.op), "Scale");
  EXPECT_EQ(text(info.domain), "acme");
  EXPECT_EQ(info.since, 4u);
  EXPECT_EQ(info.until, 0u);
  EXPECT_TRUE(fails(api().env->custom_operator_at(env.get(), count, &info),
                    PFRT_CODE_INVALID_ARGUMENT,
                    {std::to_string(count) + " of " + std::to_string(count)}));
}

TEST(CustomOperator, comes_in_onnx_models_and_goes_back_into_them) {
  const auto op = scale_operator();
  const auto env = make_env();
  ASSERT_TRUE(ok(op->add_to(env.get())));
  using namespace onnx_writer;
  onnx_writer::Graph graph;
  graph.inputs = {value_info("x", kFloat, {-1, 3})};
  graph.outputs = {value_info("y", kFloat, {-1, 3})};
  graph.nodes = {node("Scale", {"x"}, {"y"}, {float_attribute("factor", 4)}, "n1", "acme")};
  const std::string bytes = onnx_writer::model(graph, {{"", 17}, {"acme", 2}}).bytes();
  pfrt_model* raw = nullptr;
  ASSERT_TRUE(ok(api().model->load_memory(env.get(), bytes.data(), bytes.size(), PFRT_COPY, nullptr,
                                          nullptr, nullptr, &raw)));
  const Handle<pfrt_model> model(raw);
  EXPECT_EQ(api().model->warning_count(raw), 0u);
  const auto session = make_session(env.get(), raw);
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{-12, 0, 4}));

  // A copy of its graph still knows the operator.
  pfrt_graph* copy = nullptr;
  ASSERT_TRUE(ok(api().model->graph(raw, &copy)));
  const Handle<pfrt_graph> holder(copy);
  EXPECT_TRUE(ok(api().graph->validate(copy)));
  EXPECT_TRUE(ok(api().graph->infer_shapes(copy)));
}

}  // namespace
}  // namespace pfrt_test
