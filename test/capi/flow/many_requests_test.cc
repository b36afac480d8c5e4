// SPDX-License-Identifier: Apache-2.0
//
// Many requests from many threads, with random sizes, priorities, deadlines and cancels: each is
// answered once, with its own result or with a reason. PFRT_TEST_REQUESTS is how many.
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include "test/capi/flow/requests.h"

namespace pfrt_test {
namespace {

// Answers are checked where they come, since a million requests are not kept.
struct Checked {
  std::vector<float> x;
  int64_t rows = 0;
  uint32_t cancel = 0;
  std::atomic<int> calls{0};
  struct Totals* totals = nullptr;
};
struct Totals {
  std::atomic<uint64_t> right{0}, wrong{0}, cancelled{0}, late{0}, other{0}, twice{0};
  uint64_t all() const { return right + wrong + cancelled + late + other; }
};

void check(void* user, pfrt_response* response) {
  auto& own = *static_cast<Checked*>(user);
  Totals& totals = *own.totals;
  const Failure failure = take(response->status);
  if (failure.ok()) {
    const Array y = array_of(response->outputs[0]);
    const std::vector<float> got = y.as<float>();
    bool right = got.size() == own.x.size();
    for (size_t i = 0; right && i < got.size(); ++i) right = got[i] == 2 * own.x[i] + 1;
    ++(right ? totals.right : totals.wrong);
  } else if (failure.code == PFRT_CODE_CANCELLED) {
    ++totals.cancelled;
  } else if (failure.code == PFRT_CODE_DEADLINE) {
    ++totals.late;
  } else {
    ++totals.other;
  }
  for (size_t i = 0; i < response->output_count; ++i) api().value->release(response->outputs[i]);
  if (own.calls.fetch_add(1) != 0) ++totals.twice;
}

uint64_t requests() {
  const char* const given = std::getenv("PFRT_TEST_REQUESTS");
  return given ? std::strtoull(given, nullptr, 10) : 20'000;
}

// y = 2 x + 1, by elements.
GraphBuilder plain_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", "L"});
  g.constant("two", floats({}, {2}));
  g.constant("one", floats({}, {1}));
  g.node("Mul", {"x", "two"}, {"m"});
  g.node("Add", {"m", "one"}, {"y"});
  g.output("y");
  return g;
}

template <typename Submit, typename Cancel>
void send_all(Submit submit, Cancel cancel, Totals& totals, uint64_t& refused) {
  constexpr uint64_t kThreads = 4;
  std::atomic<uint64_t> busy{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      const auto below = [&](uint32_t n) { return static_cast<int64_t>(random() % n); };
      std::deque<Checked> kept;
      for (uint64_t i = 0; i < requests() / kThreads; ++i) {
        while (!kept.empty() && kept.front().calls.load() != 0) kept.pop_front();
        Checked& one = kept.emplace_back();
        one.totals = &totals;
        one.rows = 1 + (below(8) == 0 ? below(40) : below(3));
        const int64_t length = 1 + below(4) * 8;
        for (int64_t k = 0; k < one.rows * length; ++k)
          one.x.push_back(static_cast<float>(below(1000)));
        const Array x = floats({one.rows, length}, one.x);
        Handle<pfrt_value> value = value_of(x);
        pfrt_io io{};
        io.struct_size = sizeof io;
        io.value = value.get();
        RequestDesc desc;
        desc.with_priority(below(3));
        if (below(10) == 0) desc.within_ms(1 + below(3));
        if (below(10) == 0) desc.cancelled_by(&one.cancel);
        uint64_t id = 0;
        for (;;) {
          const Failure failure = take(submit(&io, &desc, &one, &id));
          if (failure.ok()) break;
          ASSERT_EQ(failure.code, PFRT_CODE_BUSY) << failure.message;
          ++busy;
          std::this_thread::yield();
        }
        if (desc.cancel && below(2) == 0) std::atomic_ref(one.cancel).store(1);
        if (below(20) == 0) {
          const Failure failure = take(cancel(id));
          ASSERT_TRUE(failure.ok() || failure.code == PFRT_CODE_NOT_FOUND) << failure.message;
        }
      }
      while (!kept.empty()) {
        while (kept.front().calls.load() == 0) std::this_thread::yield();
        kept.pop_front();
      }
    });
  for (std::thread& thread : threads) thread.join();
  refused = busy;
}

void expect_all(const Totals& totals) {
  EXPECT_EQ(totals.all(), requests() / 4 * 4);
  EXPECT_EQ(totals.wrong, 0u);
  EXPECT_EQ(totals.other, 0u);
  EXPECT_EQ(totals.twice, 0u);
  EXPECT_GT(totals.right, requests() / 2);
  EXPECT_GT(totals.cancelled, 0u);
}

TEST(ManyRequests, of_a_batcher_are_answered_once_with_their_own) {
  const auto env = make_env();
  const auto session = make_session(env.get(), plain_graph());
  const auto batcher = make_batcher(
      session.get(), {{"by_priority", "true"}, {"queue_capacity", "64"}, {"max_batch_size", "16"}});
  ASSERT_TRUE(ok(api().batcher->start(batcher.get())));
  Totals totals;
  uint64_t refused = 0;
  send_all(
      [&](const pfrt_io* io, const pfrt_request_desc* desc, Checked* one, uint64_t* id) {
        return api().batcher->submit(batcher.get(), io, 1, desc, &check, one, id);
      },
      [&](uint64_t id) { return api().batcher->cancel(batcher.get(), id); }, totals, refused);
  ASSERT_TRUE(ok(api().batcher->flush(batcher.get())));
  expect_all(totals);
  const pfrt_batcher_statistics s = statistics_of(batcher.get());
  EXPECT_EQ(s.submitted, totals.all());
  EXPECT_EQ(s.completed, totals.right);
  EXPECT_EQ(s.cancelled, totals.cancelled);
  EXPECT_EQ(s.late, totals.late);
  EXPECT_EQ(s.refused, refused);
  EXPECT_EQ(s.queued + s.running, 0u);
}

TEST(ManyRequests, of_streams_are_answered_once_with_their_own) {
  const auto env = make_env();
  const auto session = make_session(env.get(), plain_graph());
  const auto streams = make_streams(session.get(), {{"max_pending", "64"}});
  ASSERT_TRUE(ok(api().streams->start(streams.get())));
  Totals totals;
  uint64_t refused = 0;
  send_all(
      [&](const pfrt_io* io, const pfrt_request_desc* desc, Checked* one, uint64_t* id) {
        return api().streams->submit(streams.get(), io, 1, desc, &check, one, id);
      },
      [&](uint64_t id) { return api().streams->cancel(streams.get(), id); }, totals, refused);
  ASSERT_TRUE(ok(api().streams->synchronize(streams.get(), 0)));
  expect_all(totals);
  const pfrt_streams_statistics s = statistics_of(streams.get());
  EXPECT_EQ(s.submitted, totals.all());
  EXPECT_EQ(s.completed, totals.right);
  EXPECT_EQ(s.refused, refused);
  EXPECT_EQ(s.pending, 0u);
}

}  // namespace
}  // namespace pfrt_test
