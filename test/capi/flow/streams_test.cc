// SPDX-License-Identifier: Apache-2.0
//
// Streams: each runs its requests in order, streams overlap, answers come on other threads.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <thread>

#include "test/capi/flow/requests.h"

namespace pfrt_test {
namespace {

using std::chrono::milliseconds;

// A request that takes seconds, unless it is stopped.
Asked slow_request(const pfrt_session* session) {
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  EXPECT_TRUE(ok(api().session->input_at(session, 0, &info)));
  std::vector<int64_t> dims(info.dims, info.dims + info.rank);
  for (int64_t& dim : dims)
    if (dim < 0) dim = 64;
  return Asked({noise(dims, 1)});
}

TEST(Streams, answer_every_request) {
  const auto env = make_env();
  const auto session = make_session(env.get(), rows_graph());
  const auto streams = make_streams(session.get(), {{"num_streams", "3"}, {"max_pending", "50"}});
  EXPECT_EQ(api().streams->count(streams.get()), 3u);
  std::deque<Asked> asked;
  for (uint32_t i = 0; i < 50; ++i) asked.emplace_back(std::vector{noise({1 + i % 3, 16}, i)});
  for (Asked& one : asked) ASSERT_TRUE(ok(submit(streams.get(), one)));
  Asked more({noise({1, 16}, 1)});
  EXPECT_TRUE(fails(submit(streams.get(), more), PFRT_CODE_BUSY, {"50", "max_pending"}));
  EXPECT_TRUE(fails(api().streams->synchronize(streams.get(), 0), PFRT_CODE_BUSY,
                    {"until the streams are started"}));
  ASSERT_TRUE(ok(api().streams->start(streams.get())));
  ASSERT_TRUE(ok(api().streams->synchronize(streams.get(), 0)));
  std::vector<int> by_stream(3);
  for (Asked& one : asked) {
    EXPECT_TRUE(one.answered());
    expect_own(session.get(), one);
    ++by_stream[one.facts.stream];
    EXPECT_GT(one.facts.ran_ns, 0u);
    EXPECT_GE(one.facts.latency_ns, one.facts.queued_ns + one.facts.ran_ns);
  }
  for (const int number : by_stream) EXPECT_GE(number, 16);  // the least busy one is chosen
  const pfrt_streams_statistics s = statistics_of(streams.get());
  EXPECT_EQ(s.submitted, 50u);
  EXPECT_EQ(s.completed, 50u);
  EXPECT_EQ(s.refused, 1u);
  EXPECT_EQ(s.pending + s.failed + s.cancelled + s.late, 0u);
  EXPECT_GE(s.latency_ns, s.queued_ns + s.ran_ns);
  EXPECT_GT(s.ran_ns, 0);
  std::vector<double> shares(4, -1);
  ASSERT_TRUE(ok(api().streams->utilization(streams.get(), shares.data(), shares.size())));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(shares[i] > 0 && shares[i] <= 1) << shares[i];
  EXPECT_EQ(shares[3], 0);
  ASSERT_TRUE(ok(api().streams->reset_statistics(streams.get())));
  EXPECT_EQ(statistics_of(streams.get()).submitted, 0u);
}

TEST(Streams, one_stream_runs_in_order_and_higher_priorities_first) {
  const auto env = make_env();
  const auto session = make_session(env.get(), rows_graph());
  const auto streams =
      make_streams(session.get(), {{"num_streams", "2"}, {"callback_threads", "1"}});
  std::vector<size_t> order;
  std::deque<Asked> asked;
  const std::vector<int64_t> priorities{0, 0, 1000, 0};
  for (size_t i = 0; i < priorities.size(); ++i) {
    asked.emplace_back(std::vector{noise({1, 16}, static_cast<uint32_t>(i))});
    asked.back().inside = [&order, i] { order.push_back(i); };
  }
  for (size_t i = 0; i < priorities.size(); ++i)
    ASSERT_TRUE(ok(
        submit(streams.get(), asked[i], &RequestDesc().in_stream(1).with_priority(priorities[i]))));
  EXPECT_EQ(api().streams->select(streams.get()), 0u);
  ASSERT_TRUE(ok(api().streams->start(streams.get())));
  ASSERT_TRUE(ok(api().streams->synchronize(streams.get(), 2)));
  for (Asked& one : asked) {
    expect_own(session.get(), one);
    EXPECT_EQ(one.facts.stream, 1u);
  }
  EXPECT_EQ(order, (std::vector<size_t>{2, 0, 1, 3}));
  Asked none({noise({1, 16}, 1)});
  EXPECT_TRUE(fails(submit(streams.get(), none, &RequestDesc().in_stream(2)),
                    PFRT_CODE_INVALID_ARGUMENT, {"stream 2 of 2"}));
  EXPECT_TRUE(fails(api().streams->synchronize(streams.get(), 3), PFRT_CODE_INVALID_ARGUMENT,
                    {"stream 2 of 2"}));
}

TEST(Streams, cancel_ends_what_waits_and_what_runs) {
  const auto env = make_env();
  const auto session = make_session(env.get(), slow_graph());
  const auto streams = make_streams(session.get(), {{"num_streams", "1"}});
  Asked runs = Asked(slow_request(session.get()).inputs),
        waits = Asked(slow_request(session.get()).inputs),
        late = Asked(slow_request(session.get()).inputs);
  ASSERT_TRUE(ok(api().streams->start(streams.get())));
  ASSERT_TRUE(ok(submit(streams.get(), runs)));
  ASSERT_TRUE(ok(submit(streams.get(), waits)));
  ASSERT_TRUE(ok(submit(streams.get(), late, &RequestDesc().within_ms(30))));
  std::this_thread::sleep_for(milliseconds(10));
  ASSERT_TRUE(ok(api().streams->cancel(streams.get(), waits.id)));
  EXPECT_FALSE(runs.answered());
  ASSERT_TRUE(ok(api().streams->cancel(streams.get(), runs.id)));
  for (Asked* one : {&runs, &waits, &late}) one->wait();
  EXPECT_TRUE(fails(runs.failure, PFRT_CODE_CANCELLED, {"cancelled"}));
  EXPECT_TRUE(fails(waits.failure, PFRT_CODE_CANCELLED, {"cancelled"}));
  EXPECT_TRUE(fails(late.failure, PFRT_CODE_DEADLINE, {"deadline"}));
  ASSERT_TRUE(ok(api().streams->synchronize(streams.get(), 0)));
  EXPECT_TRUE(fails(api().streams->cancel(streams.get(), runs.id), PFRT_CODE_NOT_FOUND,
                    {"answered already"}));
  const pfrt_streams_statistics s = statistics_of(streams.get());
  EXPECT_EQ(s.cancelled, 2u);
  EXPECT_EQ(s.late, 1u);
}

TEST(Streams, blocked_callbacks_do_not_hold_the_runs_back) {
  const auto env = make_env();
  const auto session = make_session(env.get(), rows_graph());
  const auto streams =
      make_streams(session.get(), {{"num_streams", "1"}, {"callback_threads", "1"}});
  ASSERT_TRUE(ok(api().streams->start(streams.get())));
  std::atomic<bool> inside{false}, go_on{false};
  Asked blocks({noise({1, 16}, 1)}), other({noise({1, 16}, 2)});
  blocks.inside = [&] {
    inside = true;
    while (!go_on) std::this_thread::yield();
  };
  ASSERT_TRUE(ok(submit(streams.get(), blocks)));
  while (!inside) std::this_thread::yield();
  ASSERT_TRUE(ok(submit(streams.get(), other)));
  // Its run is over though nobody can give the answer.
  for (double ran = 0; ran == 0; std::this_thread::yield())
    ran = statistics_of(streams.get()).completed == 2 ? 1 : 0;
  EXPECT_FALSE(other.answered());
  go_on = true;
  expect_own(session.get(), blocks);
  expect_own(session.get(), other);
}

TEST(Streams, one_run_at_a_time_where_they_do_not_overlap) {
  const auto env = make_env();
  const auto session = make_session(env.get(), rows_graph());
  const auto streams = make_streams(
      session.get(),
      {{"enable_pipelining", "false"}, {"callback_threads", "0"}, {"enable_profiling", "false"}});
  std::deque<Asked> asked;
  for (uint32_t i = 0; i < 40; ++i) asked.emplace_back(std::vector{noise({1, 16}, i)});
  for (Asked& one : asked) ASSERT_TRUE(ok(submit(streams.get(), one)));
  ASSERT_TRUE(ok(api().streams->start(streams.get())));
  for (Asked& one : asked) {
    expect_own(session.get(), one);
    EXPECT_EQ(one.facts.queued_ns + one.facts.ran_ns, 0u);  // nobody asked for times
  }
  EXPECT_EQ(statistics_of(streams.get()).ran_ns, 0);
}

TEST(Streams, stop_answers_what_waits_and_a_callback_may_release_them) {
  const auto env = make_env();
  const auto session = make_session(env.get(), rows_graph());
  auto streams = make_streams(session.get());
  Asked waits({noise({1, 16}, 1)}), later({noise({1, 16}, 2)}), last({noise({1, 16}, 3)});
  ASSERT_TRUE(ok(submit(streams.get(), waits)));
  ASSERT_TRUE(ok(api().streams->stop(streams.get())));
  EXPECT_TRUE(fails(waits.failure, PFRT_CODE_CANCELLED, {"stopped while it waited"}));
  Asked refused({noise({1, 16}, 4)});
  EXPECT_TRUE(fails(submit(streams.get(), refused), PFRT_CODE_CANCELLED, {"start them again"}));
  ASSERT_TRUE(ok(api().streams->start(streams.get())));
  later.inside = [&] {
    EXPECT_TRUE(fails(api().streams->synchronize(streams.get(), 0), PFRT_CODE_INVALID_ARGUMENT,
                      {"wait for itself"}));
    EXPECT_TRUE(ok(api().streams->stop(streams.get())));
    EXPECT_TRUE(fails(api().streams->start(streams.get()), PFRT_CODE_BUSY, {"own threads"}));
  };
  ASSERT_TRUE(ok(submit(streams.get(), later)));
  expect_own(session.get(), later);
  ASSERT_TRUE(ok(api().streams->start(streams.get())));
  last.inside = [&] { streams.reset(); };
  ASSERT_TRUE(ok(submit(streams.get(), last)));
  expect_own(session.get(), last);
}

TEST(Streams, stop_ends_threads_that_answer_late_requests) {
  const auto env = make_env();
  const auto session = make_session(env.get(), rows_graph());
  for (int round = 0; round < 50; ++round) {
    const auto streams = make_streams(session.get(), {{"callback_threads", "0"}});
    Asked late({noise({1, 16}, 1)});
    std::atomic<bool> inside{false};
    late.inside = [&] {
      inside = true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    };
    ASSERT_TRUE(ok(submit(streams.get(), late)));
    ASSERT_TRUE(ok(api().streams->cancel(streams.get(), late.id)));
    ASSERT_TRUE(ok(api().streams->start(streams.get())));
    while (!inside) std::this_thread::yield();
    ASSERT_TRUE(ok(api().streams->stop(streams.get())));
    EXPECT_TRUE(late.answered());
  }
}

TEST(Streams, say_which_setting_is_wrong) {
  const auto env = make_env();
  const auto session = make_session(env.get(), rows_graph());
  for (const auto& [setting, says] : std::vector<std::pair<Settings, std::string>>{
           {{{"num_streams", "0"}}, "num_streams is 0"},
           {{{"callback_threads", "300"}}, "callback_threads is 300"},
           {{{"max_pending", "0"}}, "max_pending is 0"}}) {
    const auto options = make_options(PFRT_OPTIONS_STREAMS, setting);
    pfrt_streams* out = nullptr;
    EXPECT_TRUE(fails(api().streams->create(session.get(), options.get(), &out),
                      PFRT_CODE_INVALID_ARGUMENT, {says}));
  }
  const auto other = make_options(PFRT_OPTIONS_BATCHER);
  pfrt_streams* out = nullptr;
  EXPECT_TRUE(fails(api().streams->create(session.get(), other.get(), &out),
                    PFRT_CODE_INVALID_ARGUMENT, {"kind batcher"}));
}

TEST(Streams, a_forked_child_refuses_every_request) {
  const auto env = make_env();
  const auto session = make_session(env.get(), rows_graph());
  auto streams = make_streams(session.get());
  ASSERT_TRUE(ok(api().streams->start(streams.get())));
  Asked asked({noise({1, 16}, 1)});
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = submit(streams.get(), asked).code == PFRT_CODE_UNSUPPORTED;
    streams.reset();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_TRUE(ok(submit(streams.get(), asked)));
  expect_own(session.get(), asked);
}

}  // namespace
}  // namespace pfrt_test
