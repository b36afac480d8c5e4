// SPDX-License-Identifier: Apache-2.0
//
// States: the values that one run leaves for the next, the use of a state by several runs, and its
// contents after a run fails. device_test.cc has those on devices.
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <future>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "test/capi/plugin/custom_operator.h"
#include "test/capi/run/states.h"

namespace pfrt_test {
namespace {

TEST_F(States, carry_a_value_from_run_to_run) {
  const auto session = make_session(env_.get(), accumulator());
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  EXPECT_EQ(value_in(state.get(), "h").dtype, uint32_t{PFRT_DTYPE_UNSET});
  Array y;
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(ok(step(session.get(), options.get(), floats({1, 2}, {1, 2}), &y)));
    const auto n = static_cast<float>(i);
    EXPECT_EQ(y.as<float>(), (Values{-n, -2 * n}));
  }
  EXPECT_EQ(value_in(state.get(), "h").as<float>(), (Values{5, 10}));
  EXPECT_EQ(api().state->length(state.get()), 0);

  const auto seed = value_of(floats({1, 2}, {100, 200}));
  ASSERT_TRUE(ok(api().state->set(state.get(), str("h"), seed.get())));
  ASSERT_TRUE(ok(step(session.get(), options.get(), floats({1, 2}, {1, 2}), &y)));
  EXPECT_EQ(y.as<float>(), (Values{-101, -202}));
  EXPECT_EQ(array_of(seed.get()).as<float>(), (Values{100, 200})) << "it is only read";

  ASSERT_TRUE(ok(api().state->truncate(state.get(), 0)));
  // An empty state takes the input's batch.
  ASSERT_TRUE(ok(step(session.get(), options.get(), floats({2, 2}, {1, 2, 3, 4}), &y)));
  EXPECT_EQ(y.as<float>(), (Values{-1, -2, -3, -4}));
  EXPECT_TRUE(fails(step(session.get(), options.get(), floats({1, 2}, {1, 2})),
                    PFRT_CODE_SHAPE_MISMATCH, {"'h'"}));
}

// The caller's memory is its own again after the run.
TEST_F(States, keep_copies_of_inputs_that_are_passed_on) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.node("Identity", {"x"}, {"h_out"});
  g.node("Sub", {"x", "h"}, {"y"});
  g.output("y");
  g.output("h_out");
  const auto session = make_session(env_.get(), g);
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  Array x = floats({1, 2}, {1, 2}), y;
  ASSERT_TRUE(ok(step(session.get(), options.get(), x)));
  std::memset(x.bytes.data(), 0, x.bytes.size());
  EXPECT_EQ(value_in(state.get(), "h").as<float>(), (Values{1, 2}));
  ASSERT_TRUE(ok(step(session.get(), options.get(), floats({1, 2}, {5, 5}), &y)));
  EXPECT_EQ(y.as<float>(), (Values{4, 3}));
}

TEST_F(States, grow_by_what_runs_add) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  Values all;  // values of the first head and place, by step
  Array y;
  for (int64_t t : {4, 1, 1, 3, 1, 200, 1, 1}) {
    const Values x = random_floats(static_cast<size_t>(2 * t * 3), static_cast<uint32_t>(t + 7));
    ASSERT_TRUE(ok(step(session.get(), options.get(), floats({1, 2, t, 3}, x), &y)));
    for (int64_t i = 0; i < t; ++i) all.push_back(x[static_cast<size_t>(i * 3)]);
    EXPECT_NEAR(y.as<float>()[0], std::accumulate(all.begin(), all.end(), 0.0F), 1e-3);
    EXPECT_EQ(api().state->length(state.get()), static_cast<int64_t>(all.size()));
  }
  const Array past = value_in(state.get(), "past_0");
  ASSERT_EQ(past.dims, (std::vector<int64_t>{1, 2, 212, 3}));
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(past.as<float>()[i * 3], all[i]) << i;
}

TEST_F(States, are_cut_to_what_they_had_before) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  Array before, after;
  const auto x = [](int64_t t, uint32_t seed) {
    return floats({2, 2, t, 3}, random_floats(static_cast<size_t>(12 * t), seed));
  };
  ASSERT_TRUE(ok(step(session.get(), options.get(), x(5, 1))));
  const Array prefix = value_in(state.get(), "past_0");
  ASSERT_TRUE(ok(step(session.get(), options.get(), x(2, 2), &before)));
  ASSERT_TRUE(ok(api().state->truncate(state.get(), 5)));
  EXPECT_EQ(api().state->length(state.get()), 5);
  EXPECT_EQ(value_in(state.get(), "past_0").bytes, prefix.bytes);
  ASSERT_TRUE(ok(step(session.get(), options.get(), x(2, 2), &after)));
  EXPECT_EQ(after.bytes, before.bytes);

  EXPECT_TRUE(fails(api().state->truncate(state.get(), 8), PFRT_CODE_INVALID_ARGUMENT,
                    {"truncating a state to 8", "'past_0' has 7"}));
  EXPECT_TRUE(fails(api().state->truncate(state.get(), -1), PFRT_CODE_INVALID_ARGUMENT, {"-1"}));
  ASSERT_TRUE(ok(api().state->truncate(state.get(), 0)));
  EXPECT_EQ(api().state->length(state.get()), 0);
  ASSERT_TRUE(ok(step(session.get(), options.get(), x(1, 3))));

  const auto recurrent = make_session(env_.get(), accumulator());
  const StateHandle whole = make_state(recurrent.get());
  EXPECT_TRUE(fails(api().state->truncate(whole.get(), 1), PFRT_CODE_UNSUPPORTED,
                    {"'h'", "clone the state"}));
}

TEST_F(States, go_their_own_way_once_cloned) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle one = make_state(session.get());
  const auto with_one = options_with(one.get());
  const auto x = [](uint32_t seed) { return floats({1, 2, 1, 3}, random_floats(6, seed)); };
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(ok(step(session.get(), with_one.get(), x(i))));
  const StateHandle other = clone(one.get());
  const auto with_other = options_with(other.get());
  Array a, b;
  for (uint32_t i = 3; i < 9; ++i) {
    ASSERT_TRUE(ok(step(session.get(), with_one.get(), x(i), &a)));
    ASSERT_TRUE(ok(step(session.get(), with_other.get(), x(i), &b)));
    EXPECT_EQ(a.bytes, b.bytes);
  }
  ASSERT_TRUE(ok(step(session.get(), with_one.get(), x(99))));
  EXPECT_EQ(api().state->length(one.get()), 10);
  EXPECT_EQ(api().state->length(other.get()), 9);
}

TEST_F(States, of_one_session_are_in_use_at_once) {
  const auto session = make_session(env_.get(), cache());
  std::vector<std::thread> threads;
  std::vector<int> done(4);
  for (size_t t = 0; t < done.size(); ++t)
    threads.emplace_back([&, t] {
      const StateHandle state = make_state(session.get());
      const auto options = options_with(state.get());
      float sum = 0;
      Array y;
      for (int i = 0; i < 40; ++i) {
        const auto value = static_cast<float>(t + 1);
        if (!step(session.get(), options.get(), floats({1, 2, 1, 3}, Values(6, value)), &y).ok())
          return;
        sum += value;
        done[t] += y.as<float>() == Values(6, sum);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, std::vector<int>(4, 40));
}

TEST_F(States, belong_to_one_run_at_a_time) {
  TestOperator within("Within");
  within.infer = infer_like_input;
  ASSERT_TRUE(ok(within.add_to(env_.get())));
  GraphBuilder g;
  g.opset(1, "acme");
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.node("Within", {"x"}, {"w"}, {}, {}, "acme");
  g.node("Add", {"w", "h"}, {"h_out"});
  g.node("Neg", {"h_out"}, {"y"});
  g.output("y");
  g.output("h_out");
  const auto session = make_session(env_.get(), g);
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  const Array x = floats({1, 2}, {1, 2});
  const auto value = value_of(x);
  int calls = 0;
  within.compute = [&](const pfrt_op_compute* call) {
    ++calls;
    EXPECT_TRUE(fails(step(session.get(), options.get(), x), PFRT_CODE_BUSY,
                      {"this thread is in a run that has it"}));
    EXPECT_TRUE(
        fails(api().state->truncate(state.get(), 0), PFRT_CODE_BUSY, {"a run has the state"}));
    EXPECT_TRUE(fails(api().state->set(state.get(), str("h"), value.get()), PFRT_CODE_BUSY,
                      {"a run has the state"}));
    // The contents from before the run may be read.
    EXPECT_EQ(value_in(clone(state.get()).get(), "h").bytes, value_in(state.get(), "h").bytes);
    return compute_scaled(call);
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ok(step(session.get(), options.get(), x)));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(value_in(state.get(), "h").as<float>(), (Values{6, 12}));
  EXPECT_TRUE(ok(api().state->truncate(state.get(), 0)));
}

TEST_F(CacheStates, are_written_where_they_are) {
  constexpr int64_t kRoom = 2000;
  for (const pfrt_state_growth growth : {PFRT_STATE_BY_NAMES, PFRT_STATE_IN_PLACE}) {
    const auto session = make_session(env_.get(), scattered_cache(kRoom));
    const StateHandle state = make_state(session.get(), {pair_of("past", "present", growth)});
    const auto options = options_with(state.get());
    Array y;
    ASSERT_TRUE(ok(write(session.get(), options.get(), 0, 1)));
    // The limit leaves no memory for a second cache, of 48,000 bytes.
    const RunDesc little({.memory_limit = 20000, .state = state.get()});
    for (int64_t i = 1; i < 50; ++i)
      ASSERT_TRUE(ok(write(session.get(), little.get(), i, static_cast<float>(i + 1), &y)));
    EXPECT_EQ(y.as<float>(), Values(6, 50 * 51 / 2));
    // Going back costs nothing: the next row is written over an old one.
    ASSERT_TRUE(ok(api().state->truncate(state.get(), 10)));
    ASSERT_TRUE(ok(write(session.get(), little.get(), 49, 0, &y)));
    EXPECT_EQ(y.as<float>(), Values(6, 49 * 50 / 2));
    // A failure leaves what was written before.
    EXPECT_FALSE(write(session.get(), options.get(), kRoom, 7).ok());
    ASSERT_TRUE(ok(write(session.get(), options.get(), 49, 0, &y)));
    EXPECT_EQ(y.as<float>(), Values(6, 49 * 50 / 2));
    ASSERT_TRUE(ok(api().state->truncate(state.get(), 0)));
    ASSERT_TRUE(ok(write(session.get(), options.get(), 3, 2, &y)));
    EXPECT_EQ(y.as<float>(), Values(6, 2));
  }
}

TEST_F(CacheStates, are_copied_where_others_have_them_too) {
  const auto session = make_session(env_.get(), scattered_cache("ROOM"));
  const StateHandle state =
      make_state(session.get(), {pair_of("past", "present", PFRT_STATE_IN_PLACE)});
  const auto options = options_with(state.get());
  EXPECT_TRUE(fails(write(session.get(), options.get(), 0, 1), PFRT_CODE_INPUT,
                    {"'past'", "has no value yet"}));
  // The client's own memory is not written to.
  Array mine = floats({1, 2, 5, 3}, Values(30, 0));
  const auto value = value_of(mine);
  ASSERT_TRUE(ok(api().state->set(state.get(), str("past"), value.get())));
  Array y;
  ASSERT_TRUE(ok(write(session.get(), options.get(), 0, 1, &y)));
  EXPECT_EQ(array_of(value.get()).bytes, mine.bytes);
  const StateHandle other = clone(state.get());
  const auto with_other = options_with(other.get());
  ASSERT_TRUE(ok(write(session.get(), options.get(), 1, 10, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 11));
  ASSERT_TRUE(ok(write(session.get(), with_other.get(), 1, 100, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 101));
  ASSERT_TRUE(ok(write(session.get(), options.get(), 2, 5, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 16));
  // A result that the client asked for is its own.
  const pfrt_string names[2] = {str("x"), str("at")}, out = str("present");
  const Array row = floats({1, 2, 1, 3}, Values(6, 3)), place = int64s({1}, {3});
  const pfrt_io fed[2] = {row.io(), place.io()};
  pfrt_io result{};
  result.struct_size = sizeof result;
  ASSERT_TRUE(
      ok(api().session->run_named(session.get(), names, fed, 2, &out, &result, 1, options.get())));
  const Handle<pfrt_value> present(result.value);
  const Array before = array_of(present.get());
  ASSERT_TRUE(ok(write(session.get(), options.get(), 3, 4)));
  EXPECT_EQ(array_of(present.get()).bytes, before.bytes);
  EXPECT_EQ(value_in(state.get(), "past").as<float>()[9], 4);
}

// Runs whose calls come while others have the state.
class WaitingRuns {
 public:
  static void done(void* user, pfrt_status* status, pfrt_io* outputs, size_t) {
    auto& [self, place] = *static_cast<std::pair<WaitingRuns*, size_t>*>(user);
    const Failure failure = take(status);
    const Handle<pfrt_value> y(outputs[1].value), h(outputs[0].value);
    const std::lock_guard lock(self->mutex_);
    self->results_[place] = failure.ok() ? array_of(y.get()).as<float>()[0] : 0;
    --self->left_;
    self->came_.notify_all();
  }
  explicit WaitingRuns(size_t count) : results_(count), left_(count) {
    for (size_t i = 0; i < count; ++i) users_.emplace_back(this, i);
  }
  void* user(size_t i) { return &users_[i]; }
  std::vector<float> wait() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return left_ == 0; });
    return results_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<float> results_;
  std::vector<std::pair<WaitingRuns*, size_t>> users_;
  size_t left_;
};

TEST_F(States, are_given_to_runs_in_the_order_of_the_calls) {
  constexpr size_t kRuns = 50;
  const auto session = make_session(env_.get(), accumulator());
  const StateHandle state = make_state(session.get());
  const Array x = floats({1, 2}, {1, 2});
  pfrt_io in[2] = {x.io(), {}};
  in[1].struct_size = sizeof in[1];
  size_t at = 0;
  ASSERT_TRUE(ok(api().session->input_index(session.get(), str("x"), &at)));
  std::swap(in[0], in[at]);
  ASSERT_TRUE(ok(api().session->output_index(session.get(), str("y"), &at)));
  WaitingRuns runs(kRuns);
  std::vector<float> want;
  for (size_t i = 0; i < kRuns; ++i) {
    // A high priority does not overtake those that came before with the same state.
    const RunDesc options({.priority = static_cast<int64_t>(i % 7), .state = state.get()});
    pfrt_io out[2] = {};
    out[0].struct_size = out[1].struct_size = sizeof out[0];
    ASSERT_TRUE(ok(api().session->run_async(session.get(), in, 2, out, 2, options.get(),
                                            &WaitingRuns::done, runs.user(i))));
    want.push_back(at == 1 ? static_cast<float>(i + 1) : -static_cast<float>(i + 1));
  }
  std::vector<float> got = runs.wait();
  for (float& y : got) y = std::abs(y);
  for (float& y : want) y = std::abs(y);
  EXPECT_EQ(got, want);
}

TEST_F(States, make_runs_on_several_threads_wait_for_each_other) {
  constexpr int kThreads = 4, kRuns = 25;
  const auto session = make_session(env_.get(), accumulator());
  const StateHandle state = make_state(session.get());
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      const auto options = options_with(state.get());
      for (int i = 0; i < kRuns; ++i)
        failed += !step(session.get(), options.get(), floats({1, 2}, {1, 2})).ok();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  constexpr float kSum = kThreads * kRuns;
  EXPECT_EQ(value_in(state.get(), "h").as<float>(), (Values{kSum, 2 * kSum}));
}

TEST_F(States, keep_waiting_runs_no_longer_than_they_want) {
  TestOperator slow("Slow");
  slow.infer = infer_like_input;
  ASSERT_TRUE(ok(slow.add_to(env_.get())));
  GraphBuilder g;
  g.opset(1, "acme");
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.node("Slow", {"x"}, {"w"}, {}, {}, "acme");
  g.node("Add", {"w", "h"}, {"h_out"});
  g.node("Neg", {"h_out"}, {"y"});
  g.output("y");
  g.output("h_out");
  const auto session = make_session(env_.get(), g);
  const StateHandle state = make_state(session.get());
  const Array x = floats({1, 2}, {1, 2});
  std::promise<void> begun, go_on;
  slow.compute = [&](const pfrt_op_compute* call) {
    begun.set_value();
    go_on.get_future().wait();
    return compute_scaled(call);
  };
  std::thread first([&] {
    const auto options = options_with(state.get());
    EXPECT_TRUE(ok(step(session.get(), options.get(), x)));
  });
  begun.get_future().wait();
  const RunDesc impatient({.timeout_ms = 30, .state = state.get()});
  EXPECT_TRUE(fails(step(session.get(), impatient.get(), x), PFRT_CODE_DEADLINE, {}));
  const uint32_t cancel = 1;
  const auto cancelled = options_with(state.get(), &cancel);
  EXPECT_TRUE(fails(step(session.get(), cancelled.get(), x), PFRT_CODE_CANCELLED, {}));
  go_on.set_value();
  first.join();
  // Runs that left did not take their turn with them.
  slow.compute = compute_scaled;
  const auto options = options_with(state.get());
  EXPECT_TRUE(ok(step(session.get(), options.get(), x)));
}

TEST_F(States, are_as_before_after_a_run_that_failed) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  uint32_t cancel = 0;
  const auto options = options_with(state.get(), &cancel);
  const Array x = floats({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ok(step(session.get(), options.get(), x)));
  const Array before = value_in(state.get(), "past_0");
  cancel = 1;
  EXPECT_TRUE(fails(step(session.get(), options.get(), x), PFRT_CODE_CANCELLED, {}));
  cancel = 0;
  EXPECT_TRUE(fails(step(session.get(), options.get(), floats({1, 2, 1, 2}, Values(4))),
                    PFRT_CODE_SHAPE_MISMATCH, {"'x'"}));
  // Memory that is too small for y makes the run fail, and the state keeps its contents.
  Values small(1);
  const int64_t dims[] = {1};
  pfrt_io output{}, fed = x.io();
  output.struct_size = sizeof output;
  output.tensor = {sizeof(pfrt_tensor),
                   PFRT_DTYPE_FLOAT32,
                   1,
                   0,
                   small.data(),
                   0,
                   4,
                   dims,
                   nullptr,
                   nullptr,
                   nullptr,
                   0,
                   0};
  const pfrt_string in = str("x"), out = str("y");
  EXPECT_TRUE(
      fails(api().session->run_named(session.get(), &in, &fed, 1, &out, &output, 1, options.get()),
            PFRT_CODE_SHAPE_MISMATCH, {"'y'"}));
  EXPECT_EQ(value_in(state.get(), "past_0").bytes, before.bytes);
  ASSERT_TRUE(ok(step(session.get(), options.get(), x)));
  EXPECT_EQ(api().state->length(state.get()), 5);
}

TEST_F(States, hand_out_copies_of_what_is_asked_for) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  const Array x = floats({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6});
  pfrt_io inputs[2] = {x.io(), {}}, outputs[2] = {};
  inputs[1].struct_size = outputs[0].struct_size = outputs[1].struct_size = sizeof(pfrt_io);
  ASSERT_TRUE(ok(api().session->run(session.get(), inputs, 2, outputs, 2, options.get())));
  const Handle<pfrt_value> y(outputs[0].value), present(outputs[1].value);
  const Array kept = array_of(present.get());
  EXPECT_EQ(kept.bytes, x.bytes);
  pfrt_tensor view{};
  view.struct_size = sizeof view;
  ASSERT_TRUE(ok(api().value->tensor(present.get(), &view)));
  static_cast<float*>(view.data)[0] = 99;
  EXPECT_EQ(value_in(state.get(), "past_0").bytes, x.bytes);

  inputs[1] = x.io();
  EXPECT_TRUE(fails(api().session->run(session.get(), inputs, 2, outputs, 2, options.get()),
                    PFRT_CODE_INPUT, {"'past_0'", "the state's"}));
  inputs[1] = {};
  inputs[1].struct_size = sizeof(pfrt_io);
  Array room = floats({1, 2, 2, 3}, Values(12)), small = floats({1, 2, 1, 3}, Values(6));
  outputs[0] = {};
  outputs[0].struct_size = sizeof(pfrt_io);
  outputs[1] = small.io();
  EXPECT_TRUE(fails(api().session->run(session.get(), inputs, 2, outputs, 2, options.get()),
                    PFRT_CODE_SHAPE_MISMATCH, {"'present_0'"}));
  EXPECT_EQ(value_in(state.get(), "past_0").bytes, x.bytes);
  outputs[1] = room.io();
  ASSERT_TRUE(ok(api().session->run(session.get(), inputs, 2, outputs, 2, options.get())));
  const Handle<pfrt_value> again(outputs[0].value);
  EXPECT_EQ(value_in(state.get(), "past_0").bytes, room.bytes);
}

TEST_F(States, are_made_of_pairs_that_fit) {
  const auto session = make_session(env_.get(), cache());
  pfrt_session* const s = session.get();
  EXPECT_TRUE(fails(try_state(s, {pair_of("past", "present_0")}), PFRT_CODE_NOT_FOUND,
                    {"'past'", "'past_0'"}));
  EXPECT_TRUE(fails(try_state(s, {pair_of("past_0", "present")}), PFRT_CODE_NOT_FOUND,
                    {"'present'", "'present_0'"}));
  EXPECT_TRUE(fails(try_state(s, {pair_of("past_0", "y")}), PFRT_CODE_INVALID_ARGUMENT,
                    {"'y'", "types or ranks"}));
  EXPECT_TRUE(fails(try_state(s, {pair_of("past_0", "present_0"), pair_of("x", "present_0")}),
                    PFRT_CODE_INVALID_ARGUMENT, {"'present_0'", "two pairs"}));
  EXPECT_TRUE(fails(try_state(s, {pair_of("past_0", "present_0", PFRT_STATE_GROWS, 4)}),
                    PFRT_CODE_INVALID_ARGUMENT, {"axis 4"}));
  EXPECT_TRUE(fails(try_state(s, {pair_of("past_0", "present_0", 17)}), PFRT_CODE_UNSUPPORTED,
                    {"growth 17"}));
  pfrt_state_pair unset = pair_of("past_0", "present_0");
  unset.struct_size = 0;
  EXPECT_TRUE(fails(try_state(s, {unset}), PFRT_CODE_INVALID_ARGUMENT, {"struct_size"}));
  // This gives the axis, as a model whose dimensions have no names needs it.
  const StateHandle other = make_state(s, {pair_of("past_0", "present_0", PFRT_STATE_GROWS, 2)});
  EXPECT_TRUE(other);

  const auto none = make_session(env_.get(), add_graph());
  EXPECT_TRUE(fails(try_state(none.get(), {}), PFRT_CODE_INVALID_ARGUMENT, {"give the pairs"}));
  const auto options = options_with(other.get());
  EXPECT_TRUE(fails(
      step(make_session(env_.get(), cache()).get(), options.get(), floats({1, 2, 1, 3}, Values(6))),
      PFRT_CODE_INVALID_ARGUMENT, {"another session"}));
}

TEST_F(States, refuse_values_that_do_not_fit) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  const auto refused = [&](const Array& value, pfrt_code code, std::string_view part) {
    const auto handle = value_of(value);
    EXPECT_TRUE(fails(api().state->set(state.get(), str("past_0"), handle.get()), code,
                      {"'past_0'", part}));
  };
  refused(int64s({1, 2, 1, 3}, std::vector<int64_t>(6)), PFRT_CODE_DTYPE_MISMATCH, "float32");
  refused(floats({2, 3}, Values(6)), PFRT_CODE_SHAPE_MISMATCH, "axis 2");
  refused(floats({1, 2, 1, 4}, Values(8)), PFRT_CODE_SHAPE_MISMATCH, "dimension 3");
  const auto value = value_of(floats({1}, {0}));
  EXPECT_TRUE(fails(api().state->set(state.get(), str("x"), value.get()), PFRT_CODE_NOT_FOUND,
                    {"'x'", "'past_0'"}));
  pfrt_value* out = nullptr;
  EXPECT_TRUE(fails(api().state->get(state.get(), str("y"), &out), PFRT_CODE_NOT_FOUND, {"'y'"}));
}

TEST_F(States, are_saved_and_loaded) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get()), other = make_state(session.get());
  const auto options = options_with(state.get()), with_other = options_with(other.get());
  const Array x = floats({1, 2, 2, 3}, random_floats(12, 4));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ok(step(session.get(), options.get(), x)));
  const std::string path = file("saved_state.pfm");
  ASSERT_TRUE(ok(api().state->save(state.get(), str(path))));
  ASSERT_TRUE(ok(api().state->load(other.get(), str(path))));
  EXPECT_EQ(api().state->length(other.get()), 6);
  Array a, b;
  ASSERT_TRUE(ok(step(session.get(), options.get(), x, &a)));
  ASSERT_TRUE(ok(step(session.get(), with_other.get(), x, &b)));
  EXPECT_EQ(a.bytes, b.bytes);

  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const Array before = value_in(other.get(), "past_0");
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_FALSE(take(api().state->load(other.get(), str(path))).ok()) << at;
  }
  for (size_t size = 0; size < bytes.size(); size += 7) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_FALSE(take(api().state->load(other.get(), str(path))).ok()) << size;
  }
  EXPECT_EQ(value_in(other.get(), "past_0").bytes, before.bytes);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto recurrent = make_session(env_.get(), accumulator());
  EXPECT_TRUE(fails(api().state->load(make_state(recurrent.get()).get(), str(path)),
                    PFRT_CODE_NOT_FOUND, {"'past_0'", "'h'"}));
  std::remove(path.c_str());
  EXPECT_TRUE(fails(api().state->load(other.get(), str(path)), PFRT_CODE_NOT_FOUND, {path}));
}

TEST_F(States, keep_what_they_were_made_from) {
  StateHandle state;
  {
    const auto session = make_session(env_.get(), accumulator());
    state = make_state(session.get());
    const auto options = options_with(state.get());
    ASSERT_TRUE(ok(step(session.get(), options.get(), floats({1, 2}, {1, 2}))));
  }
  env_ = nullptr;
  EXPECT_EQ(value_in(state.get(), "h").as<float>(), (Values{1, 2}));
  state = nullptr;
}

constexpr int64_t kColumns = 64;  // of each of two heads

// A cache of grouped queries: a row of it for each element of "mask", the last of which is x.
GraphBuilder grouped_queries() {
  GraphBuilder g;
  g.opset(17);
  g.opset(1, "com.microsoft");
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 1, 2 * kColumns});
  g.input("mask", PFRT_DTYPE_INT64, {1, "L"});
  for (const char* past : {"past_key", "past_value"})
    g.input(past, PFRT_DTYPE_FLOAT32, {1, 2, "P", kColumns});
  g.constant("one", int64s({1}, {1}));
  g.constant("axis", int64s({1}, {1}));
  g.node("ReduceSum", {"mask", "axis"}, {"seen"}, {Attr::of_int("keepdims", 0)});
  g.node("Sub", {"seen", "one"}, {"last"});
  g.node("Cast", {"last"}, {"lengths"}, {Attr::of_int("to", 6)});
  g.node("Shape", {"mask"}, {"dims"});
  g.node("Gather", {"dims", "one"}, {"length"});
  g.node("Cast", {"length"}, {"total"}, {Attr::of_int("to", 6)});
  g.node("GroupQueryAttention", {"x", "x", "x", "past_key", "past_value", "lengths", "total"},
         {"y", "present_key", "present_value"},
         {Attr::of_int("num_heads", 2), Attr::of_int("kv_num_heads", 2)}, "", "com.microsoft");
  for (const char* output : {"y", "present_key", "present_value"}) g.output(output);
  return g;
}

// Runs a step with |length| keys in all; the row of it follows from the length.
Values grouped_step(pfrt_session* session, const pfrt_run_desc* options, int64_t length) {
  const pfrt_string names[2] = {str("x"), str("mask")}, out = str("y");
  const auto n = static_cast<size_t>(length);
  const Array x =
      floats({1, 1, 2 * kColumns}, random_floats(2 * kColumns, static_cast<uint32_t>(n)));
  const Array mask = int64s({1, length}, std::vector<int64_t>(n, 1));
  const pfrt_io fed[2] = {x.io(), mask.io()};
  pfrt_io result{};
  result.struct_size = sizeof result;
  EXPECT_TRUE(ok(api().session->run_named(session, names, fed, 2, &out, &result, 1, options)));
  const Handle<pfrt_value> value(result.value);
  return value ? array_of(value.get()).as<float>() : Values();
}

// A state whose caches have room for |room| rows, each element of them |fill|.
StateHandle grouped_state(pfrt_session* session, int64_t room, float fill) {
  StateHandle state =
      make_state(session, {pair_of("past_key", "present_key", PFRT_STATE_IN_PLACE),
                           pair_of("past_value", "present_value", PFRT_STATE_IN_PLACE)});
  const auto value = value_of(
      floats({1, 2, room, kColumns}, Values(static_cast<size_t>(room * 2 * kColumns), fill)));
  for (const char* past : {"past_key", "past_value"}) {
    EXPECT_TRUE(ok(api().state->set(state.get(), str(past), value.get())));
  }
  return state;
}

// Beyond the keys a cache may hold anything, and steps have the bits of a cache that grows.
TEST_F(States, caches_of_grouped_queries_are_written_in_place) {
  constexpr int64_t kRoom = 12, kSteps = 15;  // the last ones are beyond the room
  const auto session = make_session(env_.get(), grouped_queries());
  const auto steps = [&](pfrt_state* state, bool in_place) {
    const auto options = options_with(state);
    Values all;
    for (int64_t length = 1; length <= kSteps; ++length) {
      for (const float y : grouped_step(session.get(), options.get(), length)) all.push_back(y);
      if (in_place && length <= kRoom) {
        EXPECT_EQ(value_in(state, "past_key").dims, (std::vector<int64_t>{1, 2, kRoom, kColumns}));
      }
    }
    return all;
  };
  const StateHandle growing =
      make_state(session.get(), {pair_of("past_key", "present_key", PFRT_STATE_GROWS, 2),
                                 pair_of("past_value", "present_value", PFRT_STATE_GROWS, 2)});
  const Values expected = steps(growing.get(), false);
  ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps * 2 * kColumns));
  for (const float beyond : {0.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const StateHandle state = grouped_state(session.get(), kRoom, beyond);
    EXPECT_EQ(steps(state.get(), true), expected) << beyond;
  }
}

// Pairs of grouped_queries() with room for |room| rows.
std::vector<pfrt_state_pair> grouped_pairs(pfrt_state_growth growth, uint64_t room) {
  return {pair_of("past_key", "present_key", growth, 2, room),
          pair_of("past_value", "present_value", growth, 2, room)};
}

TEST_F(States, in_place_begin_with_the_capacity_of_their_pairs) {
  const auto session = make_session(env_.get(), grouped_queries());
  const StateHandle growing = make_state(session.get(), grouped_pairs(PFRT_STATE_GROWS, 0));
  const StateHandle state = make_state(session.get(), grouped_pairs(PFRT_STATE_IN_PLACE, 12));
  const auto with_growing = options_with(growing.get()), with_state = options_with(state.get());
  for (const int64_t steps : {12, 3}) {  // again from nothing
    for (int64_t length = 1; length <= steps; ++length) {
      EXPECT_EQ(grouped_step(session.get(), with_state.get(), length),
                grouped_step(session.get(), with_growing.get(), length));
      EXPECT_EQ(value_in(state.get(), "past_key").dims, (std::vector<int64_t>{1, 2, 12, kColumns}));
    }
    for (pfrt_state* each : {growing.get(), state.get()})
      EXPECT_TRUE(ok(api().state->truncate(each, 0)));
  }
  // Without one, the length is not known, which the message says.
  const StateHandle open = make_state(session.get(), grouped_pairs(PFRT_STATE_IN_PLACE, 0));
  const auto with_open = options_with(open.get());
  const Array x = floats({1, 1, 2 * kColumns}, Values(2 * kColumns)), mask = int64s({1, 1}, {1});
  const pfrt_string names[2] = {str("x"), str("mask")}, out = str("y");
  const pfrt_io fed[2] = {x.io(), mask.io()};
  pfrt_io result{};
  result.struct_size = sizeof result;
  EXPECT_TRUE(fails(take(api().session->run_named(session.get(), names, fed, 2, &out, &result, 1,
                                                  with_open.get())),
                    PFRT_CODE_INPUT, {"'past_key'", "capacity"}));
}

TEST_F(States, that_grow_have_the_memory_of_their_capacity_at_once) {
  const auto session = make_session(env_.get(), grouped_queries());
  constexpr uint64_t kRows = 3000, kBytes = kRows * 2 * kColumns * sizeof(float);
  const StateHandle state = make_state(session.get(), grouped_pairs(PFRT_STATE_GROWS, kRows));
  const StateHandle unsaid = make_state(session.get(), grouped_pairs(PFRT_STATE_GROWS, 0));
  const auto with_state = options_with(state.get()), with_unsaid = options_with(unsaid.get());
  const auto bytes = [&] {
    pfrt_memory_report report{};
    report.struct_size = sizeof report;
    EXPECT_TRUE(ok(api().session->memory_report(session.get(), &report, nullptr, nullptr)));
    return report.states;
  };
  for (int64_t length = 1; length <= 3; ++length)
    grouped_step(session.get(), with_unsaid.get(), length);
  const uint64_t before = bytes();
  EXPECT_LT(before, kBytes);
  grouped_step(session.get(), with_state.get(), 1);
  for (int64_t length = 2; length <= 5; ++length) {
    grouped_step(session.get(), with_state.get(), length);
    if (length >= 3) {  // two buffers a value take turns
      EXPECT_GE(bytes(), before + 4 * kBytes) << length;
      EXPECT_LT(bytes(), before + 5 * kBytes) << length;
    }
  }
}

TEST_F(States, have_capacities_that_fit) {
  const auto session = make_session(env_.get(), grouped_queries());
  const auto refused = [&](const pfrt_state_pair& pair, pfrt_code code, std::string_view part) {
    EXPECT_TRUE(fails(try_state(session.get(), {pair}), code, {"'past_key'", "capacity", part}));
  };
  const auto pair = [](pfrt_state_growth growth, uint32_t axis, uint64_t capacity) {
    return pair_of("past_key", "present_key", growth, axis, capacity);
  };
  refused(pair(PFRT_STATE_BY_NAMES, 0, 8), PFRT_CODE_INVALID_ARGUMENT, "say which");
  refused(pair(PFRT_STATE_REPLACED, 0, 8), PFRT_CODE_INVALID_ARGUMENT, "say which");
  refused(pair(PFRT_STATE_IN_PLACE, 4, 8), PFRT_CODE_INVALID_ARGUMENT, "axis 4");
  refused(pair(PFRT_STATE_IN_PLACE, 2, ~uint64_t{0}), PFRT_CODE_INVALID_ARGUMENT, "no length");
  refused(pair(PFRT_STATE_IN_PLACE, 1, 3), PFRT_CODE_SHAPE_MISMATCH, "dimension 1 is 2");
  // More than there can be is an error of the run where it has to be there, and else only a wish.
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  const StateHandle in_place = make_state(session.get(), grouped_pairs(PFRT_STATE_IN_PLACE, kHuge));
  const Array x = floats({1, 1, 2 * kColumns}, Values(2 * kColumns)), mask = int64s({1, 1}, {1});
  const pfrt_string names[2] = {str("x"), str("mask")}, out = str("y");
  const pfrt_io fed[2] = {x.io(), mask.io()};
  pfrt_io result{};
  result.struct_size = sizeof result;
  const auto with_in_place = options_with(in_place.get());
  EXPECT_FALSE(take(api().session->run_named(session.get(), names, fed, 2, &out, &result, 1,
                                             with_in_place.get()))
                   .ok());
  const StateHandle growing = make_state(session.get(), grouped_pairs(PFRT_STATE_GROWS, kHuge));
  const auto with_growing = options_with(growing.get());
  for (int64_t length = 1; length <= 4; ++length)
    EXPECT_EQ(grouped_step(session.get(), with_growing.get(), length).size(),
              static_cast<size_t>(2 * kColumns));
}

// A limit of a run that leaves no memory for a second cache, of a megabyte.
constexpr int64_t kLongRoom = 2000, kLittle = 400'000;

TEST_F(States, caches_that_were_set_are_written_from_the_first_run_on) {
  const auto session = make_session(env_.get(), grouped_queries());
  const StateHandle state = grouped_state(session.get(), kLongRoom, 7);
  const RunDesc little({.memory_limit = kLittle, .state = state.get()});
  Values expected;
  for (int64_t length = 1; length <= 12; ++length)
    expected = grouped_step(session.get(), little.get(), length);
  ASSERT_EQ(expected.size(), static_cast<size_t>(2 * kColumns));
  // What another state has too stays as it is.
  const StateHandle shared = grouped_state(session.get(), kLongRoom, 7);
  const auto with_shared = options_with(shared.get());
  for (int64_t length = 1; length <= 2; ++length)
    grouped_step(session.get(), with_shared.get(), length);
  const StateHandle other = clone(shared.get());
  const RunDesc with_other({.memory_limit = kLittle, .state = other.get()});
  const Array before = value_in(shared.get(), "past_key");
  Values found;
  for (int64_t length = 3; length <= 12; ++length)
    found = grouped_step(session.get(), with_other.get(), length);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(value_in(shared.get(), "past_key").bytes, before.bytes);
}

// The plan of a range ends where the cache does, also where no length beyond it belongs to one.
TEST_F(States, full_caches_end_a_range) {
  for (const int64_t from : {kLongRoom - 2, kLongRoom - 1, kLongRoom}) {
    const auto session = make_session(env_.get(), grouped_queries());
    const StateHandle state = grouped_state(session.get(), kLongRoom, 0);
    const RunDesc little({.memory_limit = kLittle, .state = state.get()});
    for (int64_t length = from; length <= kLongRoom; ++length)
      grouped_step(session.get(), little.get(), length);
    pfrt_session_statistics before{}, after{};
    before.struct_size = after.struct_size = sizeof before;
    for (int64_t length = 1000; length <= 1004; ++length) {
      grouped_step(session.get(), little.get(), length);
      if (length == 1001) {
        ASSERT_TRUE(ok(api().session->statistics(session.get(), &before)));
      }
    }
    ASSERT_TRUE(ok(api().session->statistics(session.get(), &after)));
    EXPECT_EQ(after.plans, before.plans) << from;
  }
}

}  // namespace
}  // namespace pfrt_test
