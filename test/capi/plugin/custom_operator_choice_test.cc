// SPDX-License-Identifier: Apache-2.0
//
// Operators of one name: several versions, chosen by the model's opset, and several types, chosen
// by the graph's.
#include <algorithm>

#include "test/capi/plugin/custom_operator.h"
#include "test/onnx_writer.h"

namespace pfrt_test {
namespace {

constexpr pfrt_dtype kF32 = PFRT_DTYPE_FLOAT32, kF64 = PFRT_DTYPE_FLOAT64, kI64 = PFRT_DTYPE_INT64,
                     kText = PFRT_DTYPE_STRING, kAny = PFRT_DTYPE_UNSET;

// An operator whose output 0 is a float32 scalar: |mark|.
std::unique_ptr<TestOperator> marked(float mark, std::vector<pfrt_dtype> types = {},
                                     uint32_t since = 0, uint32_t until = 0,
                                     const std::string& domain = "acme") {
  auto op = std::make_unique<TestOperator>("Mark", domain);
  op->input_types = std::move(types);
  op->c.since_version = since;
  op->c.until_version = until;
  op->infer = [](const pfrt_op_infer* call) { return call->set_output(call, 0, kF32, 0, nullptr); };
  op->compute = [mark](const pfrt_op_compute* call) -> pfrt_code {
    *static_cast<float*>(call->outputs[0].data) = mark;
    return PFRT_CODE_OK;
  };
  return op;
}

// y = Mark(inputs) with an import of the domain, unless |opset| is 0.
GraphBuilder mark_graph(const std::vector<pfrt_dtype>& inputs, int64_t opset = 0,
                        std::string_view domain = "acme") {
  GraphBuilder g;
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    g.input(names.back(), inputs[i], {1});
  }
  g.node("Mark", names, {"y"}, {}, "n1", domain);
  g.output("y");
  if (opset) g.opset(opset, domain);
  return g;
}

// The mark that a session of the graph gives; -1 where there is no session.
float mark_of(pfrt_env* env, const GraphBuilder& graph, const std::vector<pfrt_dtype>& inputs) {
  const auto session = make_session(env, graph);
  if (!session) return -1;
  std::vector<Handle<pfrt_value>> values;
  std::vector<pfrt_value*> raw;
  for (const pfrt_dtype type : inputs) {
    if (type == kText) {
      values.push_back(texts_value({1}, {"x"}));
    } else {
      values.push_back(value_of(Array{type, {1}, std::vector<char>(type == kF32 ? 4 : 8)}));
    }
    raw.push_back(values.back().get());
  }
  Handle<pfrt_value> y;
  EXPECT_TRUE(ok(try_run_values(session.get(), raw, &y)));
  return y ? array_of(y.get()).as<float>()[0] : -1;
}
float mark_of(pfrt_env* env, const std::vector<pfrt_dtype>& inputs, int64_t opset = 0) {
  return mark_of(env, mark_graph(inputs, opset), inputs);
}

TEST(CustomOperatorVersions, stand_side_by_side) {
  const auto env = make_env();
  const auto first = marked(1, {}, 1, 2), second = marked(2, {}, 3, 3), third = marked(3, {}, 5);
  for (const auto& op : {&third, &first, &second}) ASSERT_TRUE(ok((*op)->add_to(env.get())));
  const std::vector<std::pair<int64_t, float>> expected = {{1, 1}, {2, 1}, {3, 2}, {5, 3}, {9, 3}};
  for (const auto& [opset, mark] : expected)
    EXPECT_EQ(mark_of(env.get(), {kF32}, opset), mark) << opset;
  EXPECT_EQ(mark_of(env.get(), {kF32}), 3);  // nothing imported: the newest
  EXPECT_TRUE(fails(try_session(env.get(), mark_graph({kF32}, 4)), PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Mark 'n1'", "opset 4", "known only for opsets 5 on, 1 to 2, 3 to 3"}));
}

TEST(CustomOperatorVersions, are_told_the_opset) {
  const auto env = make_env();
  auto op = marked(0);
  int64_t inferred = 0, made = 0, computed = 0;
  op->infer = [&](const pfrt_op_infer* call) {
    inferred = call->node->opset;
    return call->set_output(call, 0, kF32, 0, nullptr);
  };
  op->create_state = [&](const pfrt_op_create* call, void**) -> pfrt_code {
    made = call->node->opset;
    return PFRT_CODE_OK;
  };
  op->compute = [&](const pfrt_op_compute* call) -> pfrt_code {
    computed = call->node->opset;
    *static_cast<float*>(call->outputs[0].data) = 1;
    return PFRT_CODE_OK;
  };
  ASSERT_TRUE(ok(op->add_to(env.get())));
  EXPECT_EQ(mark_of(env.get(), {kF32}, 7), 1);
  EXPECT_EQ(inferred, 7);
  EXPECT_EQ(made, 7);
  EXPECT_EQ(computed, 7);
}

// The canonical form of a graph has ONNX's newest opset, whatever the model had.
TEST(CustomOperatorVersions, of_the_domain_of_onnx_follow_the_models_opset) {
  const auto env = make_env();
  const auto first = marked(1, {}, 1, 15, "ai.onnx"), second = marked(2, {}, 16, 0, "");
  ASSERT_TRUE(ok(first->add_to(env.get())));
  ASSERT_TRUE(ok(second->add_to(env.get())));
  const std::vector<std::pair<int64_t, float>> expected = {{13, 1}, {15, 1}, {16, 2}, {20, 2}};
  for (const auto& [opset, mark] : expected)
    EXPECT_EQ(mark_of(env.get(), mark_graph({kF32}, opset, ""), {kF32}), mark) << opset;
}

TEST(CustomOperatorVersions, of_bodies_follow_the_models_opset) {
  const auto env = make_env();
  const auto first = marked(1, {}, 1, 1), second = marked(2, {}, 2);
  ASSERT_TRUE(ok(first->add_to(env.get())));
  ASSERT_TRUE(ok(second->add_to(env.get())));
  for (const int64_t opset : {1, 2}) {
    GraphBuilder g;
    g.input("c", PFRT_DTYPE_BOOL, {});
    g.input("x", kF32, {1});
    GraphBuilder yes(g, "yes"), no(g, "no");
    yes.node("Mark", {"x"}, {"yes_y"}, {}, "", "acme");
    yes.output("yes_y");
    no.node("ReduceSum", {"x"}, {"no_y"}, {Attr::of_int("keepdims", 0)});
    no.output("no_y");
    g.node("If", {"c"}, {"y"},
           {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
    g.output("y");
    g.opset(opset, "acme");
    const auto session = make_session(env.get(), g);
    ASSERT_TRUE(session);
    EXPECT_EQ(
        run(session.get(), {Array{PFRT_DTYPE_BOOL, {}, {1}}, floats({1}, {0})})[0].as<float>(),
        std::vector<float>{static_cast<float>(opset)});
  }
}

TEST(CustomOperatorVersions, of_graphs_without_imports_are_the_newest_that_all_nodes_have) {
  const auto env = make_env();
  const auto old = marked(1, {}, 1, 1), current = marked(2, {}, 2);
  auto other = marked(3, {}, 4);
  other->name = "Other";
  for (const auto& op : {old.get(), current.get(), other.get()})
    ASSERT_TRUE(ok(op->add_to(env.get())));
  GraphBuilder g;
  g.input("x", kF32, {1});
  g.node("Mark", {"x"}, {"y"}, {}, "", "acme");
  g.node("Other", {"x"}, {"z"}, {}, "", "acme");
  g.output("y");
  g.output("z");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  const auto outputs = run(session.get(), {floats({1}, {0})});
  EXPECT_EQ(outputs[0].as<float>()[0], 2);
  EXPECT_EQ(outputs[1].as<float>()[0], 3);
}

TEST(CustomOperatorVersions, may_not_overlap) {
  const auto env = make_env();
  const auto first = marked(1, {}, 2, 4);
  ASSERT_TRUE(ok(first->add_to(env.get())));
  const auto refused = [&](uint32_t since, uint32_t until) {
    const auto op = marked(2, {}, since, until);
    EXPECT_TRUE(fails(op->add_to(env.get()), PFRT_CODE_INVALID_ARGUMENT,
                      {"'acme.Mark' of the client", "taken by operator 'acme.Mark' of the client",
                       "opsets 2 to 4", "until_version"}))
        << since << " to " << until;
    EXPECT_EQ(op->released, 1);
  };
  refused(2, 4);  // exactly the same
  refused(1, 0);
  refused(1, 2);
  refused(4, 0);
  refused(3, 3);
  const auto below = marked(2, {}, 1, 1), above = marked(3, {}, 5);
  EXPECT_TRUE(ok(below->add_to(env.get())));
  EXPECT_TRUE(ok(above->add_to(env.get())));
  const auto backwards = marked(4, {}, 9, 8);
  EXPECT_TRUE(fails(backwards->add_to(env.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"'Mark'", "from version 9 to 8"}));
}

TEST(CustomOperatorVersions, come_in_onnx_models_and_go_back_into_them) {
  const auto env = make_env();
  const auto first = marked(1, {}, 1, 1), second = marked(2, {}, 2);
  ASSERT_TRUE(ok(first->add_to(env.get())));
  ASSERT_TRUE(ok(second->add_to(env.get())));
  using namespace onnx_writer;
  for (const int64_t opset : {1, 2, 3}) {
    onnx_writer::Graph graph;
    graph.inputs = {value_info("x", kFloat, {1})};
    graph.outputs = {value_info("y", kFloat, {})};
    graph.nodes = {node("Mark", {"x"}, {"y"}, {}, "n1", "acme")};
    const std::string bytes = onnx_writer::model(graph, {{"", 17}, {"acme", opset}}).bytes();
    pfrt_model* raw = nullptr;
    ASSERT_TRUE(ok(api().model->load_memory(env.get(), bytes.data(), bytes.size(), PFRT_COPY,
                                            nullptr, nullptr, nullptr, &raw)));
    const Handle<pfrt_model> model(raw);
    const auto session = make_session(env.get(), raw);
    ASSERT_TRUE(session);
    EXPECT_EQ(run(session.get(), {floats({1}, {0})})[0].as<float>()[0], opset == 1 ? 1 : 2);
  }
}

TEST(CustomOperatorTypes, are_chosen_by_the_graph) {
  const auto env = make_env();
  const auto of_float = marked(1, {kF32}), of_int = marked(2, {kI64}), of_text = marked(3, {kText});
  for (const auto* op : {&of_float, &of_int, &of_text}) ASSERT_TRUE(ok((*op)->add_to(env.get())));
  EXPECT_EQ(mark_of(env.get(), {kF32}), 1);
  EXPECT_EQ(mark_of(env.get(), {kI64}), 2);
  EXPECT_EQ(mark_of(env.get(), {kText}), 3);
  EXPECT_TRUE(fails(try_session(env.get(), mark_graph({kF64})), PFRT_CODE_DTYPE_MISMATCH,
                    {"Mark 'n1'", "float64", "'float32 -> any', 'int64 -> any', 'string -> any'"}));
}

TEST(CustomOperatorTypes, that_are_inferred_choose_too) {
  const auto env = make_env();
  const auto of_float = marked(1, {kF32}), of_int = marked(2, {kI64});
  ASSERT_TRUE(ok(of_float->add_to(env.get())));
  ASSERT_TRUE(ok(of_int->add_to(env.get())));
  GraphBuilder g;
  g.input("x", kF32, {1});
  g.node("Shape", {"x"}, {"s"});
  g.node("Neg", {"x"}, {"n"});
  g.node("Mark", {"s"}, {"y"}, {}, "n1", "acme");
  g.node("Mark", {"n"}, {"z"}, {}, "n2", "acme");
  g.output("y");
  g.output("z");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  const auto outputs = run(session.get(), {floats({1}, {0})});
  EXPECT_EQ(outputs[0].as<float>()[0], 2);
  EXPECT_EQ(outputs[1].as<float>()[0], 1);
}

TEST(CustomOperatorTypes, of_one_operator_are_checked) {
  const auto env = make_env();
  const auto op = marked(1, {kF32, kI64});
  op->c.min_inputs = 1;
  op->c.max_inputs = 4;
  ASSERT_TRUE(ok(op->add_to(env.get())));
  EXPECT_EQ(mark_of(env.get(), {kF32}), 1);
  EXPECT_EQ(mark_of(env.get(), {kF32, kI64}), 1);
  EXPECT_EQ(mark_of(env.get(), {kF32, kI64, kI64, kI64}), 1);  // the last type is that of the rest
  EXPECT_TRUE(fails(try_session(env.get(), mark_graph({kF32, kI64, kF32})),
                    PFRT_CODE_DTYPE_MISMATCH,
                    {"Mark 'n1'", "'float32, int64, float32 -> unknown'",
                     "there is 'float32, int64, int64, int64 -> any'"}));
}

TEST(CustomOperatorTypes, the_one_that_names_more_is_taken) {
  const auto env = make_env();
  const auto any = marked(1), left = marked(2, {kF32, kAny}), right = marked(3, {kAny, kI64}),
             both = marked(4, {kF32, kI64});
  for (const auto* op : {&any, &left, &right}) {
    (*op)->c.min_inputs = 2;
    ASSERT_TRUE(ok((*op)->add_to(env.get())));
  }
  EXPECT_EQ(mark_of(env.get(), {kF64, kF64}), 1);
  EXPECT_EQ(mark_of(env.get(), {kF32, kF64}), 2);
  EXPECT_EQ(mark_of(env.get(), {kF64, kI64}), 3);
  EXPECT_EQ(mark_of(env.get(), {kF32, kI64}), 2);  // both name one type: the first registered
  both->c.min_inputs = 2;
  ASSERT_TRUE(ok(both->add_to(env.get())));
  EXPECT_EQ(mark_of(env.get(), {kF32, kI64}), 4);
}

TEST(CustomOperatorTypes, the_number_of_inputs_chooses_too) {
  const auto env = make_env();
  const auto one = marked(1, {kF32}), two = marked(2, {kF32, kAny});
  two->c.min_inputs = 2;
  ASSERT_TRUE(ok(one->add_to(env.get())));
  ASSERT_TRUE(ok(two->add_to(env.get())));
  EXPECT_EQ(mark_of(env.get(), {kF32}), 1);
  EXPECT_EQ(mark_of(env.get(), {kF32, kF64}), 2);
  EXPECT_TRUE(fails(try_session(env.get(), mark_graph({kF32, kF32, kF32})), PFRT_CODE_INVALID_MODEL,
                    {"Mark 'n1'", "has 3 inputs"}));
}

void declare(const GraphBuilder& g, const char* name, pfrt_dtype dtype) {
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = dtype;
  info.rank = -1;
  info.name = str(name);
  ASSERT_TRUE(ok(api().graph->set_value_info(g.get(), &info)));
}

TEST(CustomOperatorTypes, of_outputs_choose_where_they_are_declared) {
  const auto env = make_env();
  const auto to_float = marked(1, {kText}), to_int = marked(2, {kText});
  to_float->output_types = {kF32};
  to_int->output_types = {kI64};
  to_int->infer = infer_shape_as(kI64);
  to_int->compute = [](const pfrt_op_compute* call) -> pfrt_code {
    *static_cast<int64_t*>(call->outputs[0].data) = 2;
    return PFRT_CODE_OK;
  };
  ASSERT_TRUE(ok(to_float->add_to(env.get())));
  ASSERT_TRUE(ok(to_int->add_to(env.get())));
  const auto x = texts_value({1}, {"x"});
  for (const pfrt_dtype type : {kF32, kI64}) {
    const GraphBuilder g = mark_graph({kText});
    declare(g, "y", type);
    const auto session = make_session(env.get(), g);
    ASSERT_TRUE(session);
    Handle<pfrt_value> y;
    ASSERT_TRUE(ok(try_run_values(session.get(), {x.get()}, &y)));
    EXPECT_EQ(array_of(y.get()).dtype, type);
  }
  EXPECT_TRUE(
      fails(try_session(env.get(), mark_graph({kText})), PFRT_CODE_UNSUPPORTED_OPERATOR,
            {"Mark 'n1'", "output 0 ('y')", "'string -> float32', 'string -> int64'", "declare"}));
  const GraphBuilder g = mark_graph({kText});
  declare(g, "y", kF64);
  EXPECT_TRUE(
      fails(try_session(env.get(), g), PFRT_CODE_DTYPE_MISMATCH,
            {"Mark 'n1'", "'string -> float64'", "'string -> float32', 'string -> int64'"}));
}

TEST(CustomOperatorTypes, that_are_not_known_are_named_where_they_decide) {
  const auto env = make_env();
  TestOperator opaque("Opaque");  // without inputs, so that only the graph says its type
  opaque.c.min_inputs = 0;
  opaque.compute = compute_scaled;
  const auto of_float = marked(1, {kF32}), of_int = marked(2, {kI64});
  ASSERT_TRUE(ok(opaque.add_to(env.get())));
  ASSERT_TRUE(ok(of_float->add_to(env.get())));
  ASSERT_TRUE(ok(of_int->add_to(env.get())));
  GraphBuilder g;
  g.input("x", kF32, {1});
  g.node("Opaque", {}, {"o"}, {}, "n0", "acme");
  g.node("Mark", {"o"}, {"y"}, {}, "n1", "acme");
  g.output("y");
  const Failure failure = try_session(env.get(), g);
  EXPECT_EQ(failure.code, PFRT_CODE_UNSUPPORTED_OPERATOR);
  EXPECT_NE(failure.message.find("element type"), std::string::npos) << failure.message;
  declare(g, "o", kI64);
  EXPECT_TRUE(make_session(env.get(), g));
}

TEST(CustomOperatorTypes, of_outputs_need_no_shape_callback) {
  const auto env = make_env();
  TestOperator op("Count");
  op.output_types = {kI64};
  op.compute = [](const pfrt_op_compute* call) -> pfrt_code {
    void* out = nullptr;
    const pfrt_code code = call->alloc_output(call, 0, kI64, nullptr, 0, &out);
    if (code == PFRT_CODE_OK)
      *static_cast<int64_t*>(out) = static_cast<int64_t>(count_of(call->inputs[0]));
    return code;
  };
  ASSERT_TRUE(ok(op.add_to(env.get())));
  const auto session = make_session(env.get(), one_node(op));
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {kRow})[0].as<int64_t>(), std::vector<int64_t>{3});
  TestOperator liar("Liar");
  liar.output_types = {kI64};
  liar.infer = infer_like_input;
  liar.compute = compute_scaled;
  ASSERT_TRUE(ok(liar.add_to(env.get())));
  EXPECT_TRUE(fails(try_session(env.get(), one_node(liar)), PFRT_CODE_PROVIDER,
                    {"Liar 'n1'", "output 0 is float32", "registered for int64"}));
}

TEST(CustomOperatorTypes, may_not_be_the_same_twice) {
  const auto env = make_env();
  const auto first = marked(1, {kF32, kF32});
  first->c.max_inputs = 2;
  ASSERT_TRUE(ok(first->add_to(env.get())));
  const auto same = marked(2, {kF32});  // the last type is that of all further inputs
  same->c.max_inputs = 2;
  EXPECT_TRUE(fails(same->add_to(env.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"taken by operator 'acme.Mark'", "'float32, float32 -> any'"}));
  const auto other = marked(3, {kF32, kI64});
  other->c.max_inputs = 2;
  EXPECT_TRUE(ok(other->add_to(env.get())));
}

TEST(CustomOperatorTypes, that_make_no_sense_are_refused) {
  const auto env = make_env();
  const auto refused = [&](const auto& spoil, std::initializer_list<std::string_view> parts) {
    const auto op = marked(1);
    spoil(*op);
    EXPECT_TRUE(fails(op->add_to(env.get()), PFRT_CODE_INVALID_ARGUMENT, parts));
  };
  refused([](TestOperator& op) { op.input_types = {77}; }, {"input 0 is 77", "no element type"});
  refused(
      [](TestOperator& op) {
        op.output_types = {kF32, kF32};
      },
      {"types of 2 outputs and has at most 1"});
  refused(
      [](TestOperator& op) {
        op.input_types = {kF32, kF32};
      },
      {"types of 2 inputs and has at most 1"});
  const auto op = marked(1);
  op->c.name = str(op->name);
  op->c.domain = str(op->domain);
  op->c.input_type_count = 1;
  op->c.release = nullptr;
  EXPECT_TRUE(fails(api().env->register_operator(env.get(), &op->c), PFRT_CODE_INVALID_ARGUMENT,
                    {"counts types of 1 inputs and lists none"}));
}

TEST(CustomOperatorTypes, and_versions_are_listed_and_unregistered_together) {
  const auto env = make_env();
  const auto old = marked(1, {kF32}, 1, 2), current = marked(2, {kF32}, 3),
             of_int = marked(3, {kI64}, 2), any = marked(4);
  current->output_types = {kF32};
  of_int->c.max_inputs = PFRT_ANY_NUMBER;
  for (const auto* op : {&old, &current, &of_int, &any}) ASSERT_TRUE(ok((*op)->add_to(env.get())));
  const auto listed = [&] {
    std::vector<std::string> rows;
    size_t count = 0;
    EXPECT_TRUE(ok(api().env->custom_operator_count(env.get(), &count)));
    for (size_t i = 0; i < count; ++i) {
      pfrt_operator_info info{};
      info.struct_size = sizeof info;
      EXPECT_TRUE(ok(api().env->custom_operator_at(env.get(), i, &info)));
      if (text(info.op) == "Mark")
        rows.push_back(std::to_string(info.since) + "-" + std::to_string(info.until) + " " +
                       text(info.types));
    }
    return rows;
  };
  EXPECT_EQ(listed(), (std::vector<std::string>{"1-2 float32 -> any", "3-0 float32 -> float32",
                                                "2-0 int64, ... -> any", "1-0 "}));
  ASSERT_TRUE(ok(api().env->unregister_operator(env.get(), str("acme"), str("Mark"))));
  EXPECT_EQ(listed(), std::vector<std::string>());
  for (const auto* op : {&old, &current, &of_int, &any}) EXPECT_EQ((*op)->released, 1);
}

}  // namespace
}  // namespace pfrt_test
