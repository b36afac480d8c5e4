// SPDX-License-Identifier: Apache-2.0
//
// Devices with memory of their own, tested with a fake one whose memory nobody else can touch
// (test/plugins/device): copies and their times, values that stay there, waits, lifetimes. Every
// test runs on a device that works at once and on one that works only while the host waits.
#include "test/plugins/device/device.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

using Values = std::vector<float>;

class DeviceTest : public testing::TestWithParam<const char*> {
 protected:
  bool fenced() const { return GetParam() == std::string("Fenced"); }
  std::string name() const { return std::string(GetParam()) + "ExecutionProvider"; }
  Handle<pfrt_session> session(const GraphBuilder& graph, const Settings& more = {},
                               const std::vector<std::string>& extra = {}) {
    const std::string providers = name() + ",CPUExecutionProvider";
    const std::string key =
        std::string("provider.") + (fenced() ? "fenced" : "device") + ".counters";
    const std::string address = std::to_string(reinterpret_cast<intptr_t>(&counters_));
    Settings all = {{"providers", providers}, {key, address}};
    all.insert(all.end(), more.begin(), more.end());
    const auto options = make_options(PFRT_OPTIONS_SESSION, all);
    return make_session(env_.get(), graph, options.get(), extra);
  }
  void TearDown() override { EXPECT_EQ(counters_.runs, 0) << "what begins ends"; }
  int64_t calls(pfrt_direction d) const { return counters_.calls[d]; }
  int64_t copies(pfrt_direction d) const { return counters_.copies[d]; }

  static Handle<pfrt_value> on_device(pfrt_session* session, const Array& array) {
    pfrt_value* raw = nullptr;
    EXPECT_TRUE(ok(api().value->create_on(session, str(""), array.dtype, array.dims.data(),
                                          array.dims.size(), &raw)));
    Handle<pfrt_value> out(raw);
    const auto host = value_of(array);
    EXPECT_TRUE(ok(api().value->copy(host.get(), raw)));
    return out;
  }
  static Array to_host(const pfrt_value* value) {
    const pfrt_tensor t = view(value);
    pfrt_value* raw = nullptr;
    EXPECT_TRUE(ok(api().value->create_tensor(t.dtype, t.dims, t.rank, &raw)));
    const Handle<pfrt_value> host(raw);
    EXPECT_TRUE(ok(api().value->copy(value, raw)));
    return array_of(raw);
  }
  static pfrt_tensor view(const pfrt_value* value) {
    pfrt_tensor t{};
    t.struct_size = sizeof t;
    EXPECT_TRUE(ok(api().value->tensor(value, &t)));
    return t;
  }
  static pfrt_io fed(pfrt_value* value) {
    pfrt_io io{};
    io.struct_size = sizeof io;
    io.value = value;
    return io;
  }
  static pfrt_io asked(pfrt_io_flags flags) {
    pfrt_io io{};
    io.struct_size = sizeof io;
    io.flags = flags;
    return io;
  }
  // Runs with one input and one output, which stays on the device.
  static Handle<pfrt_value> run_there(pfrt_session* session, pfrt_value* input) {
    pfrt_io in = fed(input), out = asked(PFRT_IO_ON_DEVICE);
    EXPECT_TRUE(ok(api().session->run(session, &in, 1, &out, 1, nullptr)));
    return Handle<pfrt_value>(out.value);
  }

  // y = -(a + b) c, all on the device.
  static GraphBuilder three_inputs() {
    GraphBuilder g;
    for (const char* input : {"a", "b", "c"}) g.input(input, PFRT_DTYPE_FLOAT32, {"N"});
    g.node("Add", {"a", "b"}, {"s"});
    g.node("Neg", {"s"}, {"n"});
    g.node("Mul", {"n", "c"}, {"y"});
    g.output("y");
    return g;
  }
  // y = x + {1, 2}
  static GraphBuilder add_constant() {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
    g.constant("k", floats({2}, {1, 2}));
    g.node("Add", {"x", "k"}, {"y"}, {}, "add");
    g.output("y");
    return g;
  }
  // y = -|x + x| |x + x|, with the absolute value on the CPU.
  static GraphBuilder over_and_back() {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
    g.node("Add", {"x", "x"}, {"a"}, {}, "add");
    g.node("Abs", {"a"}, {"b"}, {}, "abs");
    g.node("Neg", {"b"}, {"c"}, {}, "neg");
    g.node("Mul", {"c", "b"}, {"y"}, {}, "mul");
    g.output("y");
    return g;
  }

  fake_device::Counters counters_;
  Handle<pfrt_env> env_ = make_env({{"plugin_path", PFRT_DEVICE_PLUGINS}});
};

TEST_P(DeviceTest, memory_cannot_be_touched_by_the_host) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto s = session(add_constant());
  ASSERT_TRUE(s);
  const auto value = on_device(s.get(), floats({1, 2}, {3, 4}));
  const pfrt_tensor t = view(value.get());
  EXPECT_EQ(t.memory, uint32_t{PFRT_MEMORY_DEVICE});
  EXPECT_EQ(t.bytes, 8u);
  EXPECT_DEATH(static_cast<volatile char*>(t.data)[0] = 1, "");
}

TEST_P(DeviceTest, a_state_stays_there_from_run_to_run) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Add", {"x", "h"}, {"h_out"});
  g.node("Neg", {"h_out"}, {"y"});
  g.output("y");
  g.output("h_out");
  const auto s = session(g);
  ASSERT_TRUE(s);
  struct Releaser {
    void operator()(pfrt_state* p) const { api().state->release(p); }
  };
  pfrt_state* raw = nullptr;
  ASSERT_TRUE(ok(api().state->create(s.get(), nullptr, 0, &raw)));
  std::unique_ptr<pfrt_state, Releaser> state(raw);
  const RunDesc options({.state = state.get()});
  const Array x = floats({3}, {1, 2, 3});
  const auto step = [&](const pfrt_run_desc* with) {
    const pfrt_string in = str("x"), out = str("y");
    const pfrt_io fed = x.io();
    pfrt_io result = asked(0);
    EXPECT_TRUE(ok(api().session->run_named(s.get(), &in, &fed, 1, &out, &result, 1, with)));
    const Handle<pfrt_value> y(result.value);
    return y ? array_of(y.get()).as<float>() : Values();
  };
  EXPECT_EQ(step(options.get()), (Values{-1, -2, -3}));
  counters_.reset();
  for (int i = 2; i <= 100; ++i) {
    const auto n = static_cast<float>(i);
    ASSERT_EQ(step(options.get()), (Values{-n, -2 * n, -3 * n}));
  }
  // x is copied to the device and y back; nothing of the state is copied.
  EXPECT_EQ(counters_.bytes[PFRT_TO_DEVICE], 99 * 12);
  EXPECT_EQ(counters_.bytes[PFRT_TO_HOST], 99 * 12);
  const int64_t memory = counters_.allocations;
  step(options.get());
  EXPECT_EQ(counters_.allocations, memory) << "runs take turns in two buffers";

  ASSERT_TRUE(ok(api().state->clone(state.get(), &raw)));
  const std::unique_ptr<pfrt_state, Releaser> copy(raw);
  const RunDesc with_copy({.state = copy.get()});
  EXPECT_EQ(step(options.get()), step(with_copy.get()));
  pfrt_value* value = nullptr;
  ASSERT_TRUE(ok(api().state->get(state.get(), str("h"), &value)));
  EXPECT_EQ(array_of(Handle<pfrt_value>(value).get()).as<float>(), (Values{102, 204, 306}));
}

// Many shapes take no more memory than the largest, and all of it can be seen and given back.
TEST_P(DeviceTest, blocks_of_many_shapes_are_one_that_is_reported_and_trimmed) {
  const auto s = session(over_and_back());
  ASSERT_TRUE(s);
  const auto report = [&] {
    pfrt_memory_report out{};
    out.struct_size = sizeof out;
    EXPECT_TRUE(ok(api().session->memory_report(s.get(), &out, nullptr, nullptr)));
    return out;
  };
  EXPECT_EQ(report().device_idle, 0u);
  uint64_t largest = 0;
  for (int64_t i = 0; i < 40; ++i) {
    const int64_t length = 1000 + i * 37 % 41 * 10;
    const Array x = noise({length}, static_cast<uint32_t>(i));
    const auto y = run(s.get(), {x})[0].as<float>();
    ASSERT_EQ(y[7], -4 * x.as<float>()[7] * x.as<float>()[7]);
    largest = std::max(largest, report().device_idle);
  }
  EXPECT_EQ(report().device_in_use, 0u);
  EXPECT_GT(report().device_idle, 0u);
  EXPECT_LE(report().device_idle, 2 * largest);
  EXPECT_LE(report().device_idle, 20000u) << "a few buffers of at most 1,410 floats";
  uint64_t bytes = 0;
  EXPECT_TRUE(ok(api().session->trim(s.get(), &bytes)));
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(report().device_idle, 0u);
  (void)run(s.get(), {noise({5}, 1)});
}

// A cut to the length that there is copies nothing, and a cut copies all before anything is freed.
TEST_P(DeviceTest, a_state_is_cut_there) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 1, 4});
  for (const std::string i : {"0", "1", "2"}) {
    g.input("past_" + i, PFRT_DTYPE_FLOAT32, {1, DimSpec(("P" + i).c_str()), 4});
    g.node("Concat", {"past_" + i, "x"}, {"present_" + i}, {Attr::of_int("axis", 1)});
    g.output("present_" + i);
  }
  g.node("Neg", {"x"}, {"y"});
  g.output("y");
  const auto s = session(g);
  ASSERT_TRUE(s);
  struct Releaser {
    void operator()(pfrt_state* p) const { api().state->release(p); }
  };
  std::vector<std::string> names;
  std::vector<pfrt_state_pair> pairs;
  for (const std::string i : {"0", "1", "2"}) {
    names.push_back("past_" + i);
    names.push_back("present_" + i);
  }
  for (size_t i = 0; i < names.size(); i += 2)
    pairs.push_back(
        {sizeof(pfrt_state_pair), PFRT_STATE_GROWS, 1, 0, str(names[i]), str(names[i + 1]), 0});
  pfrt_state* raw = nullptr;
  ASSERT_TRUE(ok(api().state->create(s.get(), pairs.data(), pairs.size(), &raw)));
  const std::unique_ptr<pfrt_state, Releaser> state(raw);
  const RunDesc options({.state = state.get()});
  for (int i = 1; i <= 6; ++i) {
    const Array x = floats({1, 1, 4}, Values(4, static_cast<float>(i)));
    const pfrt_string in = str("x");
    const pfrt_io fed = x.io();
    ASSERT_TRUE(
        ok(api().session->run_named(s.get(), &in, &fed, 1, nullptr, nullptr, 0, options.get())));
  }
  const auto check = [&](int64_t length) {
    EXPECT_EQ(api().state->length(state.get()), length);
    Values want;
    for (int64_t i = 1; i <= length; ++i) want.insert(want.end(), 4, static_cast<float>(i));
    for (size_t i = 0; i < names.size(); i += 2) {
      pfrt_value* value = nullptr;
      ASSERT_TRUE(ok(api().state->get(state.get(), str(names[i]), &value)));
      EXPECT_EQ(array_of(Handle<pfrt_value>(value).get()).as<float>(), want) << names[i];
    }
  };
  const int64_t memory = counters_.allocations;
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(ok(api().state->truncate(state.get(), 6)));
    check(6);
  }
  EXPECT_EQ(counters_.allocations, memory);
  ASSERT_TRUE(ok(api().state->truncate(state.get(), 4)));
  check(4);
}

// A cache that is written in place goes to the device once, and crosses no more.
TEST_P(DeviceTest, a_cache_is_written_there) {
  GraphBuilder g;
  g.opset(24);
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 1, 4});
  g.input("past", PFRT_DTYPE_FLOAT32, {1, 8, 4});
  g.node("Add", {"past", "x"}, {"present"});
  g.output("present");
  const auto s = session(g);
  ASSERT_TRUE(s);
  struct Releaser {
    void operator()(pfrt_state* p) const { api().state->release(p); }
  };
  const pfrt_state_pair pair{
      sizeof(pfrt_state_pair), PFRT_STATE_IN_PLACE, 0, 0, str("past"), str("present"), 0};
  pfrt_state* raw = nullptr;
  ASSERT_TRUE(ok(api().state->create(s.get(), &pair, 1, &raw)));
  const std::unique_ptr<pfrt_state, Releaser> state(raw);
  const RunDesc options({.state = state.get()});
  const Array x = floats({1, 1, 4}, {1, 2, 3, 4});
  const auto step = [&] {
    const pfrt_string in = str("x");
    const pfrt_io fed = x.io();
    ASSERT_TRUE(
        ok(api().session->run_named(s.get(), &in, &fed, 1, nullptr, nullptr, 0, options.get())));
  };
  step();
  counters_.reset();
  for (int i = 1; i < 20; ++i) step();
  EXPECT_EQ(counters_.bytes[PFRT_TO_DEVICE], 19 * 16);
  EXPECT_EQ(counters_.bytes[PFRT_TO_HOST], 0);
  pfrt_value* value = nullptr;
  ASSERT_TRUE(ok(api().state->get(state.get(), str("past"), &value)));
  const Values cache = array_of(Handle<pfrt_value>(value).get()).as<float>();
  EXPECT_EQ(Values(cache.end() - 4, cache.end()), (Values{20, 40, 60, 80}));
}

// The file has the values of one moment, whatever runs do meanwhile.
TEST_P(DeviceTest, a_state_is_saved_while_runs_go_on) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Add", {"x", "h"}, {"h_out"});
  g.output("h_out");
  const auto s = session(g);
  ASSERT_TRUE(s);
  struct Releaser {
    void operator()(pfrt_state* p) const { api().state->release(p); }
  };
  using State = std::unique_ptr<pfrt_state, Releaser>;
  const auto make = [&] {
    pfrt_state* raw = nullptr;
    EXPECT_TRUE(ok(api().state->create(s.get(), nullptr, 0, &raw)));
    return State(raw);
  };
  const State state = make(), loaded = make();
  const RunDesc options({.state = state.get()});
  const std::string file = testing::TempDir() + "saved_while_runs_go_on.pfm";
  const Array x = floats({1000}, Values(1000, 1));
  const auto step = [&] {
    const pfrt_string in = str("x");
    const pfrt_io fed = x.io();
    return take(
        api().session->run_named(s.get(), &in, &fed, 1, nullptr, nullptr, 0, options.get()));
  };
  ASSERT_TRUE(ok(step()));
  std::atomic<bool> over{false};
  std::thread runs([&] {
    for (int i = 0; i < 500; ++i) EXPECT_TRUE(ok(step()));
    over = true;
  });
  while (!over) {
    EXPECT_TRUE(ok(api().state->save(state.get(), str(file))));
    EXPECT_TRUE(ok(api().state->load(loaded.get(), str(file))));
    pfrt_value* value = nullptr;
    ASSERT_TRUE(ok(api().state->get(loaded.get(), str("h"), &value)));
    const Values h = array_of(Handle<pfrt_value>(value).get()).as<float>();
    ASSERT_EQ(h, Values(1000, h.at(0)));
  }
  runs.join();
  std::remove(file.c_str());
}

// Runs that keep a state, and the choice of its rows, leave it where it is; a clone for another
// session stays on the device that both use, and comes to the host otherwise.
TEST_P(DeviceTest, a_state_is_shared_and_its_rows_are_chosen_there) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Add", {"x", "h"}, {"h_out"});
  g.node("Neg", {"h_out"}, {"y"});
  g.output("y");
  g.output("h_out");
  const std::string late = std::string("provider.") + (fenced() ? "fenced" : "device") + ".late";
  const auto s = session(g), same = session(g), other = session(g, {{late, "true"}});
  ASSERT_TRUE(s && same && other);
  struct Releaser {
    void operator()(pfrt_state* p) const { api().state->release(p); }
  };
  using State = std::unique_ptr<pfrt_state, Releaser>;
  pfrt_state* raw = nullptr;
  ASSERT_TRUE(ok(api().state->create(s.get(), nullptr, 0, &raw)));
  const State state(raw);
  const RunDesc options({.state = state.get()}),
      keeps({.flags = PFRT_RUN_KEEPS_STATE, .state = state.get()});
  const auto step = [&](const pfrt_run_desc* with, const Values& x) {
    const pfrt_string in = str("x"), out = str("y");
    const Array given = floats({static_cast<int64_t>(x.size())}, x);
    const pfrt_io fed = given.io();
    pfrt_io result = asked(0);
    EXPECT_TRUE(ok(api().session->run_named(s.get(), &in, &fed, 1, &out, &result, 1, with)));
    const Handle<pfrt_value> y(result.value);
    return y ? array_of(y.get()).as<float>() : Values();
  };
  const auto report = [](pfrt_session* of) {
    pfrt_memory_report out{};
    out.struct_size = sizeof out;
    EXPECT_TRUE(ok(api().session->memory_report(of, &out, nullptr, nullptr)));
    return out;
  };
  const auto value_of_h = [](const pfrt_state* of) {
    pfrt_value* value = nullptr;
    EXPECT_TRUE(ok(api().state->get(of, str("h"), &value)));
    return array_of(Handle<pfrt_value>(value).get()).as<float>();
  };
  EXPECT_EQ(step(options.get(), {1, 2, 3}), (Values{-1, -2, -3}));
  EXPECT_EQ(report(s.get()).states, 0u);
  EXPECT_EQ(report(s.get()).device_states, 12u);
  counters_.reset();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step(keeps.get(), {10, 20, 30}), (Values{-11, -22, -33}));
  EXPECT_EQ(counters_.bytes[PFRT_TO_DEVICE], 5 * 12) << "x of each run";
  EXPECT_EQ(counters_.bytes[PFRT_TO_HOST], 5 * 12) << "y of each run";
  EXPECT_EQ(report(s.get()).device_states, 12u) << "no run has left anything";

  // Memory of the caller's own on the device takes what the run makes.
  const auto place = on_device(s.get(), floats({3}, {0, 0, 0}));
  const pfrt_string in = str("x"), out = str("h_out");
  const Array x = floats({3}, {1, 1, 1});
  const pfrt_io given = x.io();
  pfrt_io result = fed(place.get());
  EXPECT_TRUE(
      fails(api().session->run_named(s.get(), &in, &given, 1, &out, &result, 1, options.get()),
            PFRT_CODE_UNSUPPORTED, {"'h_out'"}));
  ASSERT_TRUE(ok(api().session->run_named(s.get(), &in, &given, 1, &out, &result, 1, keeps.get())));
  EXPECT_EQ(to_host(place.get()).as<float>(), (Values{2, 3, 4}));
  EXPECT_EQ(value_of_h(state.get()), (Values{1, 2, 3}));

  counters_.reset();
  const int64_t rows[] = {2, 0, 0, 1};
  ASSERT_TRUE(ok(api().state->select_rows(state.get(), rows, 4)));
  EXPECT_EQ(copies(PFRT_ON_DEVICE), 3) << "rows 0 and 1 follow each other";
  EXPECT_EQ(counters_.bytes[PFRT_ON_DEVICE], 16);
  EXPECT_EQ(calls(PFRT_TO_HOST) + calls(PFRT_TO_DEVICE), 0);
  EXPECT_EQ(value_of_h(state.get()), (Values{3, 1, 1, 2}));
  counters_.reset();
  const int64_t all[] = {0, 1, 2, 3};
  ASSERT_TRUE(ok(api().state->select_rows(state.get(), all, 4)));
  EXPECT_EQ(copies(PFRT_ON_DEVICE), 0);
  // Rows that cannot be copied leave the state as it was.
  counters_.failure = fake_device::kCopyLost;
  EXPECT_FALSE(take(api().state->select_rows(state.get(), rows, 2)).ok());
  counters_.failure = fake_device::kNone;
  EXPECT_EQ(value_of_h(state.get()), (Values{3, 1, 1, 2}));
  EXPECT_EQ(step(options.get(), {1, 1, 1, 1}), (Values{-4, -2, -2, -3}));

  counters_.reset();
  ASSERT_TRUE(ok(api().state->clone_for(state.get(), same.get(), nullptr, 0, &raw)));
  const State stays(raw);
  EXPECT_EQ(calls(PFRT_TO_HOST) + calls(PFRT_TO_DEVICE) + calls(PFRT_ON_DEVICE), 0);
  EXPECT_EQ(report(same.get()).device_states, 16u);
  ASSERT_TRUE(ok(api().state->clone_for(state.get(), other.get(), nullptr, 0, &raw)));
  const State crosses(raw);
  EXPECT_EQ(counters_.bytes[PFRT_TO_HOST], 16);
  EXPECT_EQ(report(other.get()).device_states, 0u);
  EXPECT_EQ(report(other.get()).states, 16u);
  EXPECT_EQ(value_of_h(stays.get()), (Values{4, 2, 2, 3}));
  EXPECT_EQ(value_of_h(crosses.get()), (Values{4, 2, 2, 3}));
}

TEST_P(DeviceTest, inputs_and_outputs_cross_in_one_call_each_way) {
  const auto s = session(three_inputs());
  ASSERT_TRUE(s);
  for (int64_t n : {3, 3, 5}) {
    counters_.reset();
    const size_t count = static_cast<size_t>(n);
    const Values a = random_floats(count, 1), b = random_floats(count, 2),
                 c = random_floats(count, 3);
    const auto out = run(s.get(), {floats({n}, a), floats({n}, b), floats({n}, c)});
    Values want;
    for (size_t i = 0; i < count; ++i) want.push_back(-(a[i] + b[i]) * c[i]);
    EXPECT_EQ(out.at(0).as<float>(), want);
    EXPECT_EQ(counters_.steps, 3);
    EXPECT_EQ(calls(PFRT_TO_DEVICE), 1);
    EXPECT_EQ(copies(PFRT_TO_DEVICE), 3);
    EXPECT_EQ(counters_.bytes[PFRT_TO_DEVICE], 3 * n * 4);
    EXPECT_EQ(calls(PFRT_TO_HOST), 1);
    EXPECT_EQ(copies(PFRT_TO_HOST), 1);
    EXPECT_EQ(counters_.waits, fenced() ? 1 : 0);
  }
}

TEST_P(DeviceTest, constants_are_uploaded_once) {
  // Two regions of the device read the constant, with a node of the CPU between them.
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.constant("k", floats({2}, {1, 2}));
  g.node("Add", {"x", "k"}, {"a"});
  g.node("Abs", {"a"}, {"b"});
  g.node("Mul", {"b", "k"}, {"y"});
  g.output("y");
  const std::string key = std::string("provider.") + (fenced() ? "fenced" : "device") + ".packed";
  for (const char* packed : {"false", "true"}) {
    const auto s = session(g, {{key, packed}});
    ASSERT_TRUE(s);
    counters_.reset();
    for (int64_t n : {1, 2, 3, 1}) {
      const Values x(static_cast<size_t>(n) * 2, -9.0f);
      const auto y = run(s.get(), {floats({n, 2}, x)}).at(0).as<float>();
      EXPECT_EQ(y[0], 8.0f);
      EXPECT_EQ(y[1], 14.0f);
    }
    EXPECT_EQ(counters_.bytes[PFRT_TO_DEVICE], 8 + 2 * (1 + 2 + 3 + 1) * 8)
        << "the constant, then x and b of each run";
  }
}

TEST_P(DeviceTest, constants_that_begin_at_one_address_are_told_apart) {
  // Overlapping constants, as in a file of external data: {1, 2}, and {1, 2} over {3, 4}.
  std::vector<float> bytes = {1, 2, 3, 4};
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2, 2});
  const int64_t row[] = {2}, rows[] = {2, 2};
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = PFRT_DTYPE_FLOAT32;
  t.data = bytes.data();
  t.rank = 1;
  t.dims = row;
  t.bytes = 8;
  ASSERT_TRUE(ok(api().graph->add_initializer(g.get(), str("k"), &t, 1, nullptr, nullptr)));
  t.rank = 2;
  t.dims = rows;
  t.bytes = 16;
  ASSERT_TRUE(ok(api().graph->add_initializer(g.get(), str("m"), &t, 1, nullptr, nullptr)));
  g.node("Add", {"x", "k"}, {"a"});
  g.node("Mul", {"a", "m"}, {"y"});
  g.output("y");
  const auto s = session(g);
  ASSERT_TRUE(s);
  counters_.reset();
  const auto y = run(s.get(), {floats({2, 2}, {0, 0, 0, 0})}).at(0).as<float>();
  EXPECT_EQ(y, (Values{1, 4, 3, 8}));
  EXPECT_EQ(counters_.bytes[PFRT_TO_DEVICE], 16 + 8 + 16) << "x and both constants";
}

TEST_P(DeviceTest, a_value_that_stays_is_fed_back_without_a_copy) {
  const auto s = session(add_constant());
  ASSERT_TRUE(s);
  Handle<pfrt_value> state = on_device(s.get(), floats({2, 2}, {0, 0, 10, 10}));
  state = run_there(s.get(), state.get());
  counters_.reset();
  for (int i = 0; i < 9; ++i) {
    state = run_there(s.get(), state.get());
    ASSERT_TRUE(state);
    EXPECT_EQ(view(state.get()).memory, uint32_t{PFRT_MEMORY_DEVICE});
  }
  EXPECT_EQ(calls(PFRT_TO_DEVICE) + calls(PFRT_TO_HOST) + calls(PFRT_ON_DEVICE), 0);
  EXPECT_EQ(counters_.waits, fenced() ? 9 : 0) << "once a run";
  EXPECT_EQ(to_host(state.get()).as<float>(), (Values{10, 20, 20, 30}));
  EXPECT_EQ(counters_.waits > 0, fenced());
}

TEST_P(DeviceTest, memory_given_for_an_output_is_written_there) {
  const auto s = session(add_constant());
  ASSERT_TRUE(s);
  const auto x = on_device(s.get(), floats({1, 2}, {5, 6}));
  const auto y = on_device(s.get(), floats({1, 2}, {0, 0}));
  const Array host = floats({1, 2}, {0, 0});
  (void)run(s.get(), {floats({1, 2}, {1, 1})});
  const void* address = view(y.get()).data;
  counters_.reset();
  pfrt_io in = fed(x.get()), out = fed(y.get());
  ASSERT_TRUE(ok(api().session->run(s.get(), &in, 1, &out, 1, nullptr)));
  EXPECT_EQ(out.value, y.get()) << "it stays the caller's";
  EXPECT_EQ(copies(PFRT_TO_DEVICE) + copies(PFRT_TO_HOST) + copies(PFRT_ON_DEVICE), 0);
  EXPECT_EQ(view(y.get()).data, address);
  EXPECT_EQ(to_host(y.get()).as<float>(), (Values{6, 8}));
  counters_.reset();
  pfrt_io to = host.io();
  ASSERT_TRUE(ok(api().session->run(s.get(), &in, 1, &to, 1, nullptr)));
  EXPECT_EQ(host.as<float>(), (Values{6, 8}));
  EXPECT_EQ(copies(PFRT_TO_HOST), 1) << "straight into the caller's memory";
  // A run with one memory as input and output is refused, as on the host.
  pfrt_io both = fed(x.get());
  EXPECT_TRUE(fails(api().session->run(s.get(), &in, 1, &both, 1, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"overlaps"}));
  const auto small = on_device(s.get(), floats({1, 1}, {0}));
  pfrt_io wrong = fed(small.get());
  EXPECT_TRUE(fails(api().session->run(s.get(), &in, 1, &wrong, 1, nullptr),
                    PFRT_CODE_SHAPE_MISMATCH, {"'y'", "4 bytes"}));
}

TEST_P(DeviceTest, a_region_of_the_cpu_between_two_of_the_device) {
  const auto s = session(over_and_back());
  ASSERT_TRUE(s);
  for (int round = 0; round < 2; ++round) {
    counters_.reset();
    EXPECT_EQ(run(s.get(), {floats({3}, {1, -2, 3})}).at(0).as<float>(), (Values{-4, -16, -36}));
    EXPECT_EQ(calls(PFRT_TO_DEVICE), 2) << "into each region";
    EXPECT_EQ(copies(PFRT_TO_DEVICE), 2) << "|x + x| is read twice and copied once";
    EXPECT_EQ(calls(PFRT_TO_HOST), 2) << "out of each region";
    EXPECT_EQ(counters_.waits, fenced() ? 2 : 0) << "where the host reads, and nowhere else";
    EXPECT_EQ(counters_.steps, 3);
  }
}

TEST_P(DeviceTest, outputs_that_steps_allocate_are_on_the_device_too) {
  const std::string late = std::string("provider.") + (fenced() ? "fenced" : "device") + ".late";
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Add", {"x", "x"}, {"a"});
  g.node("Neg", {"a"}, {"n"});
  g.node("Abs", {"n"}, {"y"});
  g.output("n");
  g.output("y");
  const auto s = session(g, {{late, "true"}});
  ASSERT_TRUE(s);
  const Array x = floats({3}, {1, -2, 3});
  pfrt_io in = x.io(), out[2] = {asked(PFRT_IO_ON_DEVICE), asked(0)};
  ASSERT_TRUE(ok(api().session->run(s.get(), &in, 1, out, 2, nullptr)));
  const Handle<pfrt_value> n(out[0].value), y(out[1].value);
  EXPECT_EQ(view(n.get()).memory, uint32_t{PFRT_MEMORY_DEVICE});
  EXPECT_EQ(to_host(n.get()).as<float>(), (Values{-2, 4, -6}));
  EXPECT_EQ(array_of(y.get()).as<float>(), (Values{2, 4, 6}));
  counters_.failure = fake_device::kNoMemory;
  EXPECT_EQ(run(s.get(), {x}).at(0).as<float>(), (Values{-2, 4, -6}));
}

TEST_P(DeviceTest, values_are_made_and_copied_by_hand) {
  const auto s = session(add_constant());
  ASSERT_TRUE(s);
  const int64_t two = 2;
  pfrt_value* raw = nullptr;
  const auto create = [&](std::string_view provider, pfrt_dtype dtype, int64_t dim) {
    return api().value->create_on(s.get(), str(provider), dtype, &dim, 1, &raw);
  };
  EXPECT_TRUE(fails(create("CPUExecutionProvider", PFRT_DTYPE_FLOAT32, two), PFRT_CODE_UNSUPPORTED,
                    {"CPUExecutionProvider", "no memory of its own"}));
  EXPECT_TRUE(fails(create("Moon", PFRT_DTYPE_FLOAT32, two), PFRT_CODE_NOT_FOUND, {"'Moon'"}));
  EXPECT_TRUE(fails(create("", PFRT_DTYPE_STRING, two), PFRT_CODE_INVALID_ARGUMENT, {"string"}));
  EXPECT_TRUE(fails(create("", PFRT_DTYPE_FLOAT32, -1), PFRT_CODE_INVALID_ARGUMENT, {"negative"}));
  EXPECT_TRUE(fails(create("", 4711, two), PFRT_CODE_UNSUPPORTED, {"dtype 4711"}));
  EXPECT_TRUE(fails(create("", PFRT_DTYPE_FLOAT32, int64_t{1} << 40), PFRT_CODE_OUT_OF_MEMORY,
                    {"the device is full"}));
  EXPECT_EQ(raw, nullptr);
  ASSERT_TRUE(ok(create(name(), PFRT_DTYPE_FLOAT32, 0)));
  const Handle<pfrt_value> empty(raw);
  EXPECT_EQ(to_host(empty.get()).bytes.size(), 0u);

  const auto a = on_device(s.get(), floats({2}, {1, 2}));
  const auto b = on_device(s.get(), floats({2}, {3, 4}));
  counters_.reset();
  ASSERT_TRUE(ok(api().value->copy(a.get(), b.get())));
  EXPECT_EQ(copies(PFRT_ON_DEVICE), 1);
  EXPECT_EQ(copies(PFRT_TO_HOST), 0);
  EXPECT_EQ(to_host(b.get()).as<float>(), (Values{1, 2}));
  const auto longer = on_device(s.get(), floats({3}, {1, 2, 3}));
  EXPECT_TRUE(
      fails(api().value->copy(a.get(), longer.get()), PFRT_CODE_SHAPE_MISMATCH, {"8 bytes to 12"}));
  const auto integers = value_of(int64s({1}, {1}));
  EXPECT_TRUE(fails(api().value->copy(a.get(), integers.get()), PFRT_CODE_DTYPE_MISMATCH,
                    {"float32", "int64"}));
  const auto here = value_of(floats({2}, {7, 8})), there = value_of(floats({2}, {0, 0}));
  ASSERT_TRUE(ok(api().value->copy(here.get(), there.get())));
  EXPECT_EQ(array_of(there.get()).as<float>(), (Values{7, 8}));
}

TEST_P(DeviceTest, where_bytes_are_needed_a_value_on_the_device_is_refused) {
  const auto s = session(add_constant());
  ASSERT_TRUE(s);
  const auto value = on_device(s.get(), floats({2}, {1, 2}));
  pfrt_value* raw = value.get();
  pfrt_value* out = nullptr;
  EXPECT_TRUE(fails(api().value->create_sequence(PFRT_DTYPE_FLOAT32, &raw, 1, &out),
                    PFRT_CODE_INVALID_ARGUMENT, {"sequence", "lives on a device"}));
  EXPECT_TRUE(fails(api().value->create_optional(raw, &out), PFRT_CODE_INVALID_ARGUMENT,
                    {"optional", "lives on a device"}));
  const auto keys = value_of(int64s({2}, {1, 2}));
  EXPECT_TRUE(fails(api().value->create_map(keys.get(), raw, &out), PFRT_CODE_INVALID_ARGUMENT,
                    {"map", "lives on a device"}));
  const int64_t dim = 5;
  EXPECT_TRUE(fails(api().value->create_sparse(raw, keys.get(), &dim, 1, &out),
                    PFRT_CODE_INVALID_ARGUMENT, {"sparse", "lives on a device"}));
  GraphBuilder g;
  EXPECT_TRUE(fails(api().graph->add_initializer_value(g.get(), str("k"), raw),
                    PFRT_CODE_INVALID_ARGUMENT, {"initializer", "lives on a device"}));
  Attr attr;
  attr.name = "value";
  attr.type = PFRT_ATTR_TENSOR;
  attr.tensor = raw;
  EXPECT_TRUE(fails(g.try_node("Constant", {}, {"c"}, {attr}), PFRT_CODE_INVALID_ARGUMENT,
                    {"attribute", "lives on a device"}));
  pfrt_tensor t = view(raw);
  EXPECT_TRUE(fails(api().value->wrap_tensor(&t, nullptr, nullptr, &out), PFRT_CODE_UNSUPPORTED,
                    {"memory kind 1"}));
  pfrt_io in{}, to = asked(0);
  in.struct_size = sizeof in;
  in.tensor = t;
  EXPECT_TRUE(fails(api().session->run(s.get(), &in, 1, &to, 1, nullptr), PFRT_CODE_UNSUPPORTED,
                    {"'x'", "memory kind 1"}));
}

TEST_P(DeviceTest, a_value_outlives_session_and_environment) {
  auto s = session(add_constant());
  ASSERT_TRUE(s);
  Handle<pfrt_value> x = on_device(s.get(), floats({1, 2}, {1, 1}));
  Handle<pfrt_value> y = run_there(s.get(), x.get());
  s.reset();
  env_.reset();
  EXPECT_EQ(counters_.closes, 0) << "a value keeps its device open";
  EXPECT_EQ(to_host(y.get()).as<float>(), (Values{2, 3}));
  x.reset();
  EXPECT_EQ(counters_.closes, 0);
  y.reset();
  EXPECT_EQ(counters_.closes, 1);
  EXPECT_EQ(counters_.allocations, 0) << "all memory was given back";
  EXPECT_EQ(counters_.fences, 0);
}

TEST_P(DeviceTest, values_of_another_device_pass_through_the_host) {
  const std::string late = std::string("provider.") + (fenced() ? "fenced" : "device") + ".late";
  const auto one = session(add_constant()), two = session(add_constant(), {{late, "true"}});
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  EXPECT_EQ(counters_.opens, 2) << "with other options it is another";
  const auto x = on_device(one.get(), floats({1, 2}, {1, 1}));
  (void)run(two.get(), {floats({1, 2}, {1, 1})});
  counters_.reset();
  const auto y = run_there(two.get(), x.get());
  EXPECT_NE(view(x.get()).device, view(y.get()).device);
  EXPECT_EQ(copies(PFRT_TO_HOST), 1);
  EXPECT_EQ(copies(PFRT_TO_DEVICE), 1);
  EXPECT_EQ(to_host(y.get()).as<float>(), (Values{2, 3}));
  const auto back = on_device(one.get(), floats({1, 2}, {0, 0}));
  ASSERT_TRUE(ok(api().value->copy(y.get(), back.get())));
  EXPECT_EQ(to_host(back.get()).as<float>(), (Values{2, 3}));
}

TEST_P(DeviceTest, sessions_share_what_is_open_and_values_on_it) {
  auto one = session(add_constant());
  const auto two = session(add_constant());
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  EXPECT_EQ(counters_.opens, 1);
  const auto x = on_device(one.get(), floats({1, 2}, {1, 1}));
  (void)run_there(two.get(), x.get());
  counters_.reset();
  const auto y = run_there(two.get(), x.get());
  EXPECT_EQ(view(x.get()).device, view(y.get()).device);
  EXPECT_NE(view(x.get()).device, 0u);
  EXPECT_EQ(copies(PFRT_TO_HOST) + copies(PFRT_TO_DEVICE) + copies(PFRT_ON_DEVICE), 0);
  one.reset();
  EXPECT_EQ(counters_.closes, 0);
  EXPECT_EQ(to_host(run_there(two.get(), y.get()).get()).as<float>(), (Values{3, 5}));
}

TEST_P(DeviceTest, sessions_of_a_model_share_its_constants_there) {
  const auto model = make_model(env_.get(), add_constant());
  const std::string key = std::string("provider.") + (fenced() ? "fenced" : "device") + ".counters";
  const auto options = make_options(
      PFRT_OPTIONS_SESSION, {{"providers", name() + ",CPUExecutionProvider"},
                             {key, std::to_string(reinterpret_cast<intptr_t>(&counters_))}});
  const auto one = make_session(env_.get(), model.get(), options.get());
  const auto two = make_session(env_.get(), model.get(), options.get());
  const Array x = floats({1, 2}, {1, 1});
  EXPECT_EQ(run(one.get(), {x}).at(0).as<float>(), (Values{2, 3}));
  counters_.reset();
  EXPECT_EQ(run(two.get(), {x}).at(0).as<float>(), (Values{2, 3}));
  EXPECT_EQ(counters_.bytes[PFRT_TO_DEVICE], 8) << "x alone";
}

TEST_P(DeviceTest, a_lost_device_is_opened_once_for_all_sessions) {
  const auto one = session(add_constant()), two = session(add_constant());
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  const Array x = floats({1, 2}, {1, 1});
  (void)run(one.get(), {x});
  (void)run(two.get(), {x});
  for (pfrt_session* s : {one.get(), two.get()}) {
    counters_.failure = fake_device::kCopyLost;
    EXPECT_EQ(run(s, {x}).at(0).as<float>(), (Values{2, 3}));
  }
  EXPECT_EQ(counters_.opens, 2);
  EXPECT_EQ(counters_.closes, 1) << "the lost one";
  counters_.steps = 0;
  EXPECT_EQ(run(one.get(), {x}).at(0).as<float>(), (Values{2, 3}));
  EXPECT_EQ(run(two.get(), {x}).at(0).as<float>(), (Values{2, 3}));
  EXPECT_EQ(counters_.steps, 2) << "both are back on it";
}

TEST_P(DeviceTest, an_input_passed_on_as_an_output_gets_memory_of_its_own) {
  const auto s = session(add_constant(), {}, {"x", "k"});
  ASSERT_TRUE(s);
  const auto x = on_device(s.get(), floats({1, 2}, {1, 1}));
  counters_.reset();
  pfrt_io in = fed(x.get());
  pfrt_io out[3] = {asked(PFRT_IO_ON_DEVICE), asked(PFRT_IO_ON_DEVICE), asked(PFRT_IO_ON_DEVICE)};
  ASSERT_TRUE(ok(api().session->run(s.get(), &in, 1, out, 3, nullptr)));
  const Handle<pfrt_value> y(out[0].value), same(out[1].value), constant(out[2].value);
  EXPECT_EQ(copies(PFRT_ON_DEVICE), 1);
  EXPECT_NE(view(same.get()).data, view(x.get()).data);
  EXPECT_EQ(to_host(same.get()).as<float>(), (Values{1, 1}));
  EXPECT_EQ(to_host(y.get()).as<float>(), (Values{2, 3}));
  EXPECT_EQ(view(constant.get()).memory, uint32_t{PFRT_MEMORY_HOST}) << "no device made it";
}

TEST_P(DeviceTest, what_the_host_itself_reads_is_brought_home) {
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("shape", PFRT_DTYPE_INT64, {2});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Neg", {"x"}, {"p"});
  yes.output("p");
  no.node("Add", {"x", "x"}, {"q"});
  no.output("q");
  g.node("If", {"c"}, {"b"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.node("SequenceConstruct", {"b", "x"}, {"s"});
  g.constant("zero", int64s({}, {0}));
  g.node("SequenceAt", {"s", "zero"}, {"e"});
  g.node("Reshape", {"e", "shape"}, {"y"});
  g.output("y");
  const auto s = session(g);
  ASSERT_TRUE(s);
  const auto x = on_device(s.get(), floats({4}, {1, 2, 3, 4}));
  for (const bool branch : {true, false}) {
    for (const int64_t rows : {2, 4}) {
      Array c = array<uint8_t>({}, {static_cast<uint8_t>(branch)});
      c.dtype = PFRT_DTYPE_BOOL;
      const auto condition = on_device(s.get(), c);
      const auto shape = on_device(s.get(), int64s({2}, {rows, -1}));
      pfrt_io in[3] = {fed(condition.get()), fed(x.get()), fed(shape.get())}, out = asked(0);
      ASSERT_TRUE(ok(api().session->run(s.get(), in, 3, &out, 1, nullptr)));
      const Handle<pfrt_value> y(out.value);
      const Array result = array_of(y.get());
      EXPECT_EQ(result.dims, (std::vector<int64_t>{rows, 4 / rows}));
      EXPECT_EQ(result.as<float>(), branch ? (Values{-1, -2, -3, -4}) : (Values{2, 4, 6, 8}));
    }
  }
}

TEST_P(DeviceTest, outputs_of_other_memory_than_asked_for_are_moved) {
  // The last node runs on the CPU, and its result is wanted in memory of the device.
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Neg", {"x"}, {"n"});
  g.node("Abs", {"n"}, {"y"});
  g.output("y");
  const auto s = session(g);
  ASSERT_TRUE(s);
  const auto y = on_device(s.get(), floats({2}, {0, 0}));
  const Array x = floats({2}, {3, -4});
  pfrt_io in = x.io(), out = fed(y.get());
  ASSERT_TRUE(ok(api().session->run(s.get(), &in, 1, &out, 1, nullptr)));
  EXPECT_EQ(to_host(y.get()).as<float>(), (Values{3, 4}));
  const auto anywhere = run_there(s.get(), value_of(x).get());
  EXPECT_EQ(view(anywhere.get()).memory, uint32_t{PFRT_MEMORY_HOST}) << "no device made it";
  EXPECT_EQ(array_of(anywhere.get()).as<float>(), (Values{3, 4}));
}

TEST_P(DeviceTest, a_device_lost_in_a_copy_or_a_wait_is_opened_again) {
  const auto s = session(add_constant());
  ASSERT_TRUE(s);
  const Array x = floats({1, 2}, {1, 1});
  (void)run(s.get(), {x});
  counters_.failure = fenced() ? fake_device::kWaitLost : fake_device::kCopyLost;
  EXPECT_EQ(run(s.get(), {x}).at(0).as<float>(), (Values{2, 3}));
  EXPECT_EQ(counters_.failure, fake_device::kNone) << "it did fail";
  EXPECT_EQ(counters_.opens, 2);
  EXPECT_EQ(counters_.closes, 1);
  counters_.failure = fake_device::kCopyLost;
  counters_.steps = 0;
  EXPECT_EQ(run(s.get(), {x}).at(0).as<float>(), (Values{2, 3}));
  EXPECT_EQ(counters_.steps, 0) << "the second time the CPU takes over";
  EXPECT_EQ(counters_.closes, 2);
  pfrt_provider_state state{};
  state.struct_size = sizeof state;
  ASSERT_TRUE(ok(api().session->provider_state(s.get(), 0, &state)));
  EXPECT_EQ(state.condition, uint32_t{PFRT_PROVIDER_FAILED});
  EXPECT_NE(text(state.reason).find("unplugged in a copy"), std::string::npos);
  pfrt_value* raw = nullptr;
  const int64_t two = 2;
  EXPECT_TRUE(fails(api().value->create_on(s.get(), str(name()), PFRT_DTYPE_FLOAT32, &two, 1, &raw),
                    PFRT_CODE_PROVIDER, {"not in use", "unplugged"}));
  EXPECT_EQ(counters_.allocations, 0);
}

TEST_P(DeviceTest, values_on_a_lost_device_still_work_where_they_can_be_read) {
  const auto s = session(add_constant());
  ASSERT_TRUE(s);
  const auto x = on_device(s.get(), floats({1, 2}, {1, 1}));
  (void)run(s.get(), {floats({1, 2}, {1, 1})});
  counters_.failure = fake_device::kCopyLost;  // while bringing the result home
  pfrt_io in = fed(x.get()), out = asked(0);
  ASSERT_TRUE(ok(api().session->run(s.get(), &in, 1, &out, 1, nullptr)));
  const Handle<pfrt_value> y(out.value);
  EXPECT_EQ(array_of(y.get()).as<float>(), (Values{2, 3}));
  EXPECT_EQ(counters_.opens, 2);
  counters_.failure = fake_device::kCopyLost;  // while reading the old, unused device
  EXPECT_TRUE(fails(api().session->run(s.get(), &in, 1, &out, 1, nullptr), PFRT_CODE_DEVICE_LOST,
                    {"unplugged in a copy"}));
}

TEST_P(DeviceTest, failure_of_queued_work_is_the_error_of_its_own_run) {
  const auto s = session(add_constant(), {{"session.fallback", "off"}});
  ASSERT_TRUE(s);
  const auto x = value_of(floats({1, 2}, {1, 1}));
  (void)run_there(s.get(), x.get());
  counters_.failure = fake_device::kStepLate;
  pfrt_io in = fed(x.get()), out = asked(PFRT_IO_ON_DEVICE);
  EXPECT_TRUE(fails(api().session->run(s.get(), &in, 1, &out, 1, nullptr), PFRT_CODE_PROVIDER,
                    {"it broke"}));
  EXPECT_EQ(out.value, nullptr);
  EXPECT_EQ(counters_.failure, fake_device::kNone) << "it did fail";
  const auto y = run_there(s.get(), x.get());
  EXPECT_EQ(to_host(y.get()).as<float>(), (Values{2, 3})) << "the next run is another's";
}

TEST_P(DeviceTest, a_run_is_over_when_its_device_is_done) {
  const auto s = session(add_constant());
  ASSERT_TRUE(s);
  const auto y = run_there(s.get(), value_of(floats({1, 2}, {1, 1})).get());
  EXPECT_EQ(counters_.waits > 0, fenced());
  const int64_t waits = counters_.waits;
  EXPECT_EQ(to_host(y.get()).as<float>(), (Values{2, 3}));
  EXPECT_EQ(counters_.waits, waits + (fenced() ? 1 : 0)) << "for the copy";
}

TEST_P(DeviceTest, a_run_is_stopped_while_it_waits_for_its_device) {
  if (!fenced()) GTEST_SKIP() << "it never waits";
  const auto s = session(add_constant());
  ASSERT_TRUE(s);
  const Array x = floats({1, 2}, {1, 1});
  (void)run(s.get(), {x});
  counters_.stalled = true;
  const auto value = value_of(x);
  Values given{7, 7};
  const int64_t dims[] = {1, 2};
  pfrt_io in = fed(value.get()), out = asked(0);
  out.tensor.struct_size = sizeof out.tensor;
  out.tensor.dtype = PFRT_DTYPE_FLOAT32;
  out.tensor.rank = 2;
  out.tensor.dims = dims;
  out.tensor.data = given.data();
  out.tensor.bytes = 8;
  const RunDesc limited({.timeout_ms = 20});
  EXPECT_TRUE(fails(api().session->run(s.get(), &in, 1, &out, 1, limited.get()), PFRT_CODE_DEADLINE,
                    {"deadline"}));
  counters_.stalled = false;
  EXPECT_EQ(run(s.get(), {x}).at(0).as<float>(), (Values{2, 3}));
  EXPECT_EQ(given, (Values{7, 7})) << "nobody writes to memory that was given up";
  EXPECT_EQ(counters_.opens, 1) << "the device is not to blame";
}

TEST_P(DeviceTest, a_full_device_gets_its_idle_memory_back) {
  const auto s = session(three_inputs());
  ASSERT_TRUE(s);
  const Array x = floats({3}, {1, 2, 3});
  (void)run(s.get(), {x, x, x});
  const int64_t idle = counters_.allocations;
  EXPECT_GT(idle, 0);
  counters_.failure = fake_device::kNoMemory;
  const Array longer = floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(run(s.get(), {longer, longer, longer}).at(0).as<float>(), (Values{-2, -8, -18, -32}));
  EXPECT_EQ(counters_.failure, fake_device::kNone) << "it did fail";
  EXPECT_EQ(counters_.allocations, idle) << "the first plan's block was released";
}

TEST_P(DeviceTest, runs_at_the_same_time) {
  const auto s = session(over_and_back());
  ASSERT_TRUE(s);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const Values x = random_floats(static_cast<size_t>(1 + i % 3), static_cast<uint32_t>(t));
        Values want;
        for (float f : x) want.push_back(-std::fabs(f + f) * std::fabs(f + f));
        const Array input = floats({static_cast<int64_t>(x.size())}, x);
        EXPECT_EQ(run(s.get(), {input}).at(0).as<float>(), want);
      }
    });
  for (std::thread& t : threads) t.join();
}

INSTANTIATE_TEST_SUITE_P(Works, DeviceTest, testing::Values("Device", "Fenced"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace pfrt_test
