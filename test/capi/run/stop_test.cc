// SPDX-License-Identifier: Apache-2.0
//
// Runs that are cancelled or run out of time stop in the middle of a step. The convolutions here
// would take seconds.
#include <atomic>
#include <cctype>
#include <chrono>
#include <thread>

#include "test/capi/client.h"
#include "test/capi/run/long_steps.h"

namespace pfrt_test {
namespace {

using Clock = std::chrono::steady_clock;

int64_t ms_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

// The goal is 20 ms on an idle machine; a step that does not look would take seconds.
constexpr int64_t kSoonMs = 1000;

struct Convolution {
  const char* name;
  int64_t channels, filters, size, kernel, group;
};

constexpr Convolution kConvolutions[] = {
    {"a huge image", 64, 64, 1024, 5, 1},
    {"a huge channel count", 4096, 1024, 64, 3, 1},
    {"depthwise", 8, 8, 2048, 17, 8},
};

// y = Conv(x, w) with w fed, so that nothing is packed beforehand.
GraphBuilder graph_of(const Convolution& c) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, c.channels, "H", "W"});
  g.input("w", PFRT_DTYPE_FLOAT32, {c.filters, c.channels / c.group, "K", "L"});
  g.node("Conv", {"x", "w"}, {"y"},
         {Attr::of_int("group", c.group),
          Attr::of_ints("pads", {c.kernel / 2, c.kernel / 2, c.kernel / 2, c.kernel / 2})});
  g.output("y");
  return g;
}

Handle<pfrt_value> zeros(std::vector<int64_t> dims) {
  pfrt_value* out = nullptr;
  EXPECT_TRUE(ok(api().value->create_tensor(PFRT_DTYPE_FLOAT32, dims.data(), dims.size(), &out)));
  return Handle<pfrt_value>(out);
}

Failure run_values(pfrt_session* session, pfrt_value* x, pfrt_value* w, const pfrt_run_desc* desc) {
  pfrt_io in[2] = {}, out{};
  in[0].struct_size = in[1].struct_size = out.struct_size = sizeof out;
  in[0].value = x;
  in[1].value = w;
  Failure failure = take(api().session->run(session, in, 2, &out, 1, desc));
  api().value->release(out.value);
  return failure;
}

class Stops : public testing::TestWithParam<std::tuple<Convolution, int64_t>> {};

TEST_P(Stops, in_a_convolution_of_seconds) {
  const auto& [c, threads] = GetParam();
  const auto env = make_env();
  const auto session = make_session(env.get(), graph_of(c));
  const auto x = zeros({1, c.channels, c.size, c.size});
  const auto w = zeros({c.filters, c.channels / c.group, c.kernel, c.kernel});
  const auto small = zeros({1, c.channels, c.kernel, c.kernel});

  uint32_t cancel = 0;
  RunDesc options({.cancel = &cancel, .num_threads = threads});
  Clock::time_point cancelled;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancelled = Clock::now();
    std::atomic_ref(cancel).store(1);
  });
  const Failure failure = run_values(session.get(), x.get(), w.get(), options.get());
  const Clock::time_point end = Clock::now();
  canceller.join();
  const int64_t after =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - cancelled).count();
  EXPECT_TRUE(fails(failure, PFRT_CODE_CANCELLED, {"cancelled"}));
  EXPECT_LT(after, kSoonMs);
  RecordProperty("ms_after_cancel", std::to_string(after));

  // A cancel holds until it is taken back; then the same settings and session work.
  EXPECT_TRUE(fails(run_values(session.get(), small.get(), w.get(), options.get()),
                    PFRT_CODE_CANCELLED, {"cancelled"}));
  cancel = 0;
  EXPECT_TRUE(ok(run_values(session.get(), small.get(), w.get(), options.get())));

  options.timeout_ms = 100;
  const Clock::time_point start = Clock::now();
  EXPECT_TRUE(fails(run_values(session.get(), x.get(), w.get(), options.get()), PFRT_CODE_DEADLINE,
                    {"deadline"}));
  const int64_t took = ms_since(start);
  EXPECT_GE(took, 100);
  EXPECT_LT(took, 100 + kSoonMs);
  RecordProperty("ms_after_deadline", std::to_string(took - 100));
  options.timeout_ms = 0;
  EXPECT_TRUE(ok(run_values(session.get(), small.get(), w.get(), options.get())));
}

INSTANTIATE_TEST_SUITE_P(Runs, Stops,
                         testing::Combine(testing::ValuesIn(kConvolutions), testing::Values(1, 2)),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param).name;
                           for (char& ch : name)
                             if (ch == ' ') ch = '_';
                           return name + "_threads_" + std::to_string(std::get<1>(one.param));
                         });

// A step of long_steps.h that does not stop runs into the test's timeout. bench/stops.cc measures
// how soon steps stop. Parameters are places in the list: GoogleTest copies each several times
// whenever the program starts.
class LongSteps : public testing::TestWithParam<size_t> {};

TEST_P(LongSteps, stop_at_a_deadline) {
  const LongStep& step = long_steps()[GetParam()];
  const auto env = make_env();
  pfrt_graph* graph = nullptr;
  ASSERT_TRUE(ok(graph_of(api(), step, &graph)));
  pfrt_model* raw = nullptr;
  const Failure made = take(api().model->from_graph(env.get(), graph, nullptr, &raw));
  api().graph->release(graph);
  ASSERT_TRUE(ok(made));
  const Handle<pfrt_model> model(raw);
  const auto session = make_session(env.get(), model.get());
  const RunDesc options({.timeout_ms = 1, .num_threads = 1});
  std::vector<Handle<pfrt_value>> values;
  std::vector<pfrt_io> in;
  for (const LongInput& input : step.inputs) {
    if (input.constant || input.dtype == PFRT_DTYPE_UNSET) continue;
    pfrt_value* value = nullptr;
    ASSERT_TRUE(ok(value_of(api(), input, &value)));
    values.emplace_back(value);
    in.push_back({});
    in.back().struct_size = sizeof in.back();
    in.back().value = value;
  }
  std::vector<pfrt_io> out(static_cast<size_t>(step.outputs));
  for (pfrt_io& io : out) io.struct_size = sizeof io;
  EXPECT_TRUE(fails(api().session->run(session.get(), in.data(), in.size(), out.data(), out.size(),
                                       options.get()),
                    PFRT_CODE_DEADLINE, {"deadline"}));
}

INSTANTIATE_TEST_SUITE_P(Runs, LongSteps, testing::Range(size_t{0}, long_steps().size()),
                         [](const auto& one) {
                           std::string name =
                               std::to_string(one.index) + "_" + name_of(long_steps()[one.param]);
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

// A cancel that is taken back before all threads have noticed it must not let half-done work pass
// for a result: such a run is either stopped or right.
TEST(Stopped, a_run_is_whole_or_says_so) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x0", PFRT_DTYPE_FLOAT32, {512, 512});
  g.constant("w", floats({512, 512}, random_floats(512 * 512, 7)));
  for (int i = 0; i < 12; ++i)
    g.node("MatMul", {"x" + std::to_string(i), "w"}, {"x" + std::to_string(i + 1)});
  g.output("x12");
  const auto session = make_session(env.get(), g);
  const Array x = floats({512, 512}, random_floats(512 * 512, 3));
  uint32_t cancel = 0;
  const RunDesc options({.cancel = &cancel, .num_threads = 2});
  std::atomic<bool> over{false};
  std::thread flicker([&] {
    while (!over) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      std::atomic_ref(cancel).store(1);
      std::atomic_ref(cancel).store(0);
    }
  });
  std::vector<Array> expected;
  ASSERT_TRUE(ok(try_run(session.get(), {x}, &expected)));
  for (int i = 0; i < 10; ++i) {
    std::vector<Array> outputs;
    const Failure failure = try_run(session.get(), {x}, &outputs, options.get());
    if (failure.ok()) {
      EXPECT_EQ(outputs[0].bytes, expected[0].bytes);
    } else {
      EXPECT_EQ(failure.code, static_cast<pfrt_code>(PFRT_CODE_CANCELLED));
    }
  }
  over = true;
  flicker.join();
}

}  // namespace
}  // namespace pfrt_test
