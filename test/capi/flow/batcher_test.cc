// SPDX-License-Identifier: Apache-2.0
//
// Batchers: requests share runs, and each gets what it would have got alone.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <limits>
#include <string>
#include <thread>

#include "test/capi/flow/requests.h"

namespace pfrt_test {
namespace {

using std::chrono::milliseconds;

TEST(Batcher, shares_runs_and_gives_everybody_its_own) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const auto batcher = make_batcher(session.get());
  std::deque<Asked> asked;
  for (int i = 0; i < 40; ++i)
    asked.emplace_back(std::vector{noise({1 + i % 3, 16}, static_cast<uint32_t>(i))});
  for (Asked& one : asked) ASSERT_TRUE(ok(submit(batcher.get(), one)));
  EXPECT_EQ(statistics_of(batcher.get()).queued, 40u);
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  for (Asked& one : asked) expect_own(session.get(), one);
  ASSERT_TRUE(ok(api().batcher->flush(batcher.get())));

  const pfrt_batcher_statistics s = statistics_of(batcher.get());
  EXPECT_EQ(text(s.unshared), "");
  EXPECT_EQ(s.submitted, 40u);
  EXPECT_EQ(s.completed, 40u);
  EXPECT_EQ(s.rows, 79u);
  EXPECT_LE(s.batches, 10u);
  EXPECT_GT(s.latency_ns, 0);
  EXPECT_GT(s.seconds, 0);
  EXPECT_EQ(s.queued + s.running + s.failed + s.cancelled + s.late + s.refused, 0u);
  for (Asked& one : asked) {
    EXPECT_GT(one.facts.rows, 0);
    EXPECT_LE(one.facts.rows, 32);
    EXPECT_EQ(one.facts.id, one.id);
    EXPECT_GE(one.facts.latency_ns, one.facts.queued_ns + one.facts.ran_ns);
    EXPECT_NE(one.thread, std::this_thread::get_id());
  }

  size_t count = 0;
  ASSERT_TRUE(ok(api().batcher->times(batcher.get(), nullptr, 0, &count)));
  ASSERT_GT(count, 0u);
  std::vector<pfrt_batch_time> times(count);
  for (pfrt_batch_time& time : times) time.struct_size = sizeof time;
  ASSERT_TRUE(ok(api().batcher->times(batcher.get(), times.data(), count, nullptr)));
  uint64_t runs = 0;
  for (const pfrt_batch_time& time : times) runs += time.runs;
  EXPECT_EQ(runs, s.batches);

  ASSERT_TRUE(ok(api().batcher->reset_statistics(batcher.get())));
  EXPECT_EQ(statistics_of(batcher.get()).completed, 0u);
}

TEST(Batcher, fills_batches_up_and_nobody_sees_it) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  for (const bool padding : {true, false}) {
    const auto batcher = make_batcher(
        session.get(), {{"preferred_sizes", "8"}, {"enable_padding", padding ? "true" : "false"}});
    std::deque<Asked> asked;
    for (uint32_t i = 0; i < 5; ++i) asked.emplace_back(std::vector{noise({1, 16}, i)});
    for (Asked& one : asked) ASSERT_TRUE(ok(submit(batcher.get(), one)));
    ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
    for (Asked& one : asked) expect_own(session.get(), one);
    EXPECT_EQ(statistics_of(batcher.get()).padded_rows, padding ? 3u : 0u);
    EXPECT_EQ(statistics_of(batcher.get()).batches, 1u);
  }
}

TEST(Batcher, groups_by_shapes_types_and_inputs_without_a_batch) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", "L"});
  g.input("t", PFRT_DTYPE_FLOAT32, {});
  g.node("Mul", {"x", "t"}, {"y"});
  g.output("y");
  const auto session = rows_session(env.get(), g);
  const auto batcher = make_batcher(session.get());
  std::deque<Asked> asked;
  for (uint32_t i = 0; i < 60; ++i)
    asked.emplace_back(std::vector{noise({1, 4 + i % 3}, i), floats({}, {float(i % 2)})});
  for (Asked& one : asked) ASSERT_TRUE(ok(submit(batcher.get(), one)));
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  for (Asked& one : asked) {
    expect_own(session.get(), one);
    EXPECT_EQ(one.facts.rows, 10);
  }
  EXPECT_EQ(statistics_of(batcher.get()).batches, 6u);
}

TEST(Batcher, runs_requests_alone_where_rows_are_mixed) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 4});
  g.node("Softmax", {"x"}, {"y"}, {Attr::of_int("axis", 0)}, "over_rows");
  g.output("y");
  const auto session = make_session(env.get(), g);
  const auto batcher = make_batcher(session.get());
  EXPECT_NE(text(statistics_of(batcher.get()).unshared).find("over_rows"), std::string::npos)
      << text(statistics_of(batcher.get()).unshared);
  std::deque<Asked> asked;
  for (uint32_t i = 0; i < 9; ++i) asked.emplace_back(std::vector{noise({1 + i % 2, 4}, i)});
  for (Asked& one : asked) ASSERT_TRUE(ok(submit(batcher.get(), one)));
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  for (Asked& one : asked) expect_own(session.get(), one);
  EXPECT_EQ(statistics_of(batcher.get()).batches, 9u);
}

TEST(Batcher, a_bad_request_fails_alone) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("i", PFRT_DTYPE_INT64, {"N", 1});
  g.constant("table", floats({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}));
  g.node("Gather", {"table", "i"}, {"y"});
  g.output("y");
  const auto session = rows_session(env.get(), g);
  const auto batcher = make_batcher(session.get());
  std::deque<Asked> asked;
  for (int64_t i = 0; i < 6; ++i) asked.emplace_back(std::vector{int64s({1, 1}, {i % 4})});
  asked.emplace_back(std::vector{int64s({1, 1}, {9})});     // beyond the table
  asked.emplace_back(std::vector{floats({1, 1}, {0})});     // of another type
  asked.emplace_back(std::vector{int64s({1, 2}, {0, 1})});  // of another shape
  asked.emplace_back(std::vector{int64s({0, 1}, {})});      // without rows
  for (Asked& one : asked) ASSERT_TRUE(ok(submit(batcher.get(), one)));
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  for (size_t i = 0; i < 6; ++i) expect_own(session.get(), asked[i]);
  for (Asked& one : asked) one.wait();
  EXPECT_TRUE(fails(asked[6].failure, PFRT_CODE_INVALID_ARGUMENT, {"index 9"}));
  EXPECT_TRUE(fails(asked[7].failure, PFRT_CODE_DTYPE_MISMATCH, {"'i'"}));
  EXPECT_TRUE(fails(asked[8].failure, PFRT_CODE_SHAPE_MISMATCH, {"'i'"}));
  EXPECT_EQ(statistics_of(batcher.get()).failed, 3u + (asked[9].failure.ok() ? 0u : 1u));
  for (const Array& none : asked[6].outputs) EXPECT_TRUE(none.bytes.empty());
}

TEST(Batcher, gives_only_the_outputs_that_are_wanted) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.node("Neg", {"x"}, {"a"});
  g.node("Abs", {"x"}, {"b"});
  g.output("a");
  g.output("b");
  const auto session = rows_session(env.get(), g);
  const auto batcher = make_batcher(session.get());
  const size_t second = 1, none = 2;
  RequestDesc desc;
  desc.outputs = &second;
  desc.output_count = 1;
  Asked all({noise({1, 3}, 1)}), one({noise({1, 3}, 2)}), wrong({noise({1, 3}, 3)});
  ASSERT_TRUE(ok(submit(batcher.get(), all)));
  ASSERT_TRUE(ok(submit(batcher.get(), one, &desc)));
  desc.outputs = &none;
  EXPECT_TRUE(fails(submit(batcher.get(), wrong, &desc), PFRT_CODE_INVALID_ARGUMENT,
                    {"output 2", "has 2"}));
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  expect_own(session.get(), all);
  one.wait();
  ASSERT_EQ(one.outputs.size(), 2u);
  EXPECT_TRUE(one.outputs[0].bytes.empty());
  EXPECT_EQ(one.outputs[1].bytes, run(session.get(), one.inputs)[1].bytes);
  EXPECT_EQ(wrong.calls, 0);
}

TEST(Batcher, ends_requests_that_are_cancelled_or_late) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const auto batcher = make_batcher(session.get());
  uint32_t flag = 0;
  std::deque<Asked> asked;
  for (uint32_t i = 0; i < 5; ++i) asked.emplace_back(std::vector{noise({1, 16}, i)});
  RequestDesc flagged, late;
  flagged.cancelled_by(&flag);
  late.within_ms(1);
  ASSERT_TRUE(ok(submit(batcher.get(), asked[0])));
  ASSERT_TRUE(ok(submit(batcher.get(), asked[1])));
  ASSERT_TRUE(ok(submit(batcher.get(), asked[2], &flagged)));
  ASSERT_TRUE(ok(submit(batcher.get(), asked[3], &late)));
  ASSERT_TRUE(ok(submit(batcher.get(), asked[4])));
  ASSERT_TRUE(ok(api().batcher->cancel(batcher.get(), asked[1].id)));
  std::atomic_ref(flag).store(1);
  std::this_thread::sleep_for(milliseconds(3));
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  expect_own(session.get(), asked[0]);
  expect_own(session.get(), asked[4]);
  for (size_t i = 1; i < 4; ++i) asked[i].wait();
  EXPECT_TRUE(fails(asked[1].failure, PFRT_CODE_CANCELLED, {"cancelled by the caller"}));
  EXPECT_TRUE(fails(asked[2].failure, PFRT_CODE_CANCELLED, {"cancelled by the caller"}));
  EXPECT_TRUE(fails(asked[3].failure, PFRT_CODE_DEADLINE, {"deadline"}));
  EXPECT_TRUE(fails(api().batcher->cancel(batcher.get(), asked[1].id), PFRT_CODE_NOT_FOUND,
                    {"answered already"}));
  EXPECT_TRUE(
      fails(api().batcher->cancel(batcher.get(), 99), PFRT_CODE_NOT_FOUND, {"never submitted"}));
  ASSERT_TRUE(ok(api().batcher->flush(batcher.get())));
  const pfrt_batcher_statistics s = statistics_of(batcher.get());
  EXPECT_EQ(s.cancelled, 2u);
  EXPECT_EQ(s.late, 1u);
  EXPECT_EQ(s.completed, 2u);
}

TEST(Batcher, cancel_ends_a_run_that_nobody_else_wants) {
  const auto env = make_env();
  const auto session = make_session(env.get(), slow_graph());
  const auto batcher = make_batcher(session.get());
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().session->input_at(session.get(), 0, &info)));
  std::vector<int64_t> dims(info.dims, info.dims + info.rank);
  for (int64_t& dim : dims)
    if (dim < 0) dim = 64;
  Asked asked({noise(dims, 1)});
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  ASSERT_TRUE(ok(submit(batcher.get(), asked)));
  while (statistics_of(batcher.get()).running == 0) std::this_thread::yield();
  ASSERT_TRUE(ok(api().batcher->cancel(batcher.get(), 0)));
  asked.wait();
  EXPECT_TRUE(fails(asked.failure, PFRT_CODE_CANCELLED, {"cancelled"}));
}

TEST(Batcher, requests_do_not_wait_for_ever) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const auto batcher = make_batcher(session.get(), {{"queue_timeout_ms", "1"}});
  Asked asked({noise({1, 16}, 1)});
  ASSERT_TRUE(ok(submit(batcher.get(), asked)));
  std::this_thread::sleep_for(milliseconds(3));
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  asked.wait();
  EXPECT_TRUE(fails(asked.failure, PFRT_CODE_DEADLINE, {"queue_timeout_ms"}));
}

TEST(Batcher, waits_for_min_batch_size_within_max_latency) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const auto batcher =
      make_batcher(session.get(), {{"min_batch_size", "2"}, {"max_latency_us", "20000"}});
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  Asked alone({noise({1, 16}, 1)});
  ASSERT_TRUE(ok(submit(batcher.get(), alone)));
  expect_own(session.get(), alone);
  EXPECT_GE(alone.facts.queued_ns, 19'000'000u);  // until max_latency
  Asked first({noise({1, 16}, 2)}), second({noise({1, 16}, 3)});
  const auto patient =
      make_batcher(session.get(), {{"min_batch_size", "2"}, {"max_latency_us", "60000000"}});
  ASSERT_TRUE(ok(api().batcher->start(patient.get())));
  ASSERT_TRUE(ok(submit(patient.get(), first)));
  ASSERT_TRUE(ok(submit(patient.get(), second)));
  expect_own(session.get(), first);
  expect_own(session.get(), second);
  EXPECT_EQ(first.facts.rows, 2);
}

TEST(Batcher, neighbours_of_nan_and_infinity_get_their_own) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const auto batcher = make_batcher(session.get());
  std::deque<Asked> asked;
  for (uint32_t i = 0; i < 12; ++i) {
    std::vector<float> x = random_floats(16, i);
    if (i % 3 == 0) x[i] = std::numeric_limits<float>::quiet_NaN();
    if (i % 3 == 1) x[i] = std::numeric_limits<float>::infinity();
    asked.emplace_back(std::vector{floats({1, 16}, x)});
  }
  for (Asked& one : asked) ASSERT_TRUE(ok(submit(batcher.get(), one)));
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  for (Asked& one : asked) expect_own(session.get(), one);
}

TEST(Batcher, the_queue_is_bounded) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const auto batcher = make_batcher(session.get(), {{"queue_capacity", "3"}});
  std::deque<Asked> asked;
  for (uint32_t i = 0; i < 4; ++i) asked.emplace_back(std::vector{noise({1, 16}, i)});
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(ok(submit(batcher.get(), asked[i])));
  EXPECT_TRUE(
      fails(submit(batcher.get(), asked[3]), PFRT_CODE_BUSY, {"3 wait already", "queue_capacity"}));
  EXPECT_EQ(statistics_of(batcher.get()).refused, 1u);
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  for (size_t i = 0; i < 3; ++i) expect_own(session.get(), asked[i]);
  EXPECT_EQ(asked[3].calls, 0);
}

TEST(Batcher, stop_answers_what_waits_and_start_begins_again) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const auto batcher = make_batcher(session.get());
  Asked waits({noise({1, 16}, 1)}), refused({noise({1, 16}, 2)}), later({noise({1, 16}, 3)});
  ASSERT_TRUE(ok(submit(batcher.get(), waits)));
  EXPECT_TRUE(fails(api().batcher->flush(batcher.get()), PFRT_CODE_BUSY, {"until it is started"}));
  ASSERT_TRUE(ok(api().batcher->stop(batcher.get())));
  EXPECT_EQ(waits.calls, 1);
  EXPECT_TRUE(fails(waits.failure, PFRT_CODE_CANCELLED, {"stopped while it waited"}));
  EXPECT_TRUE(fails(submit(batcher.get(), refused), PFRT_CODE_CANCELLED, {"start it again"}));
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  ASSERT_TRUE(ok(submit(batcher.get(), later)));
  expect_own(session.get(), later);
  ASSERT_TRUE(ok(api().batcher->stop(batcher.get())));
  ASSERT_TRUE(ok(api().batcher->stop(batcher.get())));
}

TEST(Batcher, stop_ends_workers_that_answer_late_requests) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  for (int round = 0; round < 50; ++round) {
    const auto batcher = make_batcher(session.get());
    Asked late({noise({1, 16}, 1)});
    std::atomic<bool> inside{false};
    late.inside = [&] {
      inside = true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    };
    ASSERT_TRUE(ok(submit(batcher.get(), late)));
    ASSERT_TRUE(ok(api().batcher->cancel(batcher.get(), late.id)));
    ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
    while (!inside) std::this_thread::yield();
    ASSERT_TRUE(ok(api().batcher->stop(batcher.get())));  // while a worker is in the callback
    EXPECT_TRUE(late.answered());
  }
}

TEST(Batcher, higher_priorities_go_first) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  for (const bool by_priority : {false, true}) {
    const auto batcher =
        make_batcher(session.get(), {{"max_batch_size", "1"},
                                     {"num_workers", "1"},
                                     {"by_priority", by_priority ? "true" : "false"}});
    std::deque<Asked> asked;
    std::vector<size_t> order;
    const std::vector<int64_t> priorities{0, 500, 1000, 500, 1000};
    for (size_t i = 0; i < priorities.size(); ++i) {
      asked.emplace_back(std::vector{noise({1, 16}, static_cast<uint32_t>(i))});
      asked.back().inside = [&order, i] { order.push_back(i); };
    }
    for (size_t i = 0; i < priorities.size(); ++i)
      ASSERT_TRUE(ok(submit(batcher.get(), asked[i], &RequestDesc().with_priority(priorities[i]))));
    ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
    for (Asked& one : asked) expect_own(session.get(), one);
    EXPECT_EQ(order, by_priority ? (std::vector<size_t>{2, 4, 1, 3, 0})
                                 : (std::vector<size_t>{0, 1, 2, 3, 4}));
  }
}

TEST(Batcher, infer_runs_on_the_calling_thread_or_with_others) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const auto batcher = make_batcher(session.get());
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 50; ++i) {
        const std::vector<Array> inputs{noise({1 + i % 2, 16}, 100 * t + i)};
        const std::vector<pfrt_io> ios = ios_of(inputs);
        pfrt_value* output = nullptr;
        pfrt_response facts{};
        facts.struct_size = sizeof facts;
        ASSERT_TRUE(
            ok(api().batcher->infer(batcher.get(), ios.data(), 1, nullptr, &output, 1, &facts)));
        EXPECT_EQ(array_of(output).bytes, run(session.get(), inputs)[0].bytes);
        EXPECT_GE(facts.rows, 1 + i % 2);
        api().value->release(output);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(statistics_of(batcher.get()).completed, 300u);

  const Array x = noise({1, 16}, 1);
  const pfrt_io io = x.io();
  Asked nested({noise({1, 16}, 5)});
  nested.inside = [&] {  // its callback asks too, while all workers are in callbacks
    pfrt_value* inner = nullptr;
    EXPECT_TRUE(ok(api().batcher->infer(batcher.get(), &io, 1, nullptr, &inner, 1, nullptr)));
    api().value->release(inner);
  };
  ASSERT_TRUE(ok(submit(batcher.get(), nested)));
  expect_own(session.get(), nested);

  ASSERT_TRUE(ok(api().batcher->stop(batcher.get())));
  pfrt_value* output = reinterpret_cast<pfrt_value*>(1);
  EXPECT_TRUE(fails(api().batcher->infer(batcher.get(), &io, 1, nullptr, &output, 1, nullptr),
                    PFRT_CODE_CANCELLED, {"stopped"}));
  EXPECT_EQ(output, nullptr);
}

TEST(Batcher, a_callback_may_throw_stop_or_release_it) {
  struct Log {
    std::mutex mutex;
    std::string lines;
    static void add(void* user, pfrt_log_level, pfrt_string line) {
      auto& self = *static_cast<Log*>(user);
      const std::lock_guard<std::mutex> lock(self.mutex);
      self.lines += text(line);
    }
  } log;
  const auto env = make_env({{"log_level", "error"}});
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), &Log::add, &log)));
  const auto session = rows_session(env.get(), rows_graph());

  auto batcher = make_batcher(session.get());
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  const Array x = noise({1, 16}, 1);
  const pfrt_io io = x.io();
  const pfrt_response_fn throws = [](void*, pfrt_response* response) {
    api().status->release(response->status);
    for (size_t i = 0; i < response->output_count; ++i) api().value->release(response->outputs[i]);
    throw 5;
  };
  ASSERT_TRUE(ok(api().batcher->submit(batcher.get(), &io, 1, nullptr, throws, nullptr, nullptr)));
  ASSERT_TRUE(ok(api().batcher->flush(batcher.get())));
  {
    const std::lock_guard<std::mutex> lock(log.mutex);
    EXPECT_NE(log.lines.find("threw"), std::string::npos) << log.lines;
  }

  Asked stops({noise({1, 16}, 2)}), waits({noise({1, 16}, 3)});
  stops.inside = [&] {
    EXPECT_TRUE(fails(api().batcher->flush(batcher.get()), PFRT_CODE_INVALID_ARGUMENT,
                      {"wait for itself"}));
    EXPECT_TRUE(ok(api().batcher->stop(batcher.get())));
    EXPECT_TRUE(fails(api().batcher->start(batcher.get()), PFRT_CODE_BUSY, {"own threads"}));
  };
  ASSERT_TRUE(ok(submit(batcher.get(), stops)));
  stops.wait();
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  ASSERT_TRUE(ok(submit(batcher.get(), waits)));
  expect_own(session.get(), waits);

  Asked last({noise({1, 16}, 4)});
  last.inside = [&] { batcher.reset(); };
  ASSERT_TRUE(ok(submit(batcher.get(), last)));
  last.wait();
  EXPECT_TRUE(ok(last.failure));
}

TEST(Batcher, blocked_callbacks_leave_a_worker_for_the_others) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const auto batcher = make_batcher(session.get(), {{"num_workers", "2"}});
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  std::atomic<bool> go_on{false};
  Asked blocks({noise({1, 16}, 1)});
  std::atomic<bool> inside{false};
  blocks.inside = [&] {
    inside = true;
    while (!go_on) std::this_thread::yield();
  };
  ASSERT_TRUE(ok(submit(batcher.get(), blocks)));
  while (!inside) std::this_thread::yield();
  Asked other({noise({1, 16}, 2)});
  ASSERT_TRUE(ok(submit(batcher.get(), other)));
  expect_own(session.get(), other);
  go_on = true;
  expect_own(session.get(), blocks);
}

TEST(Batcher, says_which_setting_is_wrong) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  const std::vector<std::pair<Settings, std::string>> cases{
      {{{"max_batch_size", "0"}}, "max_batch_size is 0"},
      {{{"min_batch_size", "33"}}, "min_batch_size is 33; it is 1 to 32"},
      {{{"max_latency_us", "3600000001"}}, "max_latency_us is 3600000001"},
      {{{"num_workers", "300"}}, "num_workers is 300"},
      {{{"queue_capacity", "0"}}, "queue_capacity is 0"},
      {{{"preferred_sizes", "1,x"}}, "a preferred size is 'x'"}};
  for (const auto& [settings, says] : cases) {
    const auto options = make_options(PFRT_OPTIONS_BATCHER, settings);
    pfrt_batcher* out = nullptr;
    EXPECT_TRUE(fails(api().batcher->create(session.get(), options.get(), &out),
                      PFRT_CODE_INVALID_ARGUMENT, {says}));
    EXPECT_EQ(out, nullptr);
  }
  const auto other = make_options(PFRT_OPTIONS_STREAMS);
  pfrt_batcher* out = nullptr;
  EXPECT_TRUE(fails(api().batcher->create(session.get(), other.get(), &out),
                    PFRT_CODE_INVALID_ARGUMENT, {"kind streams"}));
  EXPECT_TRUE(ok(api().batcher->create(session.get(), nullptr, &out)));
  const BatcherHandle batcher(out);
  Asked asked({noise({1, 16}, 1)});
  EXPECT_TRUE(fails(submit(batcher.get(), asked, &RequestDesc().in_stream(0)),
                    PFRT_CODE_INVALID_ARGUMENT, {"no streams"}));
  EXPECT_TRUE(fails(submit(batcher.get(), asked, &RequestDesc().within_ms(-1)),
                    PFRT_CODE_INVALID_ARGUMENT, {"timeout_ms is -1"}));
  Asked two({noise({1, 16}, 1), noise({1, 16}, 1)});
  EXPECT_TRUE(fails(submit(batcher.get(), two), PFRT_CODE_INPUT, {"2 inputs"}));
}

TEST(Batcher, a_forked_child_refuses_every_request) {
  const auto env = make_env();
  const auto session = rows_session(env.get(), rows_graph());
  auto batcher = make_batcher(session.get());
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  Asked before({noise({1, 16}, 1)});
  ASSERT_TRUE(ok(submit(batcher.get(), before)));
  expect_own(session.get(), before);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = submit(batcher.get(), before).code == PFRT_CODE_UNSUPPORTED &&
                         take(api().batcher->start(batcher.get())).code == PFRT_CODE_UNSUPPORTED &&
                         statistics_of(batcher.get()).submitted == 0;
    batcher.reset();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  Asked after({noise({1, 16}, 2)});
  ASSERT_TRUE(ok(submit(batcher.get(), after)));
  expect_own(session.get(), after);
}

}  // namespace
}  // namespace pfrt_test
