// SPDX-License-Identifier: Apache-2.0
//
// Parts of graphs that run alone: cut at any value, the two parts together compute the results of
// the whole.
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

using Words = std::vector<std::string>;

Failure try_extract(const pfrt_graph* graph, const Words& inputs, const Words& outputs,
                    Handle<pfrt_graph>* out = nullptr) {
  std::vector<pfrt_string> from, to;
  for (const std::string& name : inputs) from.push_back(str(name));
  for (const std::string& name : outputs) to.push_back(str(name));
  pfrt_graph* raw = nullptr;
  Failure failure =
      take(api().graph->extract(graph, from.data(), from.size(), to.data(), to.size(), &raw));
  Handle<pfrt_graph> part(raw);
  EXPECT_EQ(failure.ok(), raw != nullptr);
  if (out) *out = std::move(part);
  return failure;
}

Handle<pfrt_graph> extract(const pfrt_graph* graph, const Words& inputs, const Words& outputs) {
  Handle<pfrt_graph> out;
  EXPECT_TRUE(ok(try_extract(graph, inputs, outputs, &out)));
  return out;
}

Words inputs_of(const pfrt_graph* graph) {
  Words out;
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  for (size_t i = 0; i < api().graph->input_count(graph); ++i) {
    EXPECT_TRUE(ok(api().graph->input_at(graph, i, &info)));
    out.push_back(text(info.name));
  }
  return out;
}

class Extract : public testing::Test {
 protected:
  Handle<pfrt_session> session(pfrt_graph* graph) {
    pfrt_model* model = nullptr;
    EXPECT_TRUE(ok(api().model->from_graph(env_.get(), graph, nullptr, &model)));
    const Handle<pfrt_model> owned(model);
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", "none"}});
    return make_session(env_.get(), model, options.get());
  }
  Handle<pfrt_env> env_ = make_env();
};

// a, b = halves of x; y = Relu(a) W + b c; If's branches read y's square from outside.
GraphBuilder forked() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 8});
  g.input("on", PFRT_DTYPE_BOOL, {});
  g.constant("w", floats({4, 4}, random_floats(16, 1)));
  g.constant("c", floats({4}, random_floats(4, 2)));
  g.constant("idle", floats({1}, {7}));
  g.node("Split", {"x"}, {"a", "b"}, {Attr::of_int("axis", 1), Attr::of_int("num_outputs", 2)});
  g.node("Relu", {"a"}, {"r"});
  g.node("MatMul", {"r", "w"}, {"m"});
  g.node("Mul", {"b", "c"}, {"p"});
  g.node("Add", {"m", "p"}, {"y"});
  g.node("Mul", {"y", "y"}, {"s"});
  GraphBuilder then(g, "then"), other(g, "else");
  then.node("Neg", {"s"}, {"negated"});
  then.output("negated");
  other.node("Sqrt", {"s"}, {"rooted"});
  other.output("rooted");
  g.node("If", {"on"}, {"z"},
         {Attr::of_graph("then_branch", then.get()), Attr::of_graph("else_branch", other.get())});
  g.output("z");
  g.output("p");
  return g;
}

TEST_F(Extract, both_sides_of_any_value_compute_what_the_whole_does) {
  const GraphBuilder whole = forked();
  const Array x = floats({3, 8}, random_floats(24, 5));
  for (const bool condition : {true, false}) {
    Array yes;
    yes.dtype = PFRT_DTYPE_BOOL;
    yes.bytes.assign(1, condition);
    const auto want = run(session(whole.get()).get(), {x, yes});
    for (const std::string cut : {"a", "r", "m", "p", "y", "s"}) {
      SCOPED_TRACE(cut);
      const auto before = extract(whole.get(), {}, {cut});
      EXPECT_EQ(inputs_of(before.get()), Words({"x"}));
      const auto value = run(session(before.get()).get(), {x}).at(0);
      const auto after = extract(whole.get(), {cut}, {"z"});
      std::vector<Array> fed;
      for (const std::string& name : inputs_of(after.get()))
        fed.push_back(name == cut ? value : name == "x" ? x : yes);
      const auto got = run(session(after.get()).get(), fed).at(0);
      EXPECT_EQ(got.bytes, want[0].bytes);
      EXPECT_EQ(got.dims, want[0].dims);
    }
  }
}

TEST_F(Extract, leaves_out_what_it_does_not_need) {
  const GraphBuilder whole = forked();
  const auto part = extract(whole.get(), {"a"}, {"m"});
  EXPECT_EQ(inputs_of(part.get()), Words({"a"}));
  EXPECT_EQ(api().graph->node_count(part.get()), 2u);
  EXPECT_EQ(api().graph->initializer_count(part.get()), 1u);
  EXPECT_EQ(api().graph->node_count(whole.get()), 7u) << "the whole is as before";
  EXPECT_EQ(api().graph->initializer_count(whole.get()), 3u);
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().graph->input_at(part.get(), 0, &info)));
  EXPECT_EQ(info.dtype, uint32_t{PFRT_DTYPE_FLOAT32});
  ASSERT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[1], 4);

  // An output of Split is given, so only the other is computed.
  const auto beside = extract(whole.get(), {"a"}, {"y"});
  EXPECT_EQ(inputs_of(beside.get()), Words({"a", "x"}));
  EXPECT_TRUE(ok(api().graph->validate(beside.get())));
  // A constant that is given is an input that has to be fed.
  const auto fed = extract(whole.get(), {"w", "r"}, {"m"});
  EXPECT_EQ(inputs_of(fed.get()), Words({"w", "r"}));
  EXPECT_EQ(api().graph->initializer_count(fed.get()), 0u);
}

TEST_F(Extract, says_what_cannot_be_cut) {
  const GraphBuilder whole = forked();
  const auto refused = [&](const Words& inputs, const Words& outputs, pfrt_code code,
                           std::initializer_list<std::string_view> parts) {
    EXPECT_TRUE(fails(try_extract(whole.get(), inputs, outputs), code, parts));
  };
  refused({"q"}, {"y"}, PFRT_CODE_NOT_FOUND, {"'q'"});
  refused({}, {"q"}, PFRT_CODE_NOT_FOUND, {"'q'"});
  refused({}, {}, PFRT_CODE_INVALID_ARGUMENT, {"no output"});
  refused({"a", "a"}, {"y"}, PFRT_CODE_INVALID_ARGUMENT, {"input 'a'", "twice"});
  refused({}, {"y", "y"}, PFRT_CODE_INVALID_ARGUMENT, {"output 'y'", "twice"});
  refused({"s"}, {"y"}, PFRT_CODE_INVALID_ARGUMENT, {"'s'", "leave it out"});
  GraphBuilder outer = forked();
  GraphBuilder body(outer, "body");
  body.node("Neg", {"s"}, {"n"});
  body.output("n");
  EXPECT_TRUE(fails(try_extract(body.get(), {}, {"n"}), PFRT_CODE_UNSUPPORTED, {"body"}));
}

}  // namespace
}  // namespace pfrt_test
