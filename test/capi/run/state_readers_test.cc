// SPDX-License-Identifier: Apache-2.0
//
// Runs that keep a state: what they see, what they leave as it was, and their turns beside runs
// that continue it.
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "test/capi/plugin/custom_operator.h"
#include "test/capi/run/states.h"

namespace pfrt_test {
namespace {

// w = Within(x), h_out = w + h, y = -h_out.
GraphBuilder sum_within() {
  GraphBuilder g;
  g.opset(1, "acme");
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.node("Within", {"x"}, {"w"}, {}, {}, "acme");
  g.node("Add", {"w", "h"}, {"h_out"});
  g.node("Neg", {"h_out"}, {"y"});
  g.output("y");
  g.output("h_out");
  return g;
}

class StateReaders : public CacheStates {
 protected:
  // The operator's |compute| doubles its input.
  StateReaders() : within_("Within") {
    within_.infer = infer_like_input;
    within_.compute = compute_scaled;
    EXPECT_TRUE(ok(within_.add_to(env_.get())));
  }
  TestOperator within_;
};

TEST_F(StateReaders, see_what_the_next_run_would) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get()), keeps = keeping(state.get());
  const auto x = [](int64_t t, uint32_t seed) {
    return floats({1, 2, t, 3}, random_floats(static_cast<size_t>(6 * t), seed));
  };
  Array kept, again, y;
  // A state that is new stays so.
  ASSERT_TRUE(ok(step(session.get(), keeps.get(), x(2, 1), &kept)));
  EXPECT_EQ(value_in(state.get(), "past_0").dtype, uint32_t{PFRT_DTYPE_UNSET});
  ASSERT_TRUE(ok(step(session.get(), options.get(), x(2, 1), &y)));
  EXPECT_EQ(kept.bytes, y.bytes);
  for (uint32_t seed = 2; seed < 8; ++seed) {
    const Array before = value_in(state.get(), "past_0");
    ASSERT_TRUE(ok(step(session.get(), keeps.get(), x(3, 99))));
    ASSERT_TRUE(ok(step(session.get(), keeps.get(), x(1, seed), &kept)));
    ASSERT_TRUE(ok(step(session.get(), keeps.get(), x(1, seed), &again)));
    EXPECT_EQ(value_in(state.get(), "past_0").bytes, before.bytes);
    EXPECT_EQ(api().state->length(state.get()), seed);
    ASSERT_TRUE(ok(step(session.get(), options.get(), x(1, seed), &y)));
    EXPECT_EQ(kept.bytes, y.bytes);
    EXPECT_EQ(again.bytes, y.bytes);
  }
}

TEST_F(StateReaders, give_their_values_to_the_caller_only) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get()), keeps = keeping(state.get());
  const Array x = floats({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(ok(step(session.get(), options.get(), x)));
  const Array before = value_in(state.get(), "past_0");
  pfrt_io inputs[2] = {x.io(), {}}, outputs[2] = {};
  inputs[1].struct_size = outputs[0].struct_size = sizeof(pfrt_io);
  // The caller's memory gets the value itself.
  Array room = floats({1, 2, 2, 3}, Values(12));
  outputs[1] = room.io();
  ASSERT_TRUE(ok(api().session->run(session.get(), inputs, 2, outputs, 2, keeps.get())));
  const Handle<pfrt_value> y(outputs[0].value);
  EXPECT_EQ(room.as<float>(), (Values{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(value_in(state.get(), "past_0").bytes, before.bytes);

  const RunDesc none({.flags = PFRT_RUN_KEEPS_STATE});
  EXPECT_TRUE(fails(step(session.get(), none.get(), x), PFRT_CODE_INVALID_ARGUMENT,
                    {"keep the state", "give it one"}));
  inputs[1] = x.io();
  outputs[0] = outputs[1] = {};
  outputs[0].struct_size = outputs[1].struct_size = sizeof(pfrt_io);
  EXPECT_TRUE(fails(api().session->run(session.get(), inputs, 2, outputs, 2, keeps.get()),
                    PFRT_CODE_INPUT, {"'past_0'", "the state's"}));
}

TEST_F(StateReaders, write_over_nothing_of_the_state) {
  const auto session = make_session(env_.get(), accumulator());
  const StateHandle state = make_state(session.get());
  const auto keeps = keeping(state.get());
  // The state has a value in the client's memory, which is the output's place too.
  Array shared = floats({1, 2}, {10, 20});
  const pfrt_tensor view = shared.view();
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->wrap_tensor(&view, nullptr, nullptr, &raw)));
  const Handle<pfrt_value> value(raw);
  ASSERT_TRUE(ok(api().state->set(state.get(), str("h"), raw)));
  const Array x = floats({1, 2}, {1, 2});
  const pfrt_string in = str("x"), out = str("h_out");
  const pfrt_io fed = x.io();
  for (const pfrt_io_flags flags : {pfrt_io_flags{0}, pfrt_io_flags{PFRT_IO_IN_PLACE}}) {
    pfrt_io place = shared.io();
    place.flags = flags;
    EXPECT_TRUE(
        fails(api().session->run_named(session.get(), &in, &fed, 1, &out, &place, 1, keeps.get()),
              PFRT_CODE_INVALID_ARGUMENT, {"'h_out'", "overlaps"}));
  }
  EXPECT_EQ(shared.as<float>(), (Values{10, 20}));
  // A failure changes nothing either.
  EXPECT_TRUE(fails(step(session.get(), keeps.get(), floats({3, 2}, Values(6))),
                    PFRT_CODE_SHAPE_MISMATCH, {"'h'"}));
  Array y;
  ASSERT_TRUE(ok(step(session.get(), keeps.get(), x, &y)));
  EXPECT_EQ(y.as<float>(), (Values{-11, -22}));
}

// Waits until all have come, or for as long as no machine needs.
class Meeting {
 public:
  explicit Meeting(int count) : left_(count) {}
  bool come() {
    std::unique_lock lock(mutex_);
    if (--left_ == 0) came_.notify_all();
    return came_.wait_for(lock, std::chrono::minutes(2), [&] { return left_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  int left_;
};

TEST_F(StateReaders, are_under_way_at_once) {
  constexpr int kRuns = 3;
  const auto session = make_session(env_.get(), sum_within());
  const StateHandle state = make_state(session.get());
  const auto value = value_of(floats({1, 2}, {100, 200}));
  ASSERT_TRUE(ok(api().state->set(state.get(), str("h"), value.get())));
  Meeting all(kRuns);
  std::atomic<int> met{0};
  within_.compute = [&](const pfrt_op_compute* call) {
    met += all.come();
    // The state can be read meanwhile, and not be changed.
    EXPECT_EQ(value_in(state.get(), "h").as<float>(), (Values{100, 200}));
    EXPECT_EQ(value_in(clone(state.get()).get(), "h").as<float>(), (Values{100, 200}));
    EXPECT_TRUE(fails(api().state->set(state.get(), str("h"), value.get()), PFRT_CODE_BUSY,
                      {"a run has the state"}));
    return compute_scaled(call);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kRuns; ++i)
    threads.emplace_back([&, i] {
      Array y;
      const auto keeps = keeping(state.get());
      const auto n = static_cast<float>(i);
      EXPECT_TRUE(ok(step(session.get(), keeps.get(), floats({1, 2}, {n, 0}), &y)));
      EXPECT_EQ(y.as<float>(), (Values{-100 - 2 * n, -200}));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met, kRuns);
  EXPECT_TRUE(ok(api().state->set(state.get(), str("h"), value.get())));
}

struct Result {
  std::promise<Values> y;
  static void done(void* user, pfrt_status* status, pfrt_io* outputs, size_t count) {
    const Failure failure = take(status);
    EXPECT_TRUE(ok(failure));
    Values first;
    for (size_t i = 0; i < count; ++i) {
      const Handle<pfrt_value> value(outputs[i].value);
      if (i == 0 && failure.ok()) first = array_of(value.get()).as<float>();
    }
    static_cast<Result*>(user)->y.set_value(first);
  }
};

// The first run keeps the state and is under way; then come one that continues it, one that keeps
// it, another that continues it, and so on.
TEST_F(StateReaders, take_turns_with_those_that_continue_it) {
  const auto session = make_session(env_.get(), sum_within());
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get()), keeps = keeping(state.get());
  std::promise<void> begun, go_on;
  std::atomic<bool> first{true};
  within_.compute = [&](const pfrt_op_compute* call) {
    if (first.exchange(false)) {
      begun.set_value();
      go_on.get_future().wait();
    }
    return compute_scaled(call);
  };
  const Array x = floats({1, 2}, {0.5F, 1});
  std::vector<Result> results(10);
  const auto start = [&](const pfrt_run_desc* desc, Result& result) {
    pfrt_io in[2] = {x.io(), {}}, out[2] = {};
    in[1].struct_size = out[0].struct_size = out[1].struct_size = sizeof(pfrt_io);
    ASSERT_TRUE(
        ok(api().session->run_async(session.get(), in, 2, out, 2, desc, &Result::done, &result)));
  };
  start(keeps.get(), results[0]);
  begun.get_future().wait();
  for (size_t i = 1; i < results.size(); ++i)
    start(i % 3 == 1 ? options.get() : keeps.get(), results[i]);
  EXPECT_EQ(value_in(state.get(), "h").dtype, uint32_t{PFRT_DTYPE_UNSET}) << "it can be read";
  go_on.set_value();
  float sum = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const Values y = results[i].y.get_future().get();
    EXPECT_EQ(y, (Values{-sum - 1, -2 * sum - 2})) << i;
    if (i % 3 == 1) ++sum;
  }
  EXPECT_EQ(value_in(state.get(), "h").as<float>(), (Values{sum, 2 * sum}));
}

TEST_F(StateReaders, may_stand_within_each_other) {
  const auto session = make_session(env_.get(), sum_within());
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get()), keeps = keeping(state.get());
  const Array x = floats({1, 2}, {1, 2});
  int depth = 0;
  within_.compute = [&](const pfrt_op_compute* call) {
    if (++depth == 1) {
      EXPECT_TRUE(ok(step(session.get(), keeps.get(), x)));
      EXPECT_TRUE(fails(step(session.get(), options.get(), x), PFRT_CODE_BUSY,
                        {"this thread is in a run that has it"}));
    }
    return compute_scaled(call);
  };
  ASSERT_TRUE(ok(step(session.get(), keeps.get(), x)));
  EXPECT_EQ(depth, 2);
  // Within a run that continues it, nobody can read what is being changed.
  within_.compute = [&](const pfrt_op_compute* call) {
    EXPECT_TRUE(fails(step(session.get(), keeps.get(), x), PFRT_CODE_BUSY, {"use a clone"}));
    return compute_scaled(call);
  };
  EXPECT_TRUE(ok(step(session.get(), options.get(), x)));
}

TEST_F(StateReaders, leave_a_cache_in_place_as_it_was) {
  constexpr int64_t kRoom = 2000;
  const auto session = make_session(env_.get(), scattered_cache(kRoom));
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get()), keeps = keeping(state.get());
  // It leaves no memory for a second cache, of 48,000 bytes.
  const RunDesc little({.memory_limit = 20000, .state = state.get()});
  Array y;
  for (int64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(ok(write(session.get(), options.get(), i, 1)));
  }
  const Array before = value_in(state.get(), "past");
  for (int64_t i = 3; i < 20; ++i) {
    ASSERT_TRUE(ok(write(session.get(), keeps.get(), i, 100, &y)));
    EXPECT_EQ(y.as<float>(), Values(6, 103));
    EXPECT_EQ(value_in(state.get(), "past").bytes, before.bytes);
  }
  ASSERT_TRUE(ok(write(session.get(), keeps.get(), 1, 50, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 52));
  // The next run writes over it where it is, as ever.
  ASSERT_TRUE(ok(write(session.get(), little.get(), 3, 7, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 10));
  // So it does after a run that failed.
  EXPECT_FALSE(write(session.get(), keeps.get(), kRoom, 7).ok());
  ASSERT_TRUE(ok(write(session.get(), little.get(), 4, 5, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 15));
}

TEST_F(StateReaders, let_a_cache_in_place_be_read) {
  GraphBuilder g;
  g.opset(24);
  g.opset(1, "acme");
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 2});
  g.input("past", PFRT_DTYPE_FLOAT32, {1, 2});
  g.node("Within", {"x"}, {"w"}, {}, {}, "acme");
  g.node("Add", {"past", "w"}, {"present"});
  g.output("present");
  const auto session = make_session(env_.get(), g);
  const StateHandle state =
      make_state(session.get(), {pair_of("past", "present", PFRT_STATE_IN_PLACE)});
  const auto options = options_with(state.get()), keeps = keeping(state.get());
  const pfrt_string in = str("x");
  const Array x = floats({1, 2}, {1, 2});
  const pfrt_io fed = x.io();
  const auto run_with = [&](const pfrt_run_desc* desc) {
    return take(api().session->run_named(session.get(), &in, &fed, 1, nullptr, nullptr, 0, desc));
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ok(run_with(options.get())));
  int calls = 0;
  bool readable = false;
  within_.compute = [&](const pfrt_op_compute* call) {
    ++calls;
    pfrt_value* raw = nullptr;
    const Failure read = take(api().state->get(state.get(), str("past"), &raw));
    const Handle<pfrt_value> value(raw);
    if (readable) {
      EXPECT_TRUE(ok(read));
      EXPECT_EQ(array_of(raw).as<float>(), (Values{6, 12}));
    } else {
      EXPECT_TRUE(fails(read, PFRT_CODE_BUSY, {"reading a state"}));
    }
    return compute_scaled(call);
  };
  pfrt_io out{};
  out.struct_size = sizeof out;
  readable = true;
  const pfrt_string name = str("present");
  ASSERT_TRUE(
      ok(api().session->run_named(session.get(), &in, &fed, 1, &name, &out, 1, keeps.get())));
  EXPECT_EQ(array_of(Handle<pfrt_value>(out.value).get()).as<float>(), (Values{8, 16}));
  readable = false;
  ASSERT_TRUE(ok(run_with(options.get())));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(value_in(state.get(), "past").as<float>(), (Values{8, 16}));
}

// Clones write, each into a copy of its own, while runs read what they came from.
TEST_F(StateReaders, of_one_prefix_go_on_on_many_threads) {
  constexpr int kThreads = 4, kRuns = 30;
  for (const bool in_place : {false, true}) {
    const auto session = make_session(env_.get(), in_place ? scattered_cache(64) : cache());
    const StateHandle state = make_state(session.get());
    const auto options = options_with(state.get());
    const auto with = [&](const pfrt_run_desc* desc, int64_t at, float x, Array* y) {
      return in_place ? write(session.get(), desc, at, x, y)
                      : step(session.get(), desc, floats({1, 2, 1, 3}, Values(6, x)), y);
    };
    Array y;
    ASSERT_TRUE(ok(with(options.get(), 0, 1, &y)));
    ASSERT_TRUE(ok(with(options.get(), 1, 2, &y)));
    std::vector<StateHandle> clones;
    for (int t = 0; t < kThreads; ++t) clones.push_back(clone(state.get()));
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        const auto own = options_with(clones[static_cast<size_t>(t)].get());
        const auto keeps = keeping(state.get());
        float sum = 3;
        for (int i = 0; i < kRuns; ++i) {
          Array of_own, of_all;
          const auto x = static_cast<float>(t + 1);
          if (!with(own.get(), 2 + i, x, &of_own).ok() ||
              !with(keeps.get(), 2, 10 * x, &of_all).ok())
            return;
          sum += x;
          right +=
              of_own.as<float>() == Values(6, sum) && of_all.as<float>() == Values(6, 3 + 10 * x);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, kThreads * kRuns);
    ASSERT_TRUE(ok(with(options.get(), 2, 4, &y)));
    EXPECT_EQ(y.as<float>(), Values(6, 7));
  }
}

}  // namespace
}  // namespace pfrt_test
