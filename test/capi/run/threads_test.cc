// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

template <typename Fn>
void on_threads(int count, Fn fn) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([=] { fn(t); });
  for (std::thread& thread : threads) thread.join();
}

// Operators that split their work: convolutions, pooling, normalisation, a reduction and a matrix
// product.
GraphBuilder conv_net() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3, 33, 35});
  const auto weights = [&](const char* name, std::vector<int64_t> dims, uint32_t seed) {
    size_t count = 1;
    for (int64_t d : dims) count *= static_cast<size_t>(d);
    g.constant(name, floats(std::move(dims), random_floats(count, seed)));
  };
  weights("w1", {16, 3, 3, 3}, 1);
  weights("b1", {16}, 2);
  weights("w2", {16, 1, 3, 3}, 3);
  weights("w3", {24, 16, 1, 1}, 4);
  weights("fc", {24, 40}, 5);
  weights("fb", {40}, 6);
  g.node("Conv", {"x", "w1", "b1"}, {"c1"},
         {Attr::of_ints("pads", {1, 1, 1, 1}), Attr::of_ints("strides", {2, 2})});
  g.node("Relu", {"c1"}, {"r1"});
  g.node("Conv", {"r1", "w2"}, {"c2"},
         {Attr::of_int("group", 16), Attr::of_ints("pads", {1, 1, 1, 1})});
  g.node("Sigmoid", {"c2"}, {"s2"});
  g.node("Mul", {"c2", "s2"}, {"m2"});
  g.node("MaxPool", {"m2"}, {"p2"},
         {Attr::of_ints("kernel_shape", {3, 3}), Attr::of_ints("strides", {2, 2})});
  g.node("Conv", {"p2", "w3"}, {"c3"});
  g.node("GlobalAveragePool", {"c3"}, {"ga"});
  g.node("Flatten", {"ga"}, {"fl"});
  g.node("Gemm", {"fl", "fc", "fb"}, {"fo"});
  g.node("Softmax", {"fo"}, {"y"});
  g.output("y");
  g.output("c3");
  return g;
}

TEST(Threads, share_one_session) {
  const auto env = make_env();
  const auto session = make_session(env.get(), conv_net());
  ASSERT_TRUE(session);
  constexpr int kThreads = 8, kRuns = 6;
  std::vector<Array> inputs;
  std::vector<std::vector<Array>> expected;
  for (int64_t n = 1; n <= 4; ++n) {
    const auto size = static_cast<size_t>(n * 3 * 33 * 35);
    inputs.push_back(floats({n, 3, 33, 35}, random_floats(size, static_cast<uint32_t>(n))));
    expected.push_back(run(session.get(), {inputs.back()}));
    ASSERT_EQ(expected.back().size(), 2u);
  }
  std::atomic<int> wrong{0};
  on_threads(kThreads, [&](int t) {
    for (int i = 0; i < kRuns; ++i) {
      const auto k = static_cast<size_t>(t + i) % inputs.size();
      std::vector<Array> outputs;
      if (!try_run(session.get(), {inputs[k]}, &outputs).ok() ||
          outputs[0].bytes != expected[k][0].bytes || outputs[1].bytes != expected[k][1].bytes)
        ++wrong;
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Threads, make_sessions_of_one_model_at_once) {
  const auto env = make_env();
  const auto model = make_model(env.get(), conv_net());
  const Array x = floats({1, 3, 33, 35}, random_floats(3 * 33 * 35, 9));
  const auto expected = run(make_session(env.get(), model.get()).get(), {x});
  std::atomic<int> wrong{0};
  on_threads(8, [&](int) {
    for (int i = 0; i < 3; ++i) {
      const auto session = make_session(env.get(), model.get());
      std::vector<Array> outputs;
      if (!session || !try_run(session.get(), {x}, &outputs).ok() ||
          outputs[0].bytes != expected[0].bytes)
        ++wrong;
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Threads, come_with_environments_of_their_own) {
  std::atomic<int> wrong{0};
  on_threads(4, [&](int) {
    for (int i = 0; i < 5; ++i) {
      const auto env = make_env();
      const auto wide = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "3"}});
      const auto session = make_session(env.get(), conv_net(), wide.get());
      const Array x = floats({2, 3, 33, 35}, random_floats(2 * 3 * 33 * 35, 9));
      if (!session || !try_run(session.get(), {x}).ok()) ++wrong;
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Threads, of_any_number_give_the_same_bits) {
  const auto env = make_env();
  const auto model = make_model(env.get(), conv_net());
  const Array x = floats({3, 3, 33, 35}, random_floats(3 * 3 * 33 * 35, 11));
  const auto session_options = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "8"}});
  const auto session = make_session(env.get(), model.get(), session_options.get());
  std::vector<Array> expected;
  for (const int64_t threads : {1, 2, 3, 4, 8, 1}) {
    SCOPED_TRACE(threads);
    const RunDesc options({.num_threads = threads});
    const auto outputs = run(session.get(), {x}, options.get());
    ASSERT_EQ(outputs.size(), 2u);
    if (expected.empty()) expected = outputs;
    EXPECT_EQ(outputs[0].bytes, expected[0].bytes);
    EXPECT_EQ(outputs[1].bytes, expected[1].bytes);
    const std::string number = std::to_string(threads);
    const auto own = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", number}});
    const auto fresh = make_session(env.get(), model.get(), own.get());
    EXPECT_EQ(run(fresh.get(), {x})[1].bytes, expected[1].bytes);
  }
}

// Every element is denormal: the squares as they are computed, and |x| as it is read.
TEST(Threads, take_denormals_for_zero_where_a_session_asks_for_it) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("tiny", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Mul", {"x", "x"}, {"computed"});
  g.node("Add", {"tiny", "tiny"}, {"read"});
  g.node("Identity", {"tiny"}, {"moved"});
  for (const char* name : {"computed", "read", "moved"}) g.output(name);
  const auto env = make_env();
  const auto model = make_model(env.get(), g);
  constexpr int64_t count = 200'000;
  const std::vector<Array> inputs{floats({count}, std::vector<float>(count, 1e-20f)),
                                  floats({count}, std::vector<float>(count, 1e-39f))};
  const auto all = [](const Array& a, float value) {
    const std::vector<float> elements = a.as<float>();
    return elements.size() == count &&
           std::ranges::all_of(elements, [=](float v) { return v == value; });
  };
  const unsigned control = __builtin_ia32_stmxcsr();
  for (const char* flush : {"false", "true"}) {
    const auto options = make_options(
        PFRT_OPTIONS_SESSION, {{"session.set_denormal_as_zero", flush}, {"num_threads", "4"}});
    const auto session = make_session(env.get(), model.get(), options.get());
    const bool kept = flush == std::string("false");
    for (int i = 0; i < 10; ++i) {
      const auto outputs = run(session.get(), inputs, RunDesc({.num_threads = 4}).get());
      ASSERT_EQ(outputs.size(), 3u);
      EXPECT_TRUE(all(outputs[0], kept ? 1e-20f * 1e-20f : 0.0f));
      EXPECT_TRUE(all(outputs[1], kept ? 2 * 1e-39f : 0.0f));
      EXPECT_TRUE(all(outputs[2], 1e-39f));
    }
  }
  EXPECT_EQ(__builtin_ia32_stmxcsr() & ~0x3fu, control & ~0x3fu);
}

TEST(Threads, list_plugins_while_others_run) {
  const auto env = make_env();
  const auto session = make_session(env.get(), add_graph());
  std::atomic<int> wrong{0};
  on_threads(4, [&](int t) {
    for (int i = 0; i < 20; ++i) {
      if (t == 0) {
        pfrt_plugin_info info{};
        info.struct_size = sizeof info;
        if (api().env->plugin_count(env.get()) == 0 ||
            !take(api().env->plugin_at(env.get(), 0, &info)).ok())
          ++wrong;
      } else if (t == 1) {
        size_t count = 0;
        if (!take(api().env->kernel_count(env.get(), str("CPUExecutionProvider"), &count)).ok())
          ++wrong;
      } else if (!try_run(session.get(), {floats({1, 3}, {0, 0, 0})}).ok()) {
        ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Threads, explain_while_others_run) {
  const auto env = make_env();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"enable_profiling", "true"}});
  const auto session = make_session(env.get(), conv_net(), options.get());
  std::atomic<int> wrong{0};
  on_threads(4, [&](int t) {
    for (int64_t i = 0; i < 6; ++i) {
      if (t == 0) {
        pfrt_report* report = nullptr;
        if (!take(api().session->explain(session.get(), &report)).ok()) ++wrong;
        api().report->release(report);
      } else {
        const auto size = static_cast<size_t>((i + 1) * 3 * 33 * 35);
        if (!try_run(session.get(), {floats({i + 1, 3, 33, 35}, random_floats(size, 1))}).ok())
          ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace pfrt_test
