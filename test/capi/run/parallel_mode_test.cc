// SPDX-License-Identifier: Apache-2.0
//
// execution_mode=parallel: independent steps at once, with the bits of sequential runs.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

Handle<pfrt_options> in_parallel(const char* threads) {
  return make_options(PFRT_OPTIONS_SESSION,
                      {{"execution_mode", "parallel"}, {"num_threads", threads}});
}

// A random net: each layer takes one or two earlier values, so that many steps are independent,
// live for a long time, and may be written in place.
GraphBuilder random_net(uint32_t seed) {
  std::minstd_rand random(seed);
  GraphBuilder g;
  g.input("v0", PFRT_DTYPE_FLOAT32, {"N", 24, 24});
  g.constant("w", floats({24, 24}, random_floats(24 * 24, seed)));
  std::vector<std::string> values = {"v0"};
  const auto any = [&] { return values[random() % values.size()]; };
  for (int i = 1; i < 40; ++i) {
    const std::string out = "v" + std::to_string(i);
    switch (random() % 6) {
      case 0:
        g.node("MatMul", {any(), "w"}, {out});
        break;
      case 1:
        g.node("Softmax", {any()}, {out});
        break;
      case 2:
        g.node("Transpose", {any()}, {out}, {Attr::of_ints("perm", {0, 2, 1})});
        break;
      case 3:
        g.node("CumSum", {any(), "axis"}, {out});
        break;
      case 4:
        g.node("Add", {any(), any()}, {out});
        break;
      default:
        g.node("Tanh", {any()}, {out});
    }
    values.push_back(out);
  }
  g.constant("axis", array<int64_t>({}, {1}));
  for (int i = 1; i < 40; i += 3) g.output("v" + std::to_string(i));
  g.output("v39");
  return g;
}

TEST(ParallelMode, has_the_bits_of_sequential_runs) {
  const auto env = make_env();
  const Array x = floats({3, 24, 24}, random_floats(3 * 24 * 24, 1));
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    const auto model = make_model(env.get(), random_net(seed));
    const auto expected = run(make_session(env.get(), model.get()).get(), {x});
    for (const char* threads : {"1", "2", "3", "8"}) {
      SCOPED_TRACE(threads);
      const auto options = in_parallel(threads);
      const auto session = make_session(env.get(), model.get(), options.get());
      for (int round = 0; round < 3; ++round) {
        const auto outputs = run(session.get(), {x});
        ASSERT_EQ(outputs.size(), expected.size());
        for (size_t i = 0; i < outputs.size(); ++i)
          EXPECT_EQ(outputs[i].bytes, expected[i].bytes) << i;
      }
    }
  }
}

GraphBuilder three_branches() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {8, 8});
  std::vector<std::string> parts;
  for (int i = 0; i < 3; ++i) {
    const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i);
    g.constant("w" + std::to_string(i),
               floats({8, 8}, random_floats(64, static_cast<uint32_t>(7 + i))));
    g.node("MatMul", {"x", "w" + std::to_string(i)}, {a});
    g.node("Softmax", {a}, {b});
    parts.push_back(b);
  }
  g.node("Concat", parts, {"y"}, {Attr::of_int("axis", 0)});
  g.output("y");
  return g;
}

// The executor sees which steps run at once; they are too small for loops of their own.
TEST(ParallelMode, runs_independent_steps_at_once) {
  struct Seen {
    std::atomic<int> loops{0};
    std::atomic<uint64_t> widest{0};
  } seen;
  const auto env = make_env();
  pfrt_executor executor{};
  executor.struct_size = sizeof executor;
  executor.width = 4;
  executor.user = &seen;
  executor.loop = [](void* user, uint32_t, uint64_t n, void (*fn)(void*, uint64_t, uint32_t),
                     void* arg) {
    auto& self = *static_cast<Seen*>(user);
    ++self.loops;
    uint64_t widest = self.widest;
    while (widest < n && !self.widest.compare_exchange_weak(widest, n)) continue;
    for (uint64_t i = n; i-- > 0;) fn(arg, i, 0);  // in another order
  };
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &executor)));
  const auto model = make_model(env.get(), three_branches());
  const Array x = floats({8, 8}, random_floats(64, 3));
  const auto expected = run(make_session(env.get(), model.get()).get(), {x});
  EXPECT_EQ(seen.loops, 0);
  const auto options = in_parallel("4");
  EXPECT_EQ(run(make_session(env.get(), model.get(), options.get()).get(), {x})[0].bytes,
            expected[0].bytes);
  EXPECT_GE(seen.loops, 2);  // the products, then the rest
  EXPECT_EQ(seen.widest, 3u);
}

// Lanes are the executor's workers: each branch has its own, and the steps after them have the
// first.
TEST(ParallelMode, reports_who_ran_a_step_and_when) {
  const auto env = make_env();
  pfrt_executor executor{};
  executor.struct_size = sizeof executor;
  executor.width = 3;
  executor.loop = [](void*, uint32_t, uint64_t n, void (*fn)(void*, uint64_t, uint32_t),
                     void* arg) {
    for (uint64_t i = 0; i < n; ++i) fn(arg, i, static_cast<uint32_t>(i % 3));
  };
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &executor)));
  const auto model = make_model(env.get(), three_branches());
  const auto options = make_options(
      PFRT_OPTIONS_SESSION,
      {{"execution_mode", "parallel"}, {"num_threads", "3"}, {"enable_profiling", "on"}});
  const auto session = make_session(env.get(), model.get(), options.get());
  run(session.get(), {floats({8, 8}, random_floats(64, 3))});
  pfrt_report* raw = nullptr;
  ASSERT_TRUE(ok(api().session->explain(session.get(), &raw)));
  std::vector<uint32_t> lanes;
  double earliest = 1e18;
  for (size_t i = 0; i < api().report->row_count(raw); ++i) {
    pfrt_report_row row{};
    row.struct_size = sizeof row;
    ASSERT_TRUE(ok(api().report->row_at(raw, i, &row)));
    earliest = std::min(earliest, row.started_ns);
    if (std::string(row.ops.data, row.ops.size) == "Softmax") lanes.push_back(row.lane);
  }
  api().report->release(raw);
  EXPECT_EQ(earliest, 0);
  std::sort(lanes.begin(), lanes.end());
  EXPECT_EQ(lanes, (std::vector<uint32_t>{0, 1, 2}));
}

TEST(ParallelMode, tells_of_the_first_failing_step) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {4});
  g.input("i", PFRT_DTYPE_INT64, {1});
  g.node("Gather", {"x", "i"}, {"a"}, {}, "first");
  g.node("Tanh", {"x"}, {"b"});
  g.node("Gather", {"b", "i"}, {"c"}, {}, "second");
  g.output("a");
  g.output("c");
  const auto env = make_env();
  const auto options = in_parallel("3");
  const auto session = make_session(env.get(), g, options.get());
  EXPECT_TRUE(ok(try_run(session.get(), {floats({4}, {1, 2, 3, 4}), int64s({1}, {2})})));
  for (int round = 0; round < 10; ++round)
    EXPECT_TRUE(fails(try_run(session.get(), {floats({4}, {1, 2, 3, 4}), int64s({1}, {9})}),
                      PFRT_CODE_INVALID_ARGUMENT, {"index 9"}));
}

}  // namespace
}  // namespace pfrt_test
