// SPDX-License-Identifier: Apache-2.0
//
// What operators prepare for each node of a plan.
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "test/capi/plugin/custom_operator.h"

namespace pfrt_test {
namespace {

// y = x * the sum of a constant, which create_state adds up; node "n1" of acme.Weighted.
struct Weighted {
  Weighted() : op("Weighted") {
    op.c.min_inputs = 2;
    op.infer = infer_like_input;
    op.create_state = [this](const pfrt_op_create* call, void** out) {
      ++created;
      return create(call, out);
    };
    op.release_state = [](void* state) { delete static_cast<float*>(state); };
    op.compute = [this](const pfrt_op_compute* call) {
      {
        const std::lock_guard lock(mutex);
        seen.insert(call->state);
      }
      const float factor = *static_cast<const float*>(call->state);
      for (uint64_t i = 0; i < count_of(call->inputs[0]); ++i)
        static_cast<float*>(call->outputs[0].data)[i] =
            factor * static_cast<const float*>(call->inputs[0].data)[i];
      return pfrt_code{PFRT_CODE_OK};
    };
  }
  static pfrt_code create(const pfrt_op_create* call, void** out) {
    const pfrt_snapshot_value& w = call->inputs[1];
    if (!w.data) return call->fail(call, PFRT_CODE_INVALID_MODEL, str("w is no constant"));
    float sum = 0;
    for (uint64_t i = 0; i < w.bytes / sizeof(float); ++i)
      sum += static_cast<const float*>(w.data)[i];
    *out = new float(sum);
    return PFRT_CODE_OK;
  }
  GraphBuilder graph() const {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
    g.constant("w", floats({2}, {1, 2}));
    g.constant("v", floats({2}, {4, 6}));
    g.node("Weighted", {"x", "w"}, {"t"}, {}, "n1", "acme");
    g.node("Weighted", {"t", "v"}, {"y"}, {}, "n2", "acme");
    g.output("y");
    return g;
  }

  TestOperator op;
  std::atomic<int> created{0};
  std::mutex mutex;
  std::set<const void*> seen;  // by compute
};

TEST(CustomOperatorState, is_made_once_for_each_node_and_released_after_its_runs) {
  Weighted weighted;
  {
    const auto env = make_env();
    ASSERT_TRUE(ok(weighted.op.add_to(env.get())));
    auto session = make_session(env.get(), weighted.graph());
    ASSERT_TRUE(session);
    EXPECT_EQ(weighted.created, 2);
    for (int64_t rows : {1, 2, 1, 5}) {  // a plan for each number of rows has the same states
      const auto count = static_cast<size_t>(rows) * 3;
      EXPECT_EQ(
          run(session.get(), {floats({rows, 3}, std::vector<float>(count, 2))})[0].as<float>(),
          std::vector<float>(count, 60));
    }
    EXPECT_EQ(weighted.created, 2);
    EXPECT_EQ(weighted.seen.size(), 2u);
    EXPECT_EQ(weighted.op.states_released, 0);
    session.reset();
    EXPECT_EQ(weighted.op.states_released, 2);
    EXPECT_EQ(weighted.op.released, 0);
  }
  EXPECT_EQ(weighted.op.released, 1);
}

TEST(CustomOperatorState, of_two_sessions_is_of_each) {
  Weighted weighted;
  const auto env = make_env();
  ASSERT_TRUE(ok(weighted.op.add_to(env.get())));
  auto first = make_session(env.get(), weighted.graph());
  auto second = make_session(env.get(), weighted.graph());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(weighted.created, 4);
  first.reset();
  EXPECT_EQ(weighted.op.states_released, 2);
  EXPECT_EQ(run(second.get(), {floats({1, 3}, {1, 0, -1})})[0].as<float>(),
            (std::vector<float>{30, 0, -30}));
}

TEST(CustomOperatorState, is_used_by_several_threads_at_once) {
  Weighted weighted;
  const auto env = make_env();
  ASSERT_TRUE(ok(weighted.op.add_to(env.get())));
  const auto session = make_session(env.get(), weighted.graph());
  ASSERT_TRUE(session);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(
            run(session.get(), {floats({1, 3}, {static_cast<float>(t), 1, 2})})[0].as<float>(),
            (std::vector<float>{30.0f * static_cast<float>(t), 30, 60}));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(weighted.created, 2);
  EXPECT_EQ(weighted.seen.size(), 2u);
}

TEST(CustomOperatorState, is_told_attributes_types_and_what_is_there) {
  TestOperator op("Looks");
  op.c.min_inputs = 1;
  op.c.max_inputs = 4;
  op.c.max_outputs = 2;
  op.infer = infer_like_input;
  op.compute = compute_scaled;
  int looked = 0;
  op.create_state = [&](const pfrt_op_create* call, void**) -> pfrt_code {
    ++looked;
    const auto input = [&](uint32_t i) -> const pfrt_snapshot_value& {
      return *static_cast<const pfrt_snapshot_value*>(pfrt_at(call->inputs, call->value_size, i));
    };
    EXPECT_EQ(text(call->node->name), "n1");
    const pfrt_snapshot_attr* factor = attribute(*call->node, call->attr_size, "factor");
    EXPECT_TRUE(factor && factor->f == 5);
    EXPECT_EQ(call->input_count, 4u);
    EXPECT_EQ(text(input(0).name), "x");
    EXPECT_EQ(input(0).dtype, PFRT_DTYPE_FLOAT32);
    EXPECT_EQ(input(0).rank, 2);
    EXPECT_LT(input(0).dims[0], 0);
    EXPECT_EQ(input(0).dims[1], 3);
    EXPECT_EQ(input(0).data, nullptr);
    EXPECT_EQ(input(1).name.size, 0u);
    EXPECT_EQ(input(1).dtype, PFRT_DTYPE_UNSET);
    EXPECT_EQ(input(1).rank, -1);
    EXPECT_EQ(input(2).dtype, PFRT_DTYPE_INT64);
    EXPECT_EQ(input(2).bytes, 16u);
    EXPECT_TRUE(input(2).data && static_cast<const int64_t*>(input(2).data)[1] == 8);
    EXPECT_EQ(input(3).dtype, PFRT_DTYPE_STRING);
    EXPECT_TRUE(input(3).data &&
                text(static_cast<const pfrt_string*>(input(3).data)[1]) == "second");
    EXPECT_EQ(call->outputs[0].dtype, PFRT_DTYPE_FLOAT32);
    if (call->output_count == 2) {
      EXPECT_EQ(call->outputs[1].rank, -1);
    }
    EXPECT_EQ(call->stop(call), PFRT_CODE_OK);
    return PFRT_CODE_OK;
  };
  const auto env = make_env();
  ASSERT_TRUE(ok(op.add_to(env.get())));
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.constant("sizes", int64s({2}, {7, 8}));
  const auto words = texts_value({2}, {"first", "second"});
  ASSERT_TRUE(ok(api().graph->add_initializer_value(g.get(), str("words"), words.get())));
  g.node("Looks", {"x", "", "sizes", "words"}, {"y", ""}, {Attr::of_float("factor", 5)}, "n1",
         "acme");
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  EXPECT_EQ(looked, 1);
  EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{-15, 0, 5}));
  // A state that is NULL is not released.
  EXPECT_EQ(op.states_released, 0);
}

TEST(CustomOperatorState, that_cannot_be_made_is_the_error_of_the_session) {
  Weighted weighted;
  const auto env = make_env();
  ASSERT_TRUE(ok(weighted.op.add_to(env.get())));
  const auto graph = weighted.graph();
  const auto refused = [&](pfrt_code code,
                           std::function<pfrt_code(const pfrt_op_create*, void**)> create,
                           std::initializer_list<std::string_view> parts) {
    int calls = 0;
    weighted.op.create_state = [&](const pfrt_op_create* call, void** out) {
      return ++calls == 1 ? Weighted::create(call, out) : create(call, out);
    };
    const int before = weighted.op.states_released;
    const Failure failure = try_session(env.get(), graph);
    EXPECT_TRUE(fails(failure, code, {"Weighted 'n2'"}));
    EXPECT_TRUE(fails(failure, code, parts));
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(weighted.op.states_released, before + 1);  // that of n1
  };
  for (pfrt_code code : {PFRT_CODE_INVALID_MODEL, PFRT_CODE_NOT_FOUND, PFRT_CODE_UNSUPPORTED,
                         PFRT_CODE_UNSUPPORTED_OPERATOR, PFRT_CODE_PROVIDER, PFRT_CODE_INTERNAL,
                         PFRT_CODE_DEVICE_LOST, PFRT_CODE_SHAPE_MISMATCH})
    refused(code,
            [code](const pfrt_op_create* call, void** out) {
              *out = nullptr;
              return call->fail(call, code, str("the vocabulary is not there"));
            },
            {"the vocabulary is not there"});
  refused(PFRT_CODE_UNSUPPORTED,
          [](const pfrt_op_create*, void**) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; },
          {"its create_state callback failed"});
  for (pfrt_code code : {pfrt_code{999}, pfrt_code{PFRT_CODE_CANCELLED}})
    refused(PFRT_CODE_PROVIDER, [code](const pfrt_op_create*, void**) { return code; },
            {"its create_state callback failed"});
  refused(PFRT_CODE_PROVIDER,
          [](const pfrt_op_create*, void**) -> pfrt_code { throw std::runtime_error("no"); },
          {"create_state callback threw an exception"});
  weighted.op.create_state = [](const pfrt_op_create*, void**) -> pfrt_code {
    throw std::bad_alloc();
  };
  EXPECT_TRUE(fails(try_session(env.get(), graph), PFRT_CODE_OUT_OF_MEMORY, {"Weighted 'n1'"}));
  weighted.op.create_state = Weighted::create;
  const auto session = make_session(env.get(), graph);
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {1, 0, -1})})[0].as<float>(),
            (std::vector<float>{30, 0, -30}));
}

TEST(CustomOperatorState, is_stopped_with_the_making_of_the_session) {
  Weighted weighted;
  const auto options = make_options(PFRT_OPTIONS_SESSION);
  weighted.op.create_state = [&](const pfrt_op_create* call, void**) {
    api().options->cancel(options.get());
    return call->stop(call);
  };
  const auto env = make_env();
  ASSERT_TRUE(ok(weighted.op.add_to(env.get())));
  const auto model = make_model(env.get(), weighted.graph());
  EXPECT_EQ(try_session(env.get(), model.get(), options.get()).code, PFRT_CODE_CANCELLED);
  EXPECT_EQ(weighted.op.states_released, 0);
}

TEST(CustomOperatorState, is_made_for_nodes_of_bodies) {
  Weighted weighted;
  const auto env = make_env();
  ASSERT_TRUE(ok(weighted.op.add_to(env.get())));
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  g.input("x", PFRT_DTYPE_FLOAT32, {3});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.constant("w", floats({1}, {3}));
  yes.node("Weighted", {"x", "w"}, {"yes_y"}, {}, "in_yes", "acme");
  yes.output("yes_y");
  no.constant("v", floats({1}, {5}));
  no.node("Weighted", {"x", "v"}, {"no_y"}, {}, "in_no", "acme");
  no.output("no_y");
  g.node("If", {"c"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  EXPECT_EQ(weighted.created, 2);
  const Array x = floats({3}, {1, 2, 3});
  EXPECT_EQ(run(session.get(), {Array{PFRT_DTYPE_BOOL, {}, {1}}, x})[0].as<float>(),
            (std::vector<float>{3, 6, 9}));
  EXPECT_EQ(run(session.get(), {Array{PFRT_DTYPE_BOOL, {}, {0}}, x})[0].as<float>(),
            (std::vector<float>{5, 10, 15}));
}

TEST(CustomOperatorState, is_made_whole_or_not_at_all) {
  const auto env = make_env();
  TestOperator op("Half");
  op.compute = compute_scaled;
  op.c.release_state = [](void*, void*) {};
  EXPECT_TRUE(fails(op.add_to(env.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"'Half'", "release_state and no create_state"}));
  EXPECT_EQ(op.released, 1);
}

}  // namespace
}  // namespace pfrt_test
