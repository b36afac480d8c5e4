// SPDX-License-Identifier: Apache-2.0
//
// run_async: one callback a call, on a thread of the runtime, with everything kept until then.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// A single asynchronous run: its input, and the results that the callback brought.
struct Arrival {
  std::mutex mutex;
  std::condition_variable came;
  Array input;
  int calls = 0;
  Failure failure;
  std::vector<Array> outputs;
  std::thread::id thread;
  std::function<void()> inside;

  static void done(void* user, pfrt_status* status, pfrt_io* outputs, size_t count) {
    auto& self = *static_cast<Arrival*>(user);
    Failure failure = take(status);
    std::vector<Array> arrays;
    for (size_t i = 0; i < count; ++i) {
      if (outputs[i].value && failure.ok()) arrays.push_back(array_of(outputs[i].value));
      api().value->release(outputs[i].value);
    }
    if (self.inside) self.inside();
    const std::lock_guard<std::mutex> lock(self.mutex);
    ++self.calls;
    self.failure = std::move(failure);
    self.outputs = std::move(arrays);
    self.thread = std::this_thread::get_id();
    self.came.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    came.wait(lock, [&] { return calls > 0; });
  }
};

Failure start(pfrt_session* session, const Array& x, Arrival& arrival,
              const pfrt_run_desc* desc = nullptr) {
  arrival.input = x;  // a view of it must outlive the run
  pfrt_io in = arrival.input.io(), out{};
  out.struct_size = sizeof out;
  return take(api().session->run_async(session, &in, 1, &out, 1, desc, &Arrival::done, &arrival));
}

TEST(RunAsync, calls_back_once_on_a_thread_of_the_runtime) {
  const auto env = make_env();
  const auto session = make_session(env.get(), add_graph());
  const Array x = floats({2, 3}, {0, 0, 0, 1, 1, 1});
  Arrival arrivals[20];
  for (Arrival& a : arrivals) ASSERT_TRUE(ok(start(session.get(), x, a)));
  for (Arrival& a : arrivals) {
    a.wait();
    EXPECT_TRUE(ok(a.failure));
    ASSERT_EQ(a.outputs.size(), 1u);
    EXPECT_EQ(a.outputs[0].as<float>(), (std::vector<float>{1, 2, 3, 2, 3, 4}));
    EXPECT_NE(a.thread, std::this_thread::get_id());
  }
  for (Arrival& a : arrivals) EXPECT_EQ(a.calls, 1);
}

TEST(RunAsync, tells_of_failures_in_the_callback) {
  const auto env = make_env();
  const auto session = make_session(env.get(), add_graph());
  Arrival wrong, cancelled;
  ASSERT_TRUE(ok(start(session.get(), floats({1, 2}, {0, 0}), wrong)));
  wrong.wait();
  EXPECT_TRUE(fails(wrong.failure, PFRT_CODE_SHAPE_MISMATCH, {"'x'"}));
  EXPECT_TRUE(wrong.outputs.empty());

  const uint32_t cancel = 1;
  const RunDesc options({.cancel = &cancel});
  ASSERT_TRUE(ok(start(session.get(), floats({1, 3}, {0, 0, 0}), cancelled, options.get())));
  cancelled.wait();
  EXPECT_TRUE(fails(cancelled.failure, PFRT_CODE_CANCELLED, {"cancelled"}));
}

TEST(RunAsync, refuses_at_once_what_cannot_start) {
  const auto env = make_env();
  const auto session = make_session(env.get(), add_graph());
  const Array x = floats({1, 3}, {0, 0, 0});
  pfrt_io in = x.io(), out{};
  out.struct_size = sizeof out;
  Arrival never;
  EXPECT_TRUE(
      fails(api().session->run_async(session.get(), &in, 1, &out, 1, nullptr, nullptr, nullptr),
            PFRT_CODE_INVALID_ARGUMENT, {"done"}));
  EXPECT_TRUE(
      fails(api().session->run_async(nullptr, &in, 1, &out, 1, nullptr, &Arrival::done, &never),
            PFRT_CODE_INVALID_ARGUMENT, {"session"}));
  EXPECT_TRUE(fails(
      api().session->run_async(session.get(), &in, 1, &out, 0, nullptr, &Arrival::done, &never),
      PFRT_CODE_INPUT, {"0 outputs"}));
  EXPECT_EQ(never.calls, 0);
}

TEST(RunAsync, keeps_what_it_needs) {
  Arrival arrival;
  {
    auto env = make_env();
    auto session = make_session(env.get(), slow_graph());
    const RunDesc options({.timeout_ms = 200});
    const auto x = value_of(floats({512, 512}, std::vector<float>(512 * 512, 0.5f)));
    pfrt_io in{}, out{};
    in.struct_size = out.struct_size = sizeof out;
    in.value = x.get();
    ASSERT_TRUE(ok(api().session->run_async(session.get(), &in, 1, &out, 1, options.get(),
                                            &Arrival::done, &arrival)));
  }  // only the run holds the environment, session, settings and input now
  arrival.wait();
  EXPECT_TRUE(fails(arrival.failure, PFRT_CODE_DEADLINE, {"deadline"}));
}

TEST(RunAsync, the_callback_may_release_the_session_and_environment) {
  for (int round = 0; round < 20; ++round) {
    Arrival arrival;
    auto env = make_env();
    auto session = make_session(env.get(), add_graph());
    arrival.inside = [&] {
      session.reset();
      env.reset();
    };
    ASSERT_TRUE(ok(start(session.get(), floats({1, 3}, {0, 0, 0}), arrival)));
    arrival.wait();
    EXPECT_TRUE(ok(arrival.failure));
    EXPECT_EQ(arrival.outputs[0].as<float>(), (std::vector<float>{1, 2, 3}));
  }
}

TEST(RunAsync, the_callback_may_start_the_next_run) {
  const auto env = make_env();
  const auto session = make_session(env.get(), add_graph());
  Arrival first, second;
  first.inside = [&] { EXPECT_TRUE(ok(start(session.get(), floats({1, 3}, {1, 1, 1}), second))); };
  ASSERT_TRUE(ok(start(session.get(), floats({1, 3}, {0, 0, 0}), first)));
  first.wait();
  second.wait();
  EXPECT_EQ(second.outputs[0].as<float>(), (std::vector<float>{2, 3, 4}));
}

TEST(RunAsync, writes_into_memory_of_the_caller) {
  const auto env = make_env();
  const auto session = make_session(env.get(), add_graph());
  const Array x = floats({1, 3}, {0, 0, 0});
  Array y = floats({1, 3}, {9, 9, 9});
  pfrt_io in = x.io(), out = y.io();
  Arrival arrival;
  ASSERT_TRUE(ok(
      api().session->run_async(session.get(), &in, 1, &out, 1, nullptr, &Arrival::done, &arrival)));
  arrival.wait();
  EXPECT_TRUE(ok(arrival.failure));
  EXPECT_TRUE(arrival.outputs.empty());
  EXPECT_EQ(y.as<float>(), (std::vector<float>{1, 2, 3}));
}

// An executor that runs its tasks when the test tells it to.
struct Held {
  struct Submitted {
    void (*fn)(void*);
    void* arg;
  };
  std::vector<Submitted> tasks;
  bool full = false;

  pfrt_executor table() {
    pfrt_executor t{};
    t.struct_size = sizeof t;
    t.user = this;
    t.loop = [](void*, uint32_t, uint64_t n, void (*fn)(void*, uint64_t, uint32_t), void* arg) {
      for (uint64_t i = 0; i < n; ++i) fn(arg, i, 0);
    };
    t.submit = [](void* user, void (*fn)(void*), void* arg) -> pfrt_code {
      auto& self = *static_cast<Held*>(user);
      if (self.full) return PFRT_CODE_OUT_OF_MEMORY;
      self.tasks.push_back({fn, arg});
      return PFRT_CODE_OK;
    };
    return t;
  }
  void run_one() {
    const Submitted task = tasks.front();
    tasks.erase(tasks.begin());
    task.fn(task.arg);
  }
};

TEST(RunAsync, of_higher_priority_is_started_first) {
  Held held;
  const auto env = make_env();
  const pfrt_executor table = held.table();
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &table)));
  const auto session = make_session(env.get(), add_graph());
  const Array x = floats({1, 3}, {1, 2, 3});
  std::vector<int> order;
  Arrival arrivals[5];
  const int64_t priorities[] = {0, 3, 0, 7, 3};
  for (int i = 0; i < 5; ++i) {
    arrivals[i].inside = [&order, i] { order.push_back(i); };
    const RunDesc options({.priority = priorities[i]});
    ASSERT_TRUE(ok(start(session.get(), x, arrivals[i], options.get())));
  }
  ASSERT_EQ(held.tasks.size(), 5u);
  while (!held.tasks.empty()) held.run_one();
  EXPECT_EQ(order, (std::vector<int>{3, 1, 4, 0, 2}));
  for (const Arrival& arrival : arrivals) EXPECT_TRUE(arrival.failure.ok());
}

// A value that the result cannot be written into is replaced, and lives as long as its references.
TEST(RunAsync, replaces_a_sequence_in_the_place_of_an_output) {
  const auto env = make_env();
  const auto session = make_session(env.get(), add_graph());
  const Array x = floats({1, 3}, {1, 2, 3});
  static int released;
  const auto count = [](void*, void*) { ++released; };
  for (const bool async : {false, true}) {
    released = 0;
    const Array memory = x;
    const pfrt_tensor view = memory.view();
    pfrt_value *element = nullptr, *sequence = nullptr;
    ASSERT_TRUE(ok(api().value->wrap_tensor(&view, count, nullptr, &element)));
    ASSERT_TRUE(ok(api().value->create_sequence(PFRT_DTYPE_FLOAT32, &element, 1, &sequence)));
    api().value->release(element);
    const pfrt_io in = x.io();
    pfrt_io out{};
    out.struct_size = sizeof out;
    out.value = sequence;
    if (async) {
      Arrival arrival;
      ASSERT_TRUE(ok(take(api().session->run_async(session.get(), &in, 1, &out, 1, nullptr,
                                                   &Arrival::done, &arrival))));
      arrival.wait();
      ASSERT_TRUE(ok(arrival.failure));
      EXPECT_EQ(arrival.outputs.at(0).as<float>(), (std::vector<float>{2, 4, 6}));
    } else {
      ASSERT_TRUE(ok(take(api().session->run(session.get(), &in, 1, &out, 1, nullptr))));
      EXPECT_NE(out.value, sequence);
      api().value->release(out.value);
    }
    EXPECT_EQ(released, 0);
    api().value->release(sequence);
    EXPECT_EQ(released, 1);
  }
}

TEST(RunAsync, is_refused_where_as_many_wait_as_may) {
  Held held;
  const auto env = make_env({{"async_queue", "2"}});
  const pfrt_executor table = held.table();
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &table)));
  const auto session = make_session(env.get(), add_graph());
  const Array x = floats({1, 3}, {1, 2, 3});
  Arrival arrivals[4];
  ASSERT_TRUE(ok(start(session.get(), x, arrivals[0])));
  ASSERT_TRUE(ok(start(session.get(), x, arrivals[1])));
  EXPECT_TRUE(
      fails(start(session.get(), x, arrivals[2]), PFRT_CODE_BUSY, {"2 wait", "async_queue"}));
  held.run_one();
  ASSERT_TRUE(ok(start(session.get(), x, arrivals[2])));
  // A run that gets no thread neither waits for ever nor takes another's place in the queue.
  held.run_one();
  held.full = true;
  EXPECT_FALSE(start(session.get(), x, arrivals[3]).ok());
  held.full = false;
  ASSERT_TRUE(ok(start(session.get(), x, arrivals[3])));
  while (!held.tasks.empty()) held.run_one();
  for (const Arrival& arrival : arrivals) EXPECT_EQ(arrival.calls, 1);
}

}  // namespace
}  // namespace pfrt_test
