// SPDX-License-Identifier: Apache-2.0
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

bool has_child(const Failure& failure, std::initializer_list<std::string_view> parts) {
  for (const Failure& child : failure.children) {
    bool all = true;
    for (std::string_view part : parts) all &= child.message.find(part) != std::string::npos;
    if (all) return true;
  }
  return false;
}

TEST(Graph, tells_what_it_was_built_from) {
  GraphBuilder g("net");
  g.opset(17);
  g.opset(1, "com.microsoft");
  ASSERT_TRUE(ok(api().graph->set_metadata(g.get(), str("author"), str("me"))));
  ASSERT_TRUE(ok(api().graph->set_metadata(g.get(), str("author"), str("you"))));
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3, 8, ""});
  g.constant("w", floats({4, 3, 1, 1}, std::vector<float>(12, 0.5f)));
  const uint32_t id = g.node("Conv", {"x", "w", ""}, {"y"},
                             {Attr::of_ints("pads", {0, 0, 0, 0}), Attr::of_int("group", 1),
                              Attr::of_string("auto_pad", "NOTSET")},
                             "conv");
  g.output("y");

  EXPECT_EQ(text(api().graph->name(g.get())), "net");
  ASSERT_EQ(api().graph->opset_count(g.get()), 2u);
  pfrt_string domain{};
  int64_t version = 0;
  ASSERT_TRUE(ok(api().graph->opset_at(g.get(), 0, &domain, &version)));
  EXPECT_EQ(text(domain), "");
  EXPECT_EQ(version, 17);
  ASSERT_EQ(api().graph->metadata_count(g.get()), 1u);
  pfrt_key_value entry{};
  ASSERT_TRUE(ok(api().graph->metadata_at(g.get(), 0, &entry)));
  EXPECT_EQ(text(entry.value), "you");

  pfrt_value_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().graph->input_at(g.get(), 0, &info)));
  EXPECT_EQ(text(info.name), "x");
  ASSERT_EQ(info.rank, 4);
  EXPECT_EQ(std::vector<int64_t>(info.dims, info.dims + 4), (std::vector<int64_t>{-1, 3, 8, -1}));
  EXPECT_EQ(text(info.dim_names[0]), "N");
  EXPECT_EQ(text(info.dim_names[1]), "");

  pfrt_node node{};
  node.struct_size = sizeof node;
  ASSERT_EQ(api().graph->node_count(g.get()), 1u);
  ASSERT_TRUE(ok(api().graph->node_at(g.get(), 0, &node)));
  EXPECT_EQ(node.id, id);
  EXPECT_EQ(text(node.name), "conv");
  EXPECT_EQ(text(node.op), "Conv");
  ASSERT_EQ(node.input_count, 3u);
  EXPECT_EQ(text(node.inputs[1]), "w");
  EXPECT_EQ(text(node.inputs[2]), "");
  ASSERT_EQ(node.attr_count, 3u);
  EXPECT_EQ(node.attrs[0].type, uint32_t{PFRT_ATTR_INTS});
  EXPECT_EQ(node.attrs[0].count, 4u);
  EXPECT_EQ(text(node.attrs[2].s), "NOTSET");

  pfrt_string name{};
  pfrt_value* weights = nullptr;
  ASSERT_EQ(api().graph->initializer_count(g.get()), 1u);
  ASSERT_TRUE(ok(api().graph->initializer_at(g.get(), 0, &name, &weights)));
  EXPECT_EQ(text(name), "w");
  EXPECT_EQ(array_of(weights).dims, (std::vector<int64_t>{4, 3, 1, 1}));
}

TEST(Graph, reading_past_the_end_is_an_error) {
  const GraphBuilder g = add_graph();
  pfrt_node node{};
  node.struct_size = sizeof node;
  EXPECT_TRUE(fails(api().graph->node_at(g.get(), 1, &node), PFRT_CODE_INVALID_ARGUMENT, {"1"}));
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  EXPECT_FALSE(ok(api().graph->input_at(g.get(), 7, &info)));
  EXPECT_FALSE(ok(api().graph->output_at(g.get(), 1, &info)));
  EXPECT_TRUE(
      fails(api().graph->value_info(g.get(), str("nix"), &info), PFRT_CODE_NOT_FOUND, {"nix"}));
}

TEST(Graph, validation_reports_all_faults_at_once) {
  GraphBuilder g("broken");
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Add", {"x", "ghost"}, {"a"}, {}, "adder");
  g.node("", {"a"}, {"b"}, {}, "nameless");
  g.output("b");
  g.output("phantom");
  const Failure failure = take(api().graph->validate(g.get()));
  EXPECT_TRUE(fails(failure, PFRT_CODE_VALIDATION, {"broken", "4 faults"}));
  EXPECT_EQ(failure.children.size(), 4u);
  EXPECT_TRUE(has_child(failure, {"'x'", "twice"}));
  EXPECT_TRUE(has_child(failure, {"adder", "ghost"}));
  EXPECT_TRUE(has_child(failure, {"nameless", "no operator"}));
  EXPECT_TRUE(has_child(failure, {"phantom"}));
  // A model is not made of it either.
  const auto env = make_env();
  EXPECT_TRUE(fails(try_model(env.get(), g), PFRT_CODE_VALIDATION, {"broken"}));
}

TEST(Graph, cycle_is_named_by_its_nodes) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Add", {"x", "c"}, {"a"}, {}, "one");
  g.node("Relu", {"a"}, {"b"}, {}, "two");
  g.node("Neg", {"b"}, {"c"}, {}, "three");
  g.node("Relu", {"x"}, {"other"}, {}, "innocent");
  g.output("b");
  const Failure failure = take(api().graph->validate(g.get()));
  EXPECT_TRUE(fails(failure, PFRT_CODE_VALIDATION, {"one", "two", "three"}));
  EXPECT_EQ(failure.message.find("innocent"), std::string::npos) << failure.message;
  const uint32_t* ids = nullptr;
  size_t count = 0;
  EXPECT_TRUE(fails(api().graph->topological_order(g.get(), &ids, &count), PFRT_CODE_VALIDATION,
                    {"one", "two", "three"}));
  EXPECT_EQ(ids, nullptr);
  const auto env = make_env();
  EXPECT_TRUE(fails(try_model(env.get(), g), PFRT_CODE_VALIDATION, {"one"}));
}

TEST(Graph, topological_order_puts_producers_first) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  const uint32_t last = g.node("Neg", {"b"}, {"c"});
  const uint32_t middle = g.node("Relu", {"a"}, {"b"});
  const uint32_t first = g.node("Abs", {"x"}, {"a"});
  g.output("c");
  const uint32_t* ids = nullptr;
  size_t count = 0;
  ASSERT_TRUE(ok(api().graph->topological_order(g.get(), &ids, &count)));
  EXPECT_EQ(std::vector<uint32_t>(ids, ids + count), (std::vector<uint32_t>{first, middle, last}));
}

TEST(Graph, a_value_has_one_producer) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.constant("k", floats({2}, {1, 2}));
  g.node("Relu", {"x"}, {"a"});
  EXPECT_FALSE(ok(g.try_node("Neg", {"x"}, {"a"})));
  EXPECT_FALSE(ok(g.try_node("Neg", {"x"}, {"x"})));
  EXPECT_FALSE(ok(g.try_node("Neg", {"x"}, {"k"})));
  const Array late = floats({1}, {1});
  const pfrt_tensor t = late.view();
  EXPECT_TRUE(fails(api().graph->add_initializer(g.get(), str("a"), &t, 0, nullptr, nullptr),
                    PFRT_CODE_VALIDATION, {"'a'"}));
  EXPECT_EQ(api().graph->node_count(g.get()), 1u);
}

TEST(Graph, edits_keep_node_ids) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  const uint32_t a = g.node("Relu", {"x"}, {"a"});
  const uint32_t b = g.node("LeakyRelu", {"a"}, {"b"}, {Attr::of_float("alpha", 0.5f)});
  const uint32_t c = g.node("Abs", {"a"}, {"c"});
  g.output("b");
  ASSERT_TRUE(ok(api().graph->remove_node(g.get(), c)));
  EXPECT_TRUE(fails(api().graph->remove_node(g.get(), c), PFRT_CODE_NOT_FOUND, {}));
  const uint32_t d = g.node("Abs", {"b"}, {"d"});
  EXPECT_NE(d, c);
  pfrt_attr alpha{};
  alpha.struct_size = sizeof alpha;
  alpha.type = PFRT_ATTR_FLOAT;
  alpha.name = str("alpha");
  alpha.f = 0.25f;
  ASSERT_TRUE(ok(api().graph->set_attr(g.get(), b, &alpha)));
  EXPECT_TRUE(fails(api().graph->set_attr(g.get(), c, &alpha), PFRT_CODE_NOT_FOUND, {}));
  pfrt_node node{};
  node.struct_size = sizeof node;
  ASSERT_TRUE(ok(api().graph->node_at(g.get(), 0, &node)));
  EXPECT_EQ(node.id, a);
  ASSERT_TRUE(ok(api().graph->node_at(g.get(), 1, &node)));
  EXPECT_EQ(node.id, b);
  ASSERT_EQ(node.attr_count, 1u);
  EXPECT_EQ(node.attrs[0].f, 0.25f);
}

TEST(Graph, removed_node_may_be_replaced) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  const uint32_t id = g.node("Relu", {"x"}, {"y"});
  g.output("y");
  ASSERT_TRUE(ok(api().graph->remove_node(g.get(), id)));
  EXPECT_TRUE(fails(api().graph->validate(g.get()), PFRT_CODE_VALIDATION, {"'y'"}));
  g.node("Neg", {"x"}, {"y"});
  const auto session = make_session(env.get(), g);
  EXPECT_EQ(run(session.get(), {floats({2}, {1, -2})})[0].as<float>(), (std::vector<float>{-1, 2}));
}

TEST(Graph, stays_usable_after_a_model_was_made_of_it) {
  const auto env = make_env();
  GraphBuilder g = add_graph();
  const auto model = make_model(env.get(), g);
  g.node("Neg", {"y"}, {"z"});
  g.output("z");
  const auto before = make_session(env.get(), model.get());
  const auto after = make_session(env.get(), g);
  EXPECT_EQ(api().session->output_count(before.get()), 1u);
  EXPECT_EQ(run(after.get(), {floats({1, 3}, {0, 0, 0})})[1].as<float>(),
            (std::vector<float>{-1, -2, -3}));
  pfrt_graph* raw = nullptr;
  ASSERT_TRUE(ok(api().model->graph(model.get(), &raw)));
  const Handle<pfrt_graph> copy(raw);
  EXPECT_EQ(api().graph->node_count(raw), 1u);
  EXPECT_EQ(api().graph->initializer_count(raw), 1u);
}

TEST(Graph, inference_fills_in_inner_values) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3, 32, 32});
  g.constant("w", floats({8, 3, 3, 3}, std::vector<float>(216, 0.1f)));
  g.node("Conv", {"x", "w"}, {"y"}, {Attr::of_ints("strides", {2, 2})});
  g.node("Flatten", {"y"}, {"z"});
  g.output("z");
  ASSERT_TRUE(ok(api().graph->infer_shapes(g.get())));
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().graph->value_info(g.get(), str("y"), &info)));
  ASSERT_EQ(info.rank, 4);
  EXPECT_EQ(std::vector<int64_t>(info.dims, info.dims + 4), (std::vector<int64_t>{-1, 8, 15, 15}));
  EXPECT_EQ(text(info.dim_names[0]), "N");
  ASSERT_TRUE(ok(api().graph->value_info(g.get(), str("z"), &info)));
  EXPECT_EQ(info.dtype, uint32_t{PFRT_DTYPE_FLOAT32});
  EXPECT_EQ(info.dims[1], 1800);
}

TEST(Graph, body_captures_what_it_does_not_define) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Neg", {"x"}, {"r"});
  yes.output("r");
  no.node("Add", {"x", "x"}, {"r2"});
  no.output("r2");
  g.node("If", {"c"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  ASSERT_TRUE(ok(api().graph->validate(g.get())));
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  const Array x = floats({2}, {1, 2});
  Array condition{PFRT_DTYPE_BOOL, {}, {1}};
  EXPECT_EQ(run(session.get(), {condition, x})[0].as<float>(), (std::vector<float>{-1, -2}));
  condition.bytes[0] = 0;
  EXPECT_EQ(run(session.get(), {condition, x})[0].as<float>(), (std::vector<float>{2, 4}));
}

TEST(Graph, body_that_uses_what_nobody_defines_is_a_fault) {
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  GraphBuilder yes(g, "yes"), no(g, "no");
  for (GraphBuilder* body : {&yes, &no}) {
    body->node("Neg", {"nowhere"}, {"r"});
    body->output("r");
  }
  g.node("If", {"c"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  EXPECT_TRUE(fails(api().graph->validate(g.get()), PFRT_CODE_VALIDATION, {"nowhere"}));
}

TEST(Graph, attributes_are_checked_when_they_are_given) {
  GraphBuilder g;
  pfrt_attr attr{};
  attr.struct_size = sizeof attr;
  attr.name = str("a");
  pfrt_node node{};
  node.struct_size = sizeof node;
  node.op = str("Op");
  node.attrs = &attr;
  node.attr_count = 1;
  const auto refuse = [&](pfrt_attr_type type, pfrt_code code) {
    attr.type = type;
    attr.count = 2;
    EXPECT_TRUE(fails(api().graph->add_node(g.get(), &node, nullptr), code, {"'a'"})) << type;
  };
  refuse(PFRT_ATTR_INTS, PFRT_CODE_INVALID_ARGUMENT);
  refuse(PFRT_ATTR_FLOATS, PFRT_CODE_INVALID_ARGUMENT);
  refuse(PFRT_ATTR_STRINGS, PFRT_CODE_INVALID_ARGUMENT);
  refuse(PFRT_ATTR_TENSOR, PFRT_CODE_INVALID_ARGUMENT);
  refuse(PFRT_ATTR_TENSORS, PFRT_CODE_INVALID_ARGUMENT);
  refuse(PFRT_ATTR_GRAPH, PFRT_CODE_INVALID_ARGUMENT);
  refuse(PFRT_ATTR_GRAPHS, PFRT_CODE_INVALID_ARGUMENT);
  refuse(PFRT_ATTR_UNSET, PFRT_CODE_INVALID_ARGUMENT);
  refuse(99, PFRT_CODE_UNSUPPORTED);
  EXPECT_EQ(api().graph->node_count(g.get()), 0u);
}

TEST(Graph, borrowed_initializer_is_released_once) {
  int released = 0;
  const auto count = [](void* user, void*) { ++*static_cast<int*>(user); };
  const Array b = floats({3}, {1, 2, 3});
  const auto env = make_env();
  Handle<pfrt_model> model;
  {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {3});
    const pfrt_tensor t = b.view();
    ASSERT_TRUE(ok(api().graph->add_initializer(g.get(), str("b"), &t, 1, count, &released)));
    g.node("Add", {"x", "b"}, {"y"});
    g.output("y");
    model = make_model(env.get(), g);
  }
  EXPECT_EQ(released, 0);
  auto session = make_session(env.get(), model.get());
  model.reset();
  EXPECT_EQ(run(session.get(), {floats({3}, {1, 1, 1})})[0].as<float>(),
            (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(released, 0);
  session.reset();
  EXPECT_EQ(released, 1);
}

TEST(Graph, initializer_value_is_shared_not_copied) {
  const auto value = value_of(floats({2}, {1, 2}));
  GraphBuilder g;
  ASSERT_TRUE(ok(api().graph->add_initializer_value(g.get(), str("v"), value.get())));
  pfrt_string name{};
  pfrt_value* back = nullptr;
  ASSERT_TRUE(ok(api().graph->initializer_at(g.get(), 0, &name, &back)));
  pfrt_tensor a{}, b{};
  a.struct_size = b.struct_size = sizeof a;
  ASSERT_TRUE(ok(api().value->tensor(value.get(), &a)));
  ASSERT_TRUE(ok(api().value->tensor(back, &b)));
  EXPECT_EQ(a.data, b.data);
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_optional(nullptr, &raw)));
  const Handle<pfrt_value> optional(raw);
  EXPECT_TRUE(fails(api().graph->add_initializer_value(g.get(), str("o"), raw),
                    PFRT_CODE_INVALID_ARGUMENT, {"'o'"}));
}

}  // namespace
}  // namespace pfrt_test
