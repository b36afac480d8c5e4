// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// Handles of all kinds, held at once.
struct Everything {
  Handle<pfrt_options> env_options, session_options;
  Handle<pfrt_env> env;
  Handle<pfrt_graph> graph;
  Handle<pfrt_model> model;
  Handle<pfrt_session> session;
  Handle<pfrt_report> report;
  Handle<pfrt_value> output;

  Everything() {
    env_options = make_options(PFRT_OPTIONS_ENV, {{"log_level", "off"}});
    session_options = make_options(PFRT_OPTIONS_SESSION);
    pfrt_env* raw_env = nullptr;
    EXPECT_TRUE(ok(api().env->create(env_options.get(), &raw_env)));
    env.reset(raw_env);
    model = make_model(raw_env, add_graph());
    pfrt_graph* raw_graph = nullptr;
    EXPECT_TRUE(ok(api().model->graph(model.get(), &raw_graph)));
    graph.reset(raw_graph);
    session = make_session(raw_env, model.get(), session_options.get());
    const Array x = floats({1, 3}, {0, 0, 0});
    pfrt_io in = x.io(), out{};
    out.struct_size = sizeof out;
    EXPECT_TRUE(ok(api().session->run(session.get(), &in, 1, &out, 1, nullptr)));
    output.reset(out.value);
    pfrt_report* raw_report = nullptr;
    EXPECT_TRUE(ok(api().session->explain(session.get(), &raw_report)));
    report.reset(raw_report);
  }

  // Uses the handles that are still held.
  void use() {
    if (session) {
      EXPECT_EQ(run(session.get(), {floats({1, 3}, {1, 1, 1})})[0].as<float>(),
                (std::vector<float>{2, 3, 4}));
      EXPECT_NE(api().session->model(session.get()), nullptr);
    }
    if (model) {
      pfrt_model_info info{};
      info.struct_size = sizeof info;
      EXPECT_TRUE(ok(api().model->info(model.get(), &info)));
      EXPECT_EQ(info.node_count, 1u);
    }
    if (env) {
      EXPECT_GT(api().env->plugin_count(env.get()), 0u);
    }
    if (output) {
      EXPECT_EQ(array_of(output.get()).as<float>(), (std::vector<float>{1, 2, 3}));
    }
    if (report) {
      EXPECT_EQ(api().report->row_count(report.get()), 1u);
    }
    if (graph) {
      EXPECT_TRUE(ok(api().graph->validate(graph.get())));
    }
  }
};

TEST(Lifetime, handles_go_in_any_order) {
  std::minstd_rand random(20);
  for (int round = 0; round < 100; ++round) {
    Everything all;
    std::vector<std::function<void()>> releases = {
        [&] { all.env_options.reset(); }, [&] { all.session_options.reset(); },
        [&] { all.env.reset(); },         [&] { all.graph.reset(); },
        [&] { all.model.reset(); },       [&] { all.session.reset(); },
        [&] { all.report.reset(); },      [&] { all.output.reset(); },
    };
    std::shuffle(releases.begin(), releases.end(), random);
    for (const auto& release : releases) {
      release();
      all.use();
    }
  }
}

TEST(Lifetime, retained_handle_outlives_a_release) {
  Everything all;
  api().session->retain(all.session.get());
  api().session->release(all.session.get());
  api().env->retain(all.env.get());
  api().env->release(all.env.get());
  all.use();
}

TEST(Lifetime, session_is_released_by_another_thread) {
  Everything all;
  std::thread([&] {
    all.session.reset();
    all.model.reset();
    all.env.reset();
  }).join();
  all.use();
}

TEST(Lifetime, environments_are_independent) {
  const auto one = make_env(), two = make_env();
  const auto model = make_model(one.get(), add_graph());
  // A model may be used in an environment other than its own.
  const auto session = make_session(two.get(), model.get());
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {0, 0, 0})})[0].as<float>(),
            (std::vector<float>{1, 2, 3}));
}

TEST(Lifetime, no_session_adds_a_thread) {
  std::thread([] {}).join();  // a sanitizer may start a thread of its own with the first thread
  const int before = threads_now();
  auto env = make_env();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "3"}});
  std::vector<Handle<pfrt_session>> sessions;
  const Array x = floats({512, 512}, std::vector<float>(512 * 512, 0.5f));
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {512, 512});
  g.node("Softmax", {"x"}, {"y"});
  g.output("y");
  const auto model = make_model(env.get(), g);
  for (int i = 0; i < 200; ++i) {
    sessions.push_back(make_session(env.get(), model.get(), options.get()));
    (void)run(sessions.back().get(), {x});
    EXPECT_LE(threads_now(), before + 2);  // those of a loop of three, once
  }
  sessions.clear();
}

// Threads run, edit, save and cancel at once on shared handles.
TEST(Lifetime, eight_threads_do_everything_at_once) {
  const auto env = make_env();
  const auto model = make_model(env.get(), add_graph());
  const auto session = make_session(env.get(), model.get());
  uint32_t cancel = 0;
  const RunDesc options({.cancel = &cancel, .num_threads = 2});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const std::string path = testing::TempDir() + "pfrt_at_once_" + std::to_string(t) + ".pfm";
      for (int i = 0; i < 25; ++i) {
        if (t < 3) {
          std::vector<Array> outputs;
          const Failure failure =
              try_run(session.get(), {floats({1, 3}, {1, 1, 1})}, &outputs, options.get());
          if (failure.ok() ? outputs[0].as<float>() != std::vector<float>{2, 3, 4}
                           : failure.code != PFRT_CODE_CANCELLED)
            ++wrong;
        } else if (t < 5) {
          pfrt_graph* raw = nullptr;
          if (!take(api().model->graph(model.get(), &raw)).ok()) ++wrong;
          const Handle<pfrt_graph> graph(raw);
          if (!take(api().graph->set_metadata(raw, str("key"), str("value"))).ok() ||
              !take(api().graph->remove_node(raw, 0)).ok())
            ++wrong;
        } else if (t < 7) {
          if (!take(api().model->save(env.get(), model.get(), str(path), nullptr)).ok()) ++wrong;
          pfrt_model* loaded = nullptr;
          if (!take(api().model->load_file(env.get(), str(path), nullptr, &loaded)).ok()) ++wrong;
          api().model->release(loaded);
        } else {
          std::atomic_ref(cancel).store(1);
          std::this_thread::yield();
          std::atomic_ref(cancel).store(0);
        }
      }
      std::remove(path.c_str());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// exit() runs destructors of statics while handles live and threads exist.
TEST(LifetimeDeathTest, process_may_exit_with_live_handles) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        static Everything all;
        const auto wide = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "4"}});
        static auto session = make_session(all.env.get(), slow_graph(), wide.get());
        const RunDesc limit({.timeout_ms = 20});
        EXPECT_FALSE(
            ok(try_run(session.get(), {floats({512, 512}, std::vector<float>(512 * 512, 0.5f))},
                       nullptr, limit.get())));
        // These are never released, and stay reachable to the end.
        static pfrt_env* volatile held_env = all.env.get();
        static pfrt_session* volatile held_session = session.get();
        api().env->retain(held_env);
        api().session->retain(held_session);
        std::exit(testing::Test::HasFailure() ? 1 : 7);
      },
      testing::ExitedWithCode(7), "");
}

TEST(LifetimeDeathTest, process_may_exit_while_a_thread_runs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        static auto env = make_env().release();
        static auto session = make_session(env, slow_graph()).release();
        std::thread([] {
          const Array x = floats({512, 512}, std::vector<float>(512 * 512, 0.5f));
          for (;;) (void)try_run(session, {x});
        }).detach();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::exit(7);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace pfrt_test
