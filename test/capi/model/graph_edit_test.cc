// SPDX-License-Identifier: Apache-2.0
//
// Edits of graphs: their effects, the parts that they leave alone, and the edits that are refused.
#include <set>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

const pfrt_graph_api& graphs() { return *api().graph; }

pfrt_node node_at(const pfrt_graph* g, uint32_t id) {
  pfrt_node node{};
  node.struct_size = sizeof node;
  EXPECT_TRUE(ok(graphs().node_by_id(g, id, &node)));
  return node;
}

std::vector<std::string> texts(const pfrt_string* strings, size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.push_back(text(strings[i]));
  return out;
}
std::vector<std::string> inputs_of(const pfrt_graph* g, uint32_t id) {
  const pfrt_node node = node_at(g, id);
  return texts(node.inputs, node.input_count);
}
std::vector<std::string> outputs_of(const pfrt_graph* g, uint32_t id) {
  const pfrt_node node = node_at(g, id);
  return texts(node.outputs, node.output_count);
}

using Words = std::vector<std::string>;

std::vector<pfrt_string> strings(const Words& words) {
  std::vector<pfrt_string> out;
  for (const std::string& word : words) out.push_back(str(word));
  return out;
}
Failure set_inputs(pfrt_graph* g, uint32_t id, const Words& names) {
  const auto s = strings(names);
  return take(graphs().set_node_inputs(g, id, s.data(), s.size()));
}
Failure set_outputs(pfrt_graph* g, uint32_t id, const Words& names) {
  const auto s = strings(names);
  return take(graphs().set_node_outputs(g, id, s.data(), s.size()));
}
Failure replace_uses(pfrt_graph* g, const char* from, const char* to,
                     uint32_t except = PFRT_NO_NODE) {
  return take(graphs().replace_uses(g, str(from), str(to), except));
}

std::vector<uint32_t> consumers(pfrt_graph* g, const char* value) {
  const uint32_t* ids = nullptr;
  size_t count = 0;
  EXPECT_TRUE(ok(graphs().consumers(g, str(value), &ids, &count)));
  return {ids, ids + count};
}

std::vector<std::string> output_names(const pfrt_graph* g) {
  std::vector<std::string> out;
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  for (size_t i = 0; i < graphs().output_count(g); ++i) {
    EXPECT_TRUE(ok(graphs().output_at(g, i, &info)));
    out.push_back(text(info.name));
  }
  return out;
}

Handle<pfrt_graph> clone(const pfrt_graph* g) {
  pfrt_graph* raw = nullptr;
  EXPECT_TRUE(ok(graphs().clone(g, &raw)));
  return Handle<pfrt_graph>(raw);
}

pfrt_value_info info_of(const char* name) {
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.name = str(name);
  info.rank = -1;
  return info;
}

// x -> Relu -> a -> Neg -> b (output).
struct Chain {
  GraphBuilder g;
  uint32_t relu, neg;
  Chain() {
    g.input("x", PFRT_DTYPE_FLOAT32, {2});
    relu = g.node("Relu", {"x"}, {"a"}, {}, "first");
    neg = g.node("Neg", {"a"}, {"b"}, {}, "second");
    g.output("b");
  }
  std::vector<float> run(const std::vector<float>& x) const {
    const auto env = make_env();
    const auto session = make_session(env.get(), g);
    return session ? pfrt_test::run(session.get(), {floats({2}, x)})[0].as<float>()
                   : std::vector<float>();
  }
};

TEST(GraphEdit, nodes_are_found_by_id_and_name) {
  Chain c;
  EXPECT_EQ(text(node_at(c.g.get(), c.neg).op), "Neg");
  uint32_t id = 7;
  ASSERT_TRUE(ok(graphs().find_node(c.g.get(), str("second"), &id)));
  EXPECT_EQ(id, c.neg);
  EXPECT_TRUE(
      fails(graphs().find_node(c.g.get(), str("third"), &id), PFRT_CODE_NOT_FOUND, {"third"}));
  EXPECT_EQ(id, PFRT_NO_NODE);
  pfrt_node node{};
  node.struct_size = sizeof node;
  for (uint32_t absent : {99u, PFRT_NO_NODE})
    EXPECT_TRUE(fails(graphs().node_by_id(c.g.get(), absent, &node), PFRT_CODE_NOT_FOUND, {}));
  ASSERT_TRUE(ok(graphs().producer(c.g.get(), str("b"), &id)));
  EXPECT_EQ(id, c.neg);
  ASSERT_TRUE(ok(graphs().producer(c.g.get(), str("x"), &id)));
  EXPECT_EQ(id, PFRT_NO_NODE);
  EXPECT_FALSE(ok(graphs().producer(c.g.get(), str("nowhere"), &id)));
}

TEST(GraphEdit, a_clone_and_the_graph_of_a_model_keep_ids) {
  Chain c;
  ASSERT_TRUE(ok(graphs().remove_node(c.g.get(), c.relu)));
  const uint32_t abs = c.g.node("Abs", {"x"}, {"a"});
  const auto copy = clone(c.g.get());
  EXPECT_EQ(text(node_at(copy.get(), abs).op), "Abs");
  const auto env = make_env();
  const auto model = make_model(env.get(), c.g);
  pfrt_graph* raw = nullptr;
  ASSERT_TRUE(ok(api().model->graph(model.get(), &raw)));
  const Handle<pfrt_graph> back(raw);
  EXPECT_EQ(text(node_at(raw, abs).op), "Abs");
  // A removed id stays removed in the copy too.
  pfrt_node node{};
  node.struct_size = sizeof node;
  EXPECT_FALSE(ok(graphs().node_by_id(raw, c.relu, &node)));
}

TEST(GraphEdit, a_walk_skips_the_removed_and_meets_the_added_once) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  std::vector<uint32_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(g.node("Relu", {"x"}, {"v" + std::to_string(i)}));
  std::vector<uint32_t> met;
  uint32_t added = PFRT_NO_NODE;
  for (uint32_t id = graphs().next_node(g.get(), PFRT_NO_NODE); id != PFRT_NO_NODE;
       id = graphs().next_node(g.get(), id)) {
    met.push_back(id);
    if (id == ids[1]) {
      ASSERT_TRUE(ok(graphs().remove_node(g.get(), ids[1])));  // the walk's position
      ASSERT_TRUE(ok(graphs().remove_node(g.get(), ids[3])));  // ahead of it
      ASSERT_TRUE(ok(graphs().remove_node(g.get(), ids[0])));  // behind it
      added = g.node("Abs", {"x"}, {"w"});
    }
  }
  EXPECT_EQ(met, (std::vector<uint32_t>{ids[0], ids[1], ids[2], ids[4], added}));
  EXPECT_EQ(graphs().node_count(g.get()), 3u);
}

TEST(GraphEdit, names_inputs_and_outputs_of_nodes) {
  Chain c;
  pfrt_graph* g = c.g.get();
  ASSERT_TRUE(ok(graphs().rename_node(g, c.relu, str("renamed"))));
  EXPECT_EQ(text(node_at(g, c.relu).name), "renamed");
  ASSERT_TRUE(ok(set_outputs(g, c.relu, {"z"})));
  EXPECT_EQ(outputs_of(g, c.relu), Words{"z"});
  EXPECT_TRUE(fails(take(graphs().validate(g)), PFRT_CODE_VALIDATION, {"'a'"}));
  ASSERT_TRUE(ok(set_inputs(g, c.neg, {"z"})));
  EXPECT_TRUE(ok(graphs().validate(g)));
  EXPECT_EQ(c.run({-1, 2}), (std::vector<float>{0, -2}));
  // A node may keep its own output's name; another node's, an input's, and a repeated name are
  // conflicts.
  EXPECT_TRUE(ok(set_outputs(g, c.relu, {"z"})));
  EXPECT_TRUE(fails(set_outputs(g, c.relu, {"b"}), PFRT_CODE_VALIDATION, {"'b'", "second"}));
  EXPECT_TRUE(fails(set_outputs(g, c.relu, {"x"}), PFRT_CODE_VALIDATION, {"'x'", "input"}));
  EXPECT_TRUE(fails(set_outputs(g, c.relu, {"q", "q"}), PFRT_CODE_VALIDATION, {"'q'", "twice"}));
  EXPECT_EQ(outputs_of(g, c.relu), Words{"z"});
  EXPECT_TRUE(fails(set_inputs(g, 99, {}), PFRT_CODE_NOT_FOUND, {"99"}));
  EXPECT_FALSE(ok(graphs().set_node_inputs(g, c.neg, nullptr, 1)));
  EXPECT_FALSE(ok(c.g.try_node("Split", {"x"}, {"p", "p"})));
}

TEST(GraphEdit, attributes_go) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1});
  const uint32_t id = g.node("LeakyRelu", {"x"}, {"y"}, {Attr::of_float("alpha", 0.5f)});
  g.output("y");
  ASSERT_TRUE(ok(graphs().remove_attr(g.get(), id, str("alpha"))));
  EXPECT_EQ(node_at(g.get(), id).attr_count, 0u);
  EXPECT_TRUE(
      fails(graphs().remove_attr(g.get(), id, str("alpha")), PFRT_CODE_NOT_FOUND, {"alpha"}));
  const auto env = make_env();
  const auto session = make_session(env.get(), g);
  EXPECT_FLOAT_EQ(run(session.get(), {floats({1}, {-1})})[0].as<float>()[0], -0.01f);
}

TEST(GraphEdit, a_node_is_put_behind_a_value) {
  Chain c;
  // This goes behind an inner value.
  const uint32_t abs = c.g.node("Abs", {"a"}, {"t"});
  ASSERT_TRUE(ok(replace_uses(c.g.get(), "a", "t", abs)));
  EXPECT_EQ(inputs_of(c.g.get(), c.neg), Words{"t"});
  EXPECT_EQ(inputs_of(c.g.get(), abs), Words{"a"});
  EXPECT_EQ(consumers(c.g.get(), "a"), std::vector<uint32_t>{abs});
  // This goes behind a graph output, which keeps its name.
  const uint32_t exp = c.g.node("Add", {"b", "b"}, {"u"});
  ASSERT_TRUE(ok(replace_uses(c.g.get(), "b", "u", exp)));
  EXPECT_EQ(output_names(c.g.get()), Words{"b"});
  EXPECT_EQ(outputs_of(c.g.get(), exp), Words{"b"});
  EXPECT_EQ(inputs_of(c.g.get(), exp), (Words{"u", "u"}));
  EXPECT_EQ(outputs_of(c.g.get(), c.neg), Words{"u"});
  EXPECT_TRUE(ok(graphs().validate(c.g.get())));
  EXPECT_EQ(c.run({-1, 2}), (std::vector<float>{0, -4}));
}

TEST(GraphEdit, uses_of_an_output_pass_to_an_input_by_its_name) {
  Chain c;
  ASSERT_TRUE(ok(replace_uses(c.g.get(), "b", "x")));
  EXPECT_EQ(output_names(c.g.get()), Words{"x"});
  ASSERT_TRUE(ok(replace_uses(c.g.get(), "a", "a")));
  EXPECT_TRUE(fails(replace_uses(c.g.get(), "nope", "a"), PFRT_CODE_NOT_FOUND, {"nope"}));
  EXPECT_TRUE(fails(replace_uses(c.g.get(), "a", "nope"), PFRT_CODE_NOT_FOUND, {"nope"}));
  EXPECT_TRUE(fails(replace_uses(c.g.get(), "a", "b", 99), PFRT_CODE_NOT_FOUND, {"99"}));
}

TEST(GraphEdit, values_are_renamed_wherever_they_are_used) {
  Chain c;
  ASSERT_TRUE(ok(graphs().rename_value(c.g.get(), str("a"), str("inner"))));
  ASSERT_TRUE(ok(graphs().rename_value(c.g.get(), str("b"), str("result"))));
  ASSERT_TRUE(ok(graphs().rename_value(c.g.get(), str("x"), str("data"))));
  EXPECT_EQ(inputs_of(c.g.get(), c.relu), Words{"data"});
  EXPECT_EQ(inputs_of(c.g.get(), c.neg), Words{"inner"});
  EXPECT_EQ(output_names(c.g.get()), Words{"result"});
  EXPECT_TRUE(fails(graphs().rename_value(c.g.get(), str("inner"), str("data")),
                    PFRT_CODE_VALIDATION, {"'data'"}));
  EXPECT_FALSE(ok(graphs().rename_value(c.g.get(), str("inner"), str(""))));
  EXPECT_FALSE(ok(graphs().rename_value(c.g.get(), str("a"), str("q"))));
  // The old name is free again.
  c.g.node("Abs", {"inner"}, {"a"});
  EXPECT_TRUE(ok(graphs().validate(c.g.get())));
}

TEST(GraphEdit, inputs_and_outputs_are_replaced_and_removed_in_place) {
  GraphBuilder g;
  for (const char* name : {"p", "q", "r"}) g.input(name, PFRT_DTYPE_FLOAT32, {2});
  g.node("Add", {"p", "r"}, {"s"});
  g.node("Neg", {"s"}, {"t"});
  g.output("s");
  g.output("t");
  ASSERT_TRUE(ok(graphs().remove_input(g.get(), 1)));
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(graphs().input_at(g.get(), 1, &info)));
  EXPECT_EQ(text(info.name), "r");
  EXPECT_TRUE(fails(graphs().remove_input(g.get(), 2), PFRT_CODE_INVALID_ARGUMENT, {"2"}));

  const int64_t dims[] = {5};
  pfrt_value_info wider = info_of("r");
  wider.kind = PFRT_VALUE_TENSOR;
  wider.dtype = PFRT_DTYPE_FLOAT64;
  wider.rank = 1;
  wider.dims = dims;
  ASSERT_TRUE(ok(graphs().replace_input(g.get(), 1, &wider)));
  ASSERT_TRUE(ok(graphs().input_at(g.get(), 1, &info)));
  EXPECT_EQ(info.dtype, uint32_t{PFRT_DTYPE_FLOAT64});
  EXPECT_EQ(info.dims[0], 5);
  const pfrt_value_info made = info_of("s");
  EXPECT_TRUE(fails(graphs().replace_input(g.get(), 1, &made), PFRT_CODE_VALIDATION, {"'s'"}));

  const pfrt_value_info t = info_of("t");
  ASSERT_TRUE(ok(graphs().replace_output(g.get(), 0, &t)));
  ASSERT_TRUE(ok(graphs().remove_output(g.get(), 1)));
  EXPECT_EQ(output_names(g.get()), Words{"t"});
  EXPECT_FALSE(ok(graphs().replace_output(g.get(), 1, &t)));
  EXPECT_FALSE(ok(graphs().remove_output(g.get(), 1)));
}

TEST(GraphEdit, opsets_metadata_and_names_change) {
  GraphBuilder g("before");
  g.opset(17);
  g.opset(1, "com.microsoft");
  ASSERT_TRUE(ok(graphs().set_metadata(g.get(), str("k"), str("v"))));
  ASSERT_TRUE(ok(graphs().set_name(g.get(), str("after"))));
  ASSERT_TRUE(ok(graphs().remove_opset(g.get(), str("com.microsoft"))));
  ASSERT_TRUE(ok(graphs().remove_metadata(g.get(), str("k"))));
  EXPECT_EQ(text(graphs().name(g.get())), "after");
  EXPECT_EQ(graphs().opset_count(g.get()), 1u);
  EXPECT_EQ(graphs().metadata_count(g.get()), 0u);
  EXPECT_TRUE(fails(graphs().remove_opset(g.get(), str("com.microsoft")), PFRT_CODE_NOT_FOUND, {}));
  EXPECT_TRUE(fails(graphs().remove_metadata(g.get(), str("k")), PFRT_CODE_NOT_FOUND, {"'k'"}));
}

// ---- initializers ----

float* bytes_of(pfrt_value* value) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  EXPECT_TRUE(ok(api().value->tensor(value, &t)));
  return static_cast<float*>(t.data);
}

pfrt_value* for_write(pfrt_graph* g, const char* name) {
  pfrt_value* value = nullptr;
  EXPECT_TRUE(ok(graphs().initializer_for_write(g, str(name), &value)));
  return value;
}

TEST(GraphEdit, writing_an_initializer_copies_what_is_shared) {
  const auto env = make_env();
  GraphBuilder built = add_graph();
  const auto model = make_model(env.get(), built);
  const auto session = make_session(env.get(), model.get());
  const auto sum = [](pfrt_session* s) {
    return run(s, {floats({1, 3}, {0, 0, 0})})[0].as<float>();
  };
  pfrt_graph* raw = nullptr;
  ASSERT_TRUE(ok(api().model->graph(model.get(), &raw)));
  const Handle<pfrt_graph> edited(raw);

  pfrt_value* before = nullptr;
  ASSERT_TRUE(ok(graphs().initializer(raw, str("b"), &before)));
  const float* shared = bytes_of(before);
  pfrt_value* own = for_write(raw, "b");
  EXPECT_NE(bytes_of(own), shared);
  bytes_of(own)[0] = 100;
  // It is not copied again while nobody else has it.
  EXPECT_EQ(bytes_of(for_write(raw, "b")), bytes_of(own));
  EXPECT_EQ(sum(session.get()), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(sum(make_session(env.get(), model.get()).get()), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(sum(make_session(env.get(), built).get()), (std::vector<float>{1, 2, 3}));

  // A model of the edited graph shares it, so that the next write copies anew.
  pfrt_model* second_raw = nullptr;
  ASSERT_TRUE(ok(api().model->from_graph(env.get(), raw, nullptr, &second_raw)));
  const Handle<pfrt_model> second(second_raw);
  bytes_of(for_write(raw, "b"))[0] = 200;
  EXPECT_EQ(sum(make_session(env.get(), second.get()).get()), (std::vector<float>{100, 2, 3}));
  const auto copy = clone(raw);
  bytes_of(for_write(raw, "b"))[0] = 300;
  EXPECT_EQ(bytes_of(for_write(copy.get(), "b"))[0], 200);

  // Retaining the value makes the next write copy, too.
  own = for_write(raw, "b");
  api().value->retain(own);
  const Handle<pfrt_value> kept(own);
  bytes_of(for_write(raw, "b"))[0] = 400;
  EXPECT_EQ(bytes_of(kept.get())[0], 300);
}

TEST(GraphEdit, borrowed_memory_is_copied_before_it_is_written) {
  const std::vector<float> memory{1, 2};
  GraphBuilder g;
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = PFRT_DTYPE_FLOAT32;
  t.rank = 1;
  const int64_t dims[] = {2};
  t.dims = dims;
  t.data = const_cast<float*>(memory.data());
  t.bytes = 8;
  ASSERT_TRUE(ok(graphs().add_initializer(g.get(), str("w"), &t, 1, nullptr, nullptr)));
  bytes_of(for_write(g.get(), "w"))[0] = 9;
  EXPECT_EQ(memory[0], 1.0f);
}

TEST(GraphEdit, initializers_are_replaced_and_removed_by_name) {
  GraphBuilder g = add_graph();
  g.constant("b", floats({3}, {5, 5, 5}));
  EXPECT_EQ(graphs().initializer_count(g.get()), 1u);
  pfrt_value* value = nullptr;
  ASSERT_TRUE(ok(graphs().initializer(g.get(), str("b"), &value)));
  EXPECT_EQ(array_of(value).as<float>()[0], 5.0f);
  ASSERT_TRUE(ok(graphs().remove_initializer(g.get(), str("b"))));
  EXPECT_EQ(graphs().initializer_count(g.get()), 0u);
  EXPECT_TRUE(fails(graphs().remove_initializer(g.get(), str("b")), PFRT_CODE_NOT_FOUND, {"'b'"}));
  EXPECT_TRUE(fails(graphs().initializer(g.get(), str("b"), &value), PFRT_CODE_NOT_FOUND, {"'b'"}));
  EXPECT_EQ(value, nullptr);
  EXPECT_FALSE(ok(graphs().initializer_for_write(g.get(), str("x"), &value)));
  EXPECT_TRUE(fails(take(graphs().validate(g.get())), PFRT_CODE_VALIDATION, {"'b'"}));
}

// ---- bodies ----

// y = c ? f(a) : g(a) over x -> Abs -> a; the bodies capture a.
struct Choice {
  GraphBuilder g;
  uint32_t abs, choose;
  Choice() {
    g.input("c", PFRT_DTYPE_BOOL, {});
    g.input("x", PFRT_DTYPE_FLOAT32, {2});
    abs = g.node("Abs", {"x"}, {"a"});
    GraphBuilder yes(g, "yes"), no(g, "no");
    yes.node("Neg", {"a"}, {"r"});
    yes.output("r");
    no.node("Add", {"a", "a"}, {"r2"});
    no.output("r2");
    choose =
        g.node("If", {"c"}, {"y"},
               {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
    g.output("y");
  }
  pfrt_graph* body(size_t i) const { return node_at(g.get(), choose).attrs[i].graph; }
  std::vector<float> run(bool which, const std::vector<float>& x) const {
    const auto env = make_env();
    const auto session = make_session(env.get(), g);
    if (!session) return {};
    const Array condition{PFRT_DTYPE_BOOL, {}, {static_cast<char>(which)}};
    return pfrt_test::run(session.get(), {condition, floats({2}, x)})[0].as<float>();
  }
};

TEST(GraphEdit, bodies_follow_what_happens_around_them) {
  Choice c;
  EXPECT_EQ(consumers(c.g.get(), "a"), std::vector<uint32_t>{c.choose});
  // After a renaming the bodies read the same value.
  ASSERT_TRUE(ok(graphs().rename_value(c.g.get(), str("a"), str("magnitude"))));
  EXPECT_EQ(inputs_of(c.body(0), 0), Words{"magnitude"});
  EXPECT_EQ(c.run(true, {-1, 2}), (std::vector<float>{-1, -2}));
  // After a replacement they read another.
  c.g.node("Floor", {"x"}, {"f"});
  ASSERT_TRUE(ok(replace_uses(c.g.get(), "magnitude", "f")));
  EXPECT_EQ(inputs_of(c.body(1), 0), (Words{"f", "f"}));
  EXPECT_EQ(c.run(false, {-1.5f, 2}), (std::vector<float>{-4, 4}));
  EXPECT_EQ(c.run(true, {-1.5f, 2}), (std::vector<float>{2, -2}));
}

TEST(GraphEdit, a_name_that_a_body_has_itself_cannot_be_captured) {
  Choice c;
  EXPECT_TRUE(fails(graphs().rename_value(c.g.get(), str("a"), str("r")), PFRT_CODE_VALIDATION,
                    {"'yes'", "'r'"}));
  // The refused edit changed nothing.
  EXPECT_EQ(outputs_of(c.g.get(), c.abs), Words{"a"});
  EXPECT_EQ(inputs_of(c.body(1), 0), (Words{"a", "a"}));
  EXPECT_EQ(c.run(true, {-1, 2}), (std::vector<float>{-1, -2}));
  c.g.node("Floor", {"x"}, {"r2"});
  EXPECT_TRUE(fails(replace_uses(c.g.get(), "a", "r2"), PFRT_CODE_VALIDATION, {"'no'", "'r2'"}));
  EXPECT_EQ(inputs_of(c.body(0), 0), Words{"a"});
}

TEST(GraphEdit, an_output_that_bodies_use_swaps_its_name_with_them) {
  Choice c;
  ASSERT_TRUE(ok(graphs().add_output(c.g.get(), [] {
    static pfrt_value_info info;
    info = info_of("a");
    return &info;
  }())));
  const uint32_t ceil = c.g.node("Ceil", {"a"}, {"up"});
  ASSERT_TRUE(ok(replace_uses(c.g.get(), "a", "up", ceil)));
  EXPECT_EQ(output_names(c.g.get()), (Words{"y", "a"}));
  EXPECT_EQ(inputs_of(c.g.get(), ceil), Words{"up"});
  EXPECT_EQ(outputs_of(c.g.get(), ceil), Words{"a"});
  EXPECT_EQ(inputs_of(c.body(0), 0), Words{"a"});
  EXPECT_EQ(c.run(true, {-1.5f, 2}), (std::vector<float>{-2, -2}));
}

TEST(GraphEdit, a_body_is_edited_in_place) {
  Choice c;
  pfrt_graph* yes = c.body(0);
  const uint32_t neg = graphs().next_node(yes, PFRT_NO_NODE);
  pfrt_node node{};
  node.struct_size = sizeof node;
  node.op = str("Floor");
  const pfrt_string in = str("r"), out = str("floored");
  node.inputs = &in;
  node.outputs = &out;
  node.input_count = node.output_count = 1;
  uint32_t added = 0;
  ASSERT_TRUE(ok(graphs().add_node(yes, &node, &added)));
  ASSERT_TRUE(ok(replace_uses(yes, "r", "floored", added)));
  EXPECT_EQ(outputs_of(yes, added), Words{"r"});
  EXPECT_EQ(inputs_of(yes, neg), Words{"a"});
  EXPECT_EQ(c.run(true, {-1.5f, 2}), (std::vector<float>{-2, -2}));
}

TEST(GraphEdit, handles_of_one_body_see_each_others_edits) {
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  GraphBuilder yes(g, "yes");
  const uint32_t id = yes.node("Neg", {"x"}, {"r"});
  yes.output("r");
  const uint32_t choose =
      g.node("If", {"c"}, {"y"},
             {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", yes.get())});
  EXPECT_EQ(inputs_of(yes.get(), id), Words{"x"});
  pfrt_graph* again = node_at(g.get(), choose).attrs[0].graph;
  ASSERT_TRUE(ok(set_inputs(again, id, {"a much longer name than before"})));
  EXPECT_EQ(inputs_of(yes.get(), id), Words{"a much longer name than before"});
  ASSERT_TRUE(ok(graphs().remove_node(again, id)));
  EXPECT_EQ(graphs().node_count(yes.get()), 0u);
}

TEST(GraphEdit, no_graph_comes_to_be_inside_itself) {
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  GraphBuilder body(g, "body"), inner(body, "inner"), stranger("stranger");
  const auto put = [](GraphBuilder& into, GraphBuilder& what) {
    return into.try_node("If", {"c"}, {"y"}, {Attr::of_graph("then_branch", what.get())});
  };
  EXPECT_TRUE(fails(put(body, body), PFRT_CODE_INVALID_ARGUMENT, {"then_branch", "'body'"}));
  EXPECT_TRUE(fails(put(inner, body), PFRT_CODE_INVALID_ARGUMENT, {"'body'"}));
  EXPECT_TRUE(fails(put(body, g), PFRT_CODE_INVALID_ARGUMENT, {}));
  EXPECT_TRUE(fails(put(g, stranger), PFRT_CODE_INVALID_ARGUMENT, {"'stranger'"}));
  EXPECT_TRUE(ok(put(body, inner)));
  EXPECT_TRUE(ok(put(g, body)));
}

TEST(GraphEdit, bodies_nest_only_so_deep) {
  GraphBuilder g;
  std::vector<Handle<pfrt_graph>> all;
  pfrt_graph* at = g.get();
  Failure failure;
  for (int depth = 1; depth <= 65; ++depth) {
    pfrt_graph* body = nullptr;
    failure = take(graphs().create_subgraph(at, str("deep"), &body));
    if (!failure.ok()) {
      EXPECT_EQ(depth, 65);
      EXPECT_EQ(body, nullptr);
      break;
    }
    all.emplace_back(body);
    at = body;
  }
  EXPECT_TRUE(fails(failure, PFRT_CODE_INVALID_ARGUMENT, {"64"}));
}

TEST(GraphEdit, a_body_alone_is_no_model) {
  const auto env = make_env();
  Choice c;
  ASSERT_TRUE(ok(graphs().validate(c.g.get())));
  pfrt_model* model = nullptr;
  EXPECT_TRUE(fails(api().model->from_graph(env.get(), c.body(0), nullptr, &model),
                    PFRT_CODE_VALIDATION, {"'a'"}));
  EXPECT_EQ(model, nullptr);
}

TEST(GraphEdit, views_outlive_calls_that_do_not_edit) {
  Choice c;
  const pfrt_node node = node_at(c.g.get(), c.choose);
  const pfrt_node inner = node_at(node.attrs[0].graph, 0);
  ASSERT_TRUE(ok(graphs().validate(c.g.get())));
  const uint32_t* ids = nullptr;
  size_t count = 0;
  ASSERT_TRUE(ok(graphs().topological_order(c.g.get(), &ids, &count)));
  consumers(c.g.get(), "x");
  EXPECT_EQ(text(node.inputs[0]), "c");
  EXPECT_EQ(text(inner.inputs[0]), "a");
  EXPECT_EQ(ids[count - 1], c.choose);
}

// ---- validation ----

bool has_fault(const Failure& failure, std::initializer_list<std::string_view> parts) {
  for (const Failure& child : failure.children) {
    bool all = true;
    for (std::string_view part : parts) all &= child.message.find(part) != std::string::npos;
    if (all) return true;
  }
  return false;
}

TEST(GraphEdit, every_kind_of_fault_is_in_one_list) {
  GraphBuilder g("broken");
  g.opset(17);
  g.input("x", PFRT_DTYPE_FLOAT32, {2, 3});
  g.input("x", PFRT_DTYPE_FLOAT32, {2, 3});
  g.input("n", PFRT_DTYPE_INT64, {2, 3});
  g.input("w", PFRT_DTYPE_FLOAT32, {7, 5});
  g.node("Relu", {"ghost"}, {"r"}, {}, "orphan");
  g.node("Frobnicate", {"x"}, {"f"}, {}, "unknown");
  g.node("Relu", {"x", "x", "x"}, {"q"}, {}, "crowded");
  g.node("LeakyRelu", {"x"}, {"l"}, {Attr::of_int("alpha", 1)}, "mistyped");
  g.node("MatMul", {"x", "w"}, {"m"}, {}, "misshapen");
  g.node("Add", {"s2", "x"}, {"s1"}, {}, "one");
  g.node("Add", {"s1", "x"}, {"s2"}, {}, "two");
  g.output("m");
  g.output("phantom");
  const auto env = make_env();
  for (pfrt_env* with : {env.get(), static_cast<pfrt_env*>(nullptr)}) {
    const Failure failure = take(graphs().validate_all(g.get(), with));
    EXPECT_TRUE(fails(failure, PFRT_CODE_VALIDATION, {"broken", "faults"}));
    EXPECT_TRUE(has_fault(failure, {"'x'", "twice"}));
    EXPECT_TRUE(has_fault(failure, {"orphan", "ghost"}));
    EXPECT_TRUE(has_fault(failure, {"phantom"}));
    EXPECT_TRUE(has_fault(failure, {"one", "two", "cycle"}));
    EXPECT_TRUE(has_fault(failure, {"unknown", "Frobnicate"}));
    EXPECT_TRUE(has_fault(failure, {"crowded", "3 inputs"}));
    EXPECT_TRUE(has_fault(failure, {"mistyped", "alpha", "must be a float"}));
    EXPECT_EQ(failure.children.size(), 7u);
  }
}

TEST(GraphEdit, types_and_shapes_that_contradict_each_other_are_all_faults) {
  GraphBuilder g("shapes");
  g.input("x", PFRT_DTYPE_FLOAT32, {2, 3});
  g.input("w", PFRT_DTYPE_FLOAT32, {7, 5});
  g.node("MatMul", {"x", "w"}, {"m"}, {}, "misshapen");
  g.node("Relu", {"m"}, {"after"});
  g.node("Concat", {"x", "w"}, {"k"}, {Attr::of_int("axis", 0)}, "unequal");
  g.node("Relu", {"x"}, {"r"}, {}, "declared");
  g.node("Frobnicate", {"x"}, {"f"}, {}, "unknown");
  const int64_t dims[] = {2, 4};
  pfrt_value_info info = info_of("r");
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.rank = 2;
  info.dims = dims;
  ASSERT_TRUE(ok(graphs().add_output(g.get(), &info)));
  g.output("after");
  g.output("k");
  const Failure failure = take(graphs().validate_all(g.get(), nullptr));
  EXPECT_TRUE(fails(failure, PFRT_CODE_VALIDATION, {"shapes", "4 faults"}));
  EXPECT_TRUE(has_fault(failure, {"misshapen"}));
  EXPECT_TRUE(has_fault(failure, {"unequal"}));
  EXPECT_TRUE(has_fault(failure, {"declared", "[2,4]", "[2,3]"}));
  EXPECT_TRUE(has_fault(failure, {"Frobnicate"}));
}

TEST(GraphEdit, what_is_right_has_no_faults) {
  Chain chain;
  EXPECT_TRUE(ok(graphs().validate_all(chain.g.get(), nullptr)));
  Choice choice;
  EXPECT_TRUE(ok(graphs().validate_all(choice.g.get(), nullptr)));
  EXPECT_TRUE(ok(graphs().validate_all(add_graph().get(), nullptr)));
  EXPECT_EQ(choice.run(true, {-1, 2}), (std::vector<float>{-1, -2}));
}

TEST(GraphEdit, null_arguments_are_refused) {
  Chain c;
  pfrt_graph* g = c.g.get();
  EXPECT_FALSE(ok(graphs().clone(g, nullptr)));
  EXPECT_FALSE(ok(graphs().set_name(nullptr, str("n"))));
  EXPECT_FALSE(ok(graphs().node_by_id(g, 0, nullptr)));
  EXPECT_EQ(graphs().next_node(nullptr, PFRT_NO_NODE), PFRT_NO_NODE);
  EXPECT_FALSE(ok(graphs().consumers(g, str("a"), nullptr, nullptr)));
  EXPECT_FALSE(ok(graphs().replace_input(g, 0, nullptr)));
  EXPECT_FALSE(ok(graphs().replace_output(g, 0, nullptr)));
  EXPECT_FALSE(ok(graphs().initializer(g, str("a"), nullptr)));
  EXPECT_FALSE(ok(graphs().validate_all(nullptr, nullptr)));
}

}  // namespace
}  // namespace pfrt_test
