// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include "test/capi/plugin/custom_operator.h"

namespace pfrt_test {
namespace {

template <typename Fn>
void on_threads(int count, Fn fn) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([=] { fn(t); });
  for (std::thread& thread : threads) thread.join();
}

void run_on_eight_threads(TestOperator& op) {
  const auto env = make_env();
  ASSERT_TRUE(ok(op.add_to(env.get())));
  const auto session = make_session(env.get(), scale_graph());
  ASSERT_TRUE(session);
  on_threads(8, [&](int t) {
    for (int i = 0; i < 20; ++i) {
      const auto x = static_cast<float>(t * 100 + i);
      const int64_t rows = 1 + i % 3;
      const auto count = static_cast<size_t>(rows) * 3;
      EXPECT_EQ(
          run(session.get(), {floats({rows, 3}, std::vector<float>(count, x))})[0].as<float>(),
          std::vector<float>(count, 2 * (x + 1)));
    }
  });
}

TEST(CustomOperatorThreads, share_an_operator) {
  const auto op = scale_operator();
  run_on_eight_threads(*op);
  const auto late = scale_operator(false);
  run_on_eight_threads(*late);
}

TEST(CustomOperatorThreads, take_turns_where_the_operator_asks_for_it) {
  const auto op = scale_operator();
  op->c.flags = PFRT_OP_SERIAL;
  int inside = 0, most = 0;  // not atomic: tsan would report two callbacks at once
  op->compute = [&](const pfrt_op_compute* call) {
    most = std::max(most, ++inside);
    const pfrt_code code = compute_scaled(call);
    --inside;
    return code;
  };
  run_on_eight_threads(*op);
  EXPECT_EQ(most, 1);
}

TEST(CustomOperatorThreads, compute_may_use_the_pool_and_is_stopped) {
  TestOperator op("Spread");
  op.infer = infer_like_input;
  op.compute = [](const pfrt_op_compute* call) -> pfrt_code {
    call->parallel(
        call, count_of(call->inputs[0]),
        [](void* arg, uint64_t i, uint32_t) {
          const auto* c = static_cast<const pfrt_op_compute*>(arg);
          static_cast<float*>(c->outputs[0].data)[i] =
              -static_cast<const float*>(c->inputs[0].data)[i];
        },
        const_cast<pfrt_op_compute*>(call));
    return call->stop(call);
  };
  const auto env = make_env();
  ASSERT_TRUE(ok(op.add_to(env.get())));
  const auto session = make_session(env.get(), one_node(op));
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{3, 0, -1}));

  uint32_t cancel = 0;
  const RunDesc options({.cancel = &cancel});
  op.compute = [&](const pfrt_op_compute* call) {
    std::atomic_ref(cancel).store(1);  // while it runs
    return call->stop(call);
  };
  EXPECT_EQ(try_run(session.get(), {kRow}, nullptr, options.get()).code, PFRT_CODE_CANCELLED);
}

// A callback that keeps its caller until open() is called.
class Gate {
 public:
  void close() { closed_ = true; }
  void pass() {
    while (closed_) {
      waits_ = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void wait_for_somebody() const {
    while (!waits_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void open() {
    closed_ = false;
    waits_ = false;
  }

 private:
  std::atomic<bool> closed_{false}, waits_{false};
};

// Expects |second| to end at its deadline while |first| is kept.
void expect_second_ends(Gate& gate, const std::function<Failure()>& first,
                        const std::function<Failure()>& second) {
  gate.close();
  Failure of_first;
  std::thread other([&] { of_first = first(); });
  gate.wait_for_somebody();
  EXPECT_EQ(second().code, PFRT_CODE_DEADLINE);
  gate.open();
  other.join();
  EXPECT_TRUE(ok(std::move(of_first)));
}

TEST(CustomOperatorThreads, who_waits_for_others_ends_at_the_deadline) {
  Gate shapes, numbers;
  const auto op = scale_operator();
  op->c.flags = PFRT_OP_SERIAL;
  op->infer = [&](const pfrt_op_infer* call) {
    shapes.pass();
    return infer_like_input(call);
  };
  op->compute = [&](const pfrt_op_compute* call) {
    numbers.pass();
    return compute_scaled(call);
  };
  const auto env = make_env();
  ASSERT_TRUE(ok(op->add_to(env.get())));
  const auto model = make_model(env.get(), scale_graph());
  const auto soon = make_options(PFRT_OPTIONS_SESSION, {{"create_timeout_ms", "20"}});
  expect_second_ends(
      shapes, [&] { return try_session(env.get(), model.get()); },
      [&] { return try_session(env.get(), model.get(), soon.get()); });

  const auto session = make_session(env.get(), model.get());
  const RunDesc limit({.timeout_ms = 20});
  const Array two_rows = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_second_ends(
      shapes, [&] { return try_run(session.get(), {two_rows}); },
      [&] { return try_run(session.get(), {two_rows}, nullptr, limit.get()); });
  run(session.get(), {kRow});
  expect_second_ends(
      numbers, [&] { return try_run(session.get(), {kRow}); },
      [&] { return try_run(session.get(), {kRow}, nullptr, limit.get()); });
}

TEST(CustomOperatorThreads, register_and_make_sessions_at_once) {
  const auto env = make_env();
  std::vector<std::unique_ptr<TestOperator>> ops;
  for (int t = 0; t < 8; ++t) {
    ops.push_back(scale_operator());
    ops.back()->name += std::to_string(t);
  }
  on_threads(8, [&](int t) {
    TestOperator& op = *ops[static_cast<size_t>(t)];
    ASSERT_TRUE(ok(op.add_to(env.get())));
    const auto session = make_session(env.get(), one_node(op));
    ASSERT_TRUE(session);
    EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{-6, 0, 2}));
    EXPECT_TRUE(ok(api().env->unregister_operator(env.get(), str("acme"), str(op.name))));
  });
  for (const auto& op : ops) EXPECT_EQ(op->released, 1);
}

}  // namespace
}  // namespace pfrt_test
