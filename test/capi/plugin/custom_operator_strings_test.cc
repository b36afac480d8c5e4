// SPDX-License-Identifier: Apache-2.0
//
// Operators that give strings.
#include <algorithm>

#include "test/capi/plugin/custom_operator.h"

namespace pfrt_test {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return text;
}

// y = x in capitals, by threads.
pfrt_code compute_upper(const pfrt_op_compute* call) {
  call->parallel(
      call, count_of(call->inputs[0]),
      [](void* arg, uint64_t i, uint32_t) {
        const auto* c = static_cast<const pfrt_op_compute*>(arg);
        const std::string made = upper(text(static_cast<const pfrt_string*>(c->inputs[0].data)[i]));
        const pfrt_string one = str(made);
        EXPECT_EQ(c->set_strings(c, 0, i, &one, 1), PFRT_CODE_OK);
      },
      const_cast<pfrt_op_compute*>(call));
  return call->stop(call);
}

// y = the words of x, whose number only a run tells.
pfrt_code compute_words(const pfrt_op_compute* call) {
  std::vector<std::string> words;
  for (uint64_t i = 0; i < count_of(call->inputs[0]); ++i) {
    const std::string line = text(static_cast<const pfrt_string*>(call->inputs[0].data)[i]);
    for (size_t at = 0; at < line.size();) {
      const size_t end = std::min(line.find(' ', at), line.size());
      if (end > at) words.push_back(line.substr(at, end - at));
      at = end + 1;
    }
  }
  std::vector<pfrt_string> views;
  for (const std::string& word : words) views.push_back(str(word));
  const auto count = static_cast<int64_t>(words.size());
  void* out = nullptr;
  const pfrt_code code = call->alloc_output(call, 0, PFRT_DTYPE_STRING, &count, 1, &out);
  if (code != PFRT_CODE_OK) return code;
  return call->set_strings(call, 0, 0, views.data(), views.size());
}

GraphBuilder texts_graph(const std::vector<std::string>& ops,
                         const std::vector<DimSpec>& dims = {"N"}) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_STRING, dims);
  std::string last = "x";
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string next = i + 1 == ops.size() ? "y" : "t" + std::to_string(i);
    g.node(ops[i], {last}, {next}, {}, "n" + std::to_string(i + 1), "acme");
    last = next;
  }
  g.output("y");
  return g;
}

class CustomOperatorStrings : public testing::Test {
 protected:
  CustomOperatorStrings() {
    upper_.infer = infer_like_input;
    upper_.compute = compute_upper;
    words_.c.flags = PFRT_OP_DATA_DEPENDENT;
    words_.output_types = {PFRT_DTYPE_STRING};
    words_.compute = compute_words;
    EXPECT_TRUE(ok(upper_.add_to(env_.get())));
    EXPECT_TRUE(ok(words_.add_to(env_.get())));
  }
  std::vector<std::string> run(pfrt_session* session, const std::vector<int64_t>& dims,
                               const std::vector<std::string>& texts) {
    const auto x = texts_value(dims, texts);
    Handle<pfrt_value> y;
    EXPECT_TRUE(ok(try_run_values(session, {x.get()}, &y)));
    return y ? texts_of(y.get()) : std::vector<std::string>();
  }

  TestOperator upper_{"Upper"}, words_{"Words"};
  Handle<pfrt_env> env_ = make_env();
};

TEST_F(CustomOperatorStrings, of_known_dimensions) {
  const auto session = make_session(env_.get(), texts_graph({"Upper"}));
  ASSERT_TRUE(session);
  const std::string long_one(100'000, 'q');
  EXPECT_EQ(run(session.get(), {3}, {"a b", "", long_one}),
            (std::vector<std::string>{"A B", "", std::string(100'000, 'Q')}));
  EXPECT_EQ(run(session.get(), {1}, {"x"}), (std::vector<std::string>{"X"}));
  EXPECT_EQ(run(session.get(), {0}, {}), (std::vector<std::string>{}));
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().session->output_at(session.get(), 0, &info)));
  EXPECT_EQ(info.dtype, PFRT_DTYPE_STRING);
}

TEST_F(CustomOperatorStrings, whose_number_only_a_run_tells) {
  const auto session = make_session(env_.get(), texts_graph({"Words"}));
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {2}, {"one two", " three "}),
            (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(run(session.get(), {2}, {"", " "}), (std::vector<std::string>{}));
}

TEST_F(CustomOperatorStrings, go_from_operator_to_operator) {
  const auto session = make_session(env_.get(), texts_graph({"Upper", "Words", "Upper"}));
  ASSERT_TRUE(session);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(run(session.get(), {2}, {"one two", std::string(i, 'z')}).size(), i ? 3u : 2u);
  EXPECT_EQ(run(session.get(), {1}, {"a bc"}), (std::vector<std::string>{"A", "BC"}));
}

TEST_F(CustomOperatorStrings, go_to_built_in_operators_and_are_outputs_too) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_STRING, {"N"});
  g.node("Upper", {"x"}, {"u"}, {}, "n1", "acme");
  g.constant("last", int64s({1}, {-1}));
  g.node("Gather", {"u", "last"}, {"y"});
  g.node("StringConcat", {"u", "u"}, {"z"});
  g.output("y");
  g.output("u");
  g.output("z");
  const auto session = make_session(env_.get(), g);
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {3}, {"a", "b", "c"}), (std::vector<std::string>{"C"}));
}

TEST_F(CustomOperatorStrings, leave_bodies) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_STRING, {"N"});
  g.input("c", PFRT_DTYPE_BOOL, {});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Upper", {"x"}, {"yes_y"}, {}, "", "acme");
  yes.output("yes_y");
  no.node("Words", {"x"}, {"no_y"}, {}, "", "acme");
  no.output("no_y");
  g.node("If", {"c"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  const auto session = make_session(env_.get(), g);
  ASSERT_TRUE(session);
  const auto x = texts_value({1}, {"a b"});
  for (const bool which : {true, false}) {
    const auto c = value_of(Array{PFRT_DTYPE_BOOL, {}, {static_cast<char>(which)}});
    Handle<pfrt_value> y;
    ASSERT_TRUE(ok(try_run_values(session.get(), {x.get(), c.get()}, &y)));
    EXPECT_EQ(texts_of(y.get()),
              which ? (std::vector<std::string>{"A B"}) : (std::vector<std::string>{"a", "b"}));
  }
}

TEST_F(CustomOperatorStrings, stay_empty_where_they_are_not_set) {
  TestOperator op("Second");
  const auto env = make_env();  // it goes before the operators do
  op.output_types = {PFRT_DTYPE_STRING};
  op.infer = infer_shape_as(PFRT_DTYPE_STRING);
  op.compute = [](const pfrt_op_compute* call) -> pfrt_code {
    const auto* out = static_cast<const pfrt_string*>(call->outputs[0].data);
    EXPECT_EQ(out[0].size, 0u);
    for (const char* word : {"first", "again"}) {  // the last one counts
      const pfrt_string one = str(word);
      EXPECT_EQ(call->set_strings(call, 0, 1, &one, 1), PFRT_CODE_OK);
    }
    EXPECT_EQ(text(out[1]), "again");
    return call->set_strings(call, 0, 3, nullptr, 0);
  };
  ASSERT_TRUE(ok(op.add_to(env.get())));
  const auto session = make_session(env.get(), one_node(op));  // of float32
  ASSERT_TRUE(session);
  const auto x = value_of(kRow);
  Handle<pfrt_value> y;
  ASSERT_TRUE(ok(try_run_values(session.get(), {x.get()}, &y)));
  EXPECT_EQ(texts_of(y.get()), (std::vector<std::string>{"", "again", ""}));
}

TEST_F(CustomOperatorStrings, that_nobody_wants_cost_nothing) {
  TestOperator op("Both");
  const auto env = make_env();  // it goes before the operators do
  op.c.max_outputs = 2;
  op.output_types = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_STRING};
  op.infer = [](const pfrt_op_infer* call) -> pfrt_code {
    static const int64_t kOne = 1;
    if (call->output_count == 2)
      if (const pfrt_code code = call->set_output(call, 1, PFRT_DTYPE_STRING, 1, &kOne))
        return code;
    return infer_like_input(call);
  };
  op.compute = [](const pfrt_op_compute* call) {
    if (call->output_count == 2) {
      const pfrt_string one = str("lost");
      EXPECT_EQ(call->outputs[1].dtype, PFRT_DTYPE_UNSET);
      EXPECT_EQ(call->set_strings(call, 1, 17, &one, 1), PFRT_CODE_OK);
    }
    return compute_scaled(call);
  };
  ASSERT_TRUE(ok(op.add_to(env.get())));
  for (const auto& outputs : {std::vector<std::string>{"y", ""}, {"y", "unread"}}) {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
    g.node("Both", {"x"}, outputs, {}, "n1", "acme");
    g.output("y");
    const auto session = make_session(env.get(), g);
    ASSERT_TRUE(session);
    EXPECT_EQ(pfrt_test::run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{-6, 0, 2}));
  }
}

TEST_F(CustomOperatorStrings, are_not_set_out_of_place) {
  TestOperator known("Known"), late("Late"), numbers("Numbers");
  const auto env = make_env();  // it goes before the operators do
  std::function<pfrt_code(const pfrt_op_compute*)> compute;
  for (TestOperator* op : {&known, &late, &numbers}) {
    op->compute = [&](const pfrt_op_compute* call) { return compute(call); };
    if (op != &numbers) op->output_types = {PFRT_DTYPE_STRING};
  }
  known.infer = infer_shape_as(PFRT_DTYPE_STRING);
  numbers.infer = infer_like_input;
  for (TestOperator* op : {&known, &late, &numbers}) ASSERT_TRUE(ok(op->add_to(env.get())));
  const auto sets = [](uint32_t output, uint64_t first, uint64_t count) {
    return [=](const pfrt_op_compute* call) {
      const std::vector<pfrt_string> texts(4, str("text"));
      return call->set_strings(call, output, first, texts.data(), count);
    };
  };
  const auto x = value_of(kRow);
  const auto refused = [&](const TestOperator& op, const auto& set,
                           std::initializer_list<std::string_view> parts) {
    compute = set;
    const auto session = make_session(env.get(), one_node(op));
    ASSERT_TRUE(session);
    const Failure failure = try_run_values(session.get(), {x.get()}, nullptr);
    EXPECT_TRUE(fails(failure, PFRT_CODE_INVALID_ARGUMENT, {op.name, "'n1'"}));
    EXPECT_TRUE(fails(failure, PFRT_CODE_INVALID_ARGUMENT, parts));
  };
  refused(known, sets(0, 0, 4), {"4 texts from 0 on of output 0", "fewer elements"});
  refused(known, sets(0, 3, 1), {"fewer elements"});
  refused(known, sets(0, UINT64_MAX, 2), {"fewer elements"});
  refused(known, sets(1, 0, 1), {"output 1", "is not there"});
  refused(known,
          [](const pfrt_op_compute* call) { return call->set_strings(call, 0, 0, nullptr, 1); },
          {"no texts were given"});
  refused(late, sets(0, 0, 1), {"no memory yet", "alloc_output"});
  refused(numbers, sets(0, 0, 1), {"is of float32"});
}

TEST_F(CustomOperatorStrings, do_not_go_into_memory_of_the_caller) {
  const auto session = make_session(env_.get(), texts_graph({"Upper"}, {2}));
  ASSERT_TRUE(session);
  const auto x = texts_value({2}, {"a", "b"});
  pfrt_string places[2]{};
  pfrt_io in{}, out{};
  in.struct_size = out.struct_size = sizeof in;
  in.value = x.get();
  out.tensor.struct_size = sizeof out.tensor;
  out.tensor.dtype = PFRT_DTYPE_STRING;
  out.tensor.data = places;
  out.tensor.bytes = sizeof places;
  EXPECT_TRUE(fails(api().session->run(session.get(), &in, 1, &out, 1, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"'y'", "not a tensor of numbers"}));
}

// Dimensions that follow from texts are those of the texts at hand.
TEST_F(CustomOperatorStrings, decide_dimensions_as_constants_alone) {
  TestOperator op("Sized");
  const auto env = make_env();  // it goes before the operators do
  op.c.content_inputs = 1;
  op.output_types = {PFRT_DTYPE_FLOAT32};
  op.infer = [](const pfrt_op_infer* call) -> pfrt_code {
    const pfrt_snapshot_value& x = call->inputs[0];
    if (!x.data) return call->set_output(call, 0, PFRT_DTYPE_FLOAT32, -1, nullptr);
    const auto size = static_cast<int64_t>(static_cast<const pfrt_string*>(x.data)[0].size);
    return call->set_output(call, 0, PFRT_DTYPE_FLOAT32, 1, &size);
  };
  op.compute = [](const pfrt_op_compute* call) {
    const auto size =
        static_cast<int64_t>(static_cast<const pfrt_string*>(call->inputs[0].data)[0].size);
    void* out = nullptr;
    const pfrt_code code = call->alloc_output(call, 0, PFRT_DTYPE_FLOAT32, &size, 1, &out);
    if (code == PFRT_CODE_OK) std::fill_n(static_cast<float*>(out), size, 1.0f);
    return code;
  };
  ASSERT_TRUE(ok(op.add_to(env.get())));
  const auto session = make_session(env.get(), texts_graph({"Sized"}, {1}));
  ASSERT_TRUE(session);
  for (const char* word : {"four", "seventh", "a"}) {
    const auto x = texts_value({1}, {word});
    Handle<pfrt_value> y;
    ASSERT_TRUE(ok(try_run_values(session.get(), {x.get()}, &y)));
    EXPECT_EQ(array_of(y.get()).dims,
              (std::vector<int64_t>{static_cast<int64_t>(std::string_view(word).size())}));
  }
  GraphBuilder g;
  const auto fixed = texts_value({1}, {"sixfold"});
  ASSERT_TRUE(ok(api().graph->add_initializer_value(g.get(), str("x"), fixed.get())));
  g.node("Sized", {"x"}, {"y"}, {}, "n1", "acme");
  g.output("y");
  const auto constant = make_session(env.get(), g);
  ASSERT_TRUE(constant);
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().session->output_at(constant.get(), 0, &info)));
  ASSERT_EQ(info.rank, 1);
  EXPECT_EQ(info.dims[0], 7);
  EXPECT_EQ(pfrt_test::run(constant.get(), {})[0].as<float>(), std::vector<float>(7, 1));
}

}  // namespace
}  // namespace pfrt_test
