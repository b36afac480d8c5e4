// SPDX-License-Identifier: Apache-2.0
//
// The executor on oneTBB in hosts that use oneTBB themselves: sessions inside of their tasks and
// beside them, in arenas of several sizes.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "test/capi/plugin/custom_operator.h"
#include "test/plugins/executor/tbb_host.h"

#if defined(PFRT_SANITIZE_THREAD)
// oneTBB is not instrumented: the sanitizer sees that its threads compare masks of processors and
// free them, and nothing of what orders the two. What they run of ours is looked at as ever.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libtbb.so"; }
#endif

namespace pfrt_test {
namespace {

Handle<pfrt_env> tbb_env() { return make_env({{"executor", "tbb"}}); }

Handle<pfrt_options> threads(const char* number) {
  return make_options(PFRT_OPTIONS_SESSION, {{"num_threads", number}});
}

// Runs that are under way at once share threads, unless they say how many they want.
std::vector<Array> run_wide(pfrt_session* session, const std::vector<Array>& inputs) {
  return run(session, inputs, RunDesc({.num_threads = 4}).get());
}

// y = Softmax(Tanh(x W) W) and a convolution beside it, x float32[N,96].
GraphBuilder mixed_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 96});
  g.constant("w", floats({96, 96}, random_floats(96 * 96, 3)));
  g.constant("k", floats({4, 1, 3, 3}, random_floats(36, 4)));
  g.constant("image", int64s({4}, {-1, 1, 12, 8}));
  g.node("MatMul", {"x", "w"}, {"a"});
  g.node("Tanh", {"a"}, {"b"});
  g.node("MatMul", {"b", "w"}, {"c"});
  g.node("Softmax", {"c"}, {"y"}, {Attr::of_int("axis", 1)});
  g.node("Reshape", {"x", "image"}, {"i"});
  g.node("Conv", {"i", "k"}, {"z"}, {Attr::of_ints("pads", {1, 1, 1, 1})});
  g.output("y");
  g.output("z");
  return g;
}

Array mixed_input(int64_t rows) { return noise({rows, 96}, static_cast<uint32_t>(rows)); }

std::vector<Array> of_pool(const GraphBuilder& graph, const std::vector<Array>& inputs) {
  const auto env = make_env();
  return run(make_session(env.get(), graph).get(), inputs);
}

testing::AssertionResult same(const std::vector<Array>& a, const std::vector<Array>& b) {
  if (a.size() != b.size() || a.empty())
    return testing::AssertionFailure() << a.size() << " outputs";
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].dims != b[i].dims || a[i].bytes != b[i].bytes)
      return testing::AssertionFailure() << "output " << i << " differs";
  return testing::AssertionSuccess();
}

// ---- results ----

// Of a file: |dims| of its inputs with the batch in the place of -1.
std::vector<Array> inputs_of(const std::string& file, int64_t batch) {
  if (file == PFRT_DIGITS) return {noise({batch, 1, 8, 8}, 5)};
  const size_t count = static_cast<size_t>(batch) * 24;
  std::vector<int64_t> ids(count), mask(count, 1), types(count, 0);
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<int64_t>(i * 7 % 64);
  const std::vector<int64_t> dims = {batch, 24};
  return {int64s(dims, ids), int64s(dims, mask), int64s(dims, types)};
}

class TbbResults : public testing::TestWithParam<const char*> {};

TEST_P(TbbResults, have_the_bits_of_the_pools) {
  const std::string file = GetParam();
  const auto pool = make_env(), tbb = tbb_env();
  const auto load = [&](pfrt_env* env, const char* number) {
    pfrt_model* model = nullptr;
    EXPECT_TRUE(ok(api().model->load_file(env, str(file), nullptr, &model)));
    return make_session(env, Handle<pfrt_model>(model).get(), threads(number).get());
  };
  const auto expected = load(pool.get(), "4");
  ASSERT_TRUE(expected);
  for (const char* number : {"1", "2", "3", "8"}) {
    const auto session = load(tbb.get(), number);
    ASSERT_TRUE(session);
    for (const int64_t batch : {1, 3, 40}) {
      const auto inputs = inputs_of(file, batch);
      const auto results = run(expected.get(), inputs);
      EXPECT_TRUE(same(run(session.get(), inputs), results)) << number << " threads, " << batch;
      in_arena(4, [&] {
        EXPECT_TRUE(same(run(session.get(), inputs), results)) << number << " threads, " << batch;
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TbbResults, testing::Values(PFRT_DIGITS, PFRT_BERT_ENCODER),
                         [](const testing::TestParamInfo<const char*>& test) {
                           return std::string(test.param == std::string(PFRT_DIGITS) ? "digits"
                                                                                     : "bert");
                         });

// An arena's workers have the floating-point control of the thread that made it, as a host likes
// it.
TEST(TbbResults, are_not_those_of_a_host_that_flushes_denormals) {
  constexpr unsigned kPlain = 0x1f80, kFlush = 0x9fc0;
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Mul", {"x", "x"}, {"y"});
  g.output("y");
  const Array x = floats({200'000}, std::vector<float>(200'000, 1e-20f));  // squares are denormal
  const auto expected = of_pool(g, {x});
  ASSERT_NE(expected[0].as<float>()[0], 0.0f);
  const auto env = tbb_env();
  const auto session = make_session(env.get(), g, threads("4").get());
  __builtin_ia32_ldmxcsr(kFlush);
  in_arena(4, [&] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(same(run(session.get(), {x}), expected));
    EXPECT_EQ(__builtin_ia32_stmxcsr() & ~0x3fu, kFlush & ~0x3fu);
  });
  __builtin_ia32_ldmxcsr(kPlain);
}

TEST(TbbResults, have_no_denormals_where_a_session_flushes_them) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Mul", {"x", "x"}, {"y"});
  g.output("y");
  const Array x = floats({200'000}, std::vector<float>(200'000, 1e-20f));
  const Array zeros = floats({200'000}, std::vector<float>(200'000, 0.0f));
  const auto env = tbb_env();
  const auto options = make_options(
      PFRT_OPTIONS_SESSION, {{"session.set_denormal_as_zero", "true"}, {"num_threads", "4"}});
  const auto session = make_session(env.get(), g, options.get());
  in_arena(4, [&] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(same(run_wide(session.get(), {x}), {zeros}));
  });
}

// ---- inside of a host's tasks ----

class TbbHost : public testing::TestWithParam<int> {};

TEST_P(TbbHost, runs_sessions_in_its_tasks) {
  const auto expected = of_pool(mixed_graph(), {mixed_input(64)});
  const auto env = tbb_env();
  const auto session = make_session(env.get(), mixed_graph(), threads("4").get());
  in_arena(GetParam(), [&] {
    host_for(60,
             [&](int) { EXPECT_TRUE(same(run_wide(session.get(), {mixed_input(64)}), expected)); });
  });
}

TEST_P(TbbHost, runs_loops_inside_of_loops) {
  const auto expected = of_pool(mixed_graph(), {mixed_input(48)});
  const auto env = tbb_env();
  const auto options =
      make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "4"}, {"execution_mode", "parallel"}});
  const auto session = make_session(env.get(), mixed_graph(), options.get());
  in_arena(GetParam(), [&] {
    host_for(6, [&](int) {
      host_for(
          6, [&](int) { EXPECT_TRUE(same(run_wide(session.get(), {mixed_input(48)}), expected)); });
    });
  });
}

// Tasks make sessions, and plans for dimensions that are new to a session: what one of them holds
// locked meanwhile others want.
TEST_P(TbbHost, makes_sessions_and_plans_in_its_tasks) {
  constexpr int kRows = 12;
  std::vector<std::vector<Array>> expected;
  for (int rows = 1; rows <= kRows; ++rows)
    expected.push_back(of_pool(mixed_graph(), {mixed_input(rows)}));
  const auto env = tbb_env();
  const auto model = make_model(env.get(), mixed_graph());
  const auto shared = make_session(env.get(), model.get(), threads("4").get());
  in_arena(GetParam(), [&] {
    host_for(48, [&](int i) {
      const int rows = i % kRows;
      const std::vector<Array> inputs = {mixed_input(rows + 1)};
      EXPECT_TRUE(same(run_wide(shared.get(), inputs), expected[static_cast<size_t>(rows)]));
      if (i % 4 != 0) return;
      const auto own = make_session(env.get(), model.get(), threads("4").get());
      EXPECT_TRUE(same(run_wide(own.get(), inputs), expected[static_cast<size_t>(rows)]));
    });
  });
}

struct Outcome {
  std::mutex mutex;
  std::condition_variable came;
  bool over = false;
  Failure failure;
  static void done(void* user, pfrt_status* status, pfrt_io* outputs, size_t count) {
    auto& self = *static_cast<Outcome*>(user);
    for (size_t i = 0; i < count; ++i) api().value->release(outputs[i].value);
    const std::lock_guard<std::mutex> lock(self.mutex);
    self.failure = take(status);
    self.over = true;
    self.came.notify_all();
  }
};

// On every thread of the arena at once: none is left to take a task of oneTBB's.
TEST_P(TbbHost, waits_for_asynchronous_runs_in_its_tasks) {
  const auto env = tbb_env();
  const auto session = make_session(env.get(), mixed_graph(), threads("4").get());
  const Array x = mixed_input(32);
  in_arena(GetParam(), [&] {
    host_for(40, [&](int) {
      Outcome outcome;
      pfrt_io in = x.io(), out[2] = {};
      out[0].struct_size = out[1].struct_size = sizeof in;
      ASSERT_TRUE(ok(api().session->run_async(session.get(), &in, 1, out, 2, nullptr,
                                              &Outcome::done, &outcome)));
      std::unique_lock<std::mutex> lock(outcome.mutex);
      outcome.came.wait(lock, [&] { return outcome.over; });
      EXPECT_TRUE(ok(outcome.failure));
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Arenas, TbbHost, testing::Values(1, 2, 4));

TEST(TbbHosts, have_sessions_on_other_threads_too) {
  const auto expected = of_pool(mixed_graph(), {mixed_input(64)});
  const auto env = tbb_env(), other = make_env();
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&, t] {
      const auto session =
          make_session((t == 3 ? other : env).get(), mixed_graph(), threads("4").get());
      const auto some = [&](int) {
        if (!same(run_wide(session.get(), {mixed_input(64)}), expected)) ++wrong;
      };
      if (t == 0) in_arena(3, [&] { host_for(20, some); });
      for (int i = 0; i < 20; ++i) some(i);
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// ---- threads of a loop ----

// A session over one node whose loop of |n| calls runs |body|.
struct LoopSession {
  LoopSession(uint64_t n, std::function<void(uint64_t, uint32_t)> call, const char* number)
      : body(std::move(call)) {
    op.infer = infer_like_input;
    op.compute = [this, n](const pfrt_op_compute* c) {
      before();
      c->parallel(
          c, n,
          [](void* arg, uint64_t i, uint32_t worker) {
            static_cast<LoopSession*>(arg)->body(i, worker);
          },
          this);
      after();
      return compute_scaled(c);
    };
    EXPECT_TRUE(ok(op.add_to(env.get())));
    session = make_session(env.get(), one_node(op), threads(number).get());
  }
  TestOperator op{"Loop"};  // goes last: the environment releases it
  std::function<void()> before = [] {}, after = [] {};
  std::function<void(uint64_t, uint32_t)> body;
  Handle<pfrt_env> env = tbb_env();
  Handle<pfrt_session> session;
};

TEST(TbbLoops, have_no_more_threads_than_the_session_and_the_arena) {
  for (const auto& [width, number, most] : {std::tuple{4, "2", 2u}, {2, "4", 2u}, {1, "4", 1u}}) {
    std::atomic<uint32_t> inside{0}, widest{0}, calls{0}, wrong{0};
    LoopSession loop(
        64,
        [&, asked = static_cast<uint32_t>(std::atoi(number))](uint64_t, uint32_t worker) {
          const uint32_t now = ++inside;
          uint32_t seen = widest;
          while (seen < now && !widest.compare_exchange_weak(seen, now)) continue;
          std::this_thread::sleep_for(std::chrono::microseconds(200));
          if (worker >= asked) ++wrong;
          ++calls;
          --inside;
        },
        number);
    in_arena(width, [&] {
      for (int i = 0; i < 5; ++i) EXPECT_EQ(run(loop.session.get(), {kRow}).size(), 1u);
    });
    EXPECT_EQ(calls, 5u * 64u);
    EXPECT_EQ(wrong, 0u);
    EXPECT_LE(widest, most) << "arena of " << width << ", session of " << number;
  }
}

// A thread that waits for the others of its loop may hold a lock of the session: it must not begin
// another task of the host's, which may want that lock.
TEST(TbbLoops, that_are_waited_in_begin_no_task_of_the_hosts) {
  static thread_local int in_loop = 0;
  std::atomic<int> stolen{0}, tasks{0};
  LoopSession loop(
      4,
      [](uint64_t i, uint32_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(300 * (i + 1)));
      },
      "4");
  loop.before = [] { ++in_loop; };
  loop.after = [] { --in_loop; };
  in_arena(4, [&] {
    host_for(100, [&](int) {
      if (in_loop > 0) ++stolen;
      ++tasks;
      EXPECT_EQ(run_wide(loop.session.get(), {kRow}).size(), 1u);
    });
  });
  EXPECT_EQ(tasks, 100);
  EXPECT_EQ(stolen, 0);
}

// ---- what ends early ----

TEST(TbbStops, cancel_and_deadline_end_runs_in_tasks) {
  const auto env = tbb_env();
  const auto session = make_session(env.get(), slow_graph(), threads("4").get());
  const Array x = noise({512, 512}, 1);
  uint32_t cancel = 0;
  const RunDesc cancelled({.cancel = &cancel});
  std::thread canceller;
  in_arena(3, [&] {
    host_for(4, [&](int i) {
      if (i == 0)
        canceller = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          std::atomic_ref(cancel).store(1);
        });
      if (i % 2 == 0) {
        EXPECT_TRUE(
            fails(try_run(session.get(), {x}, nullptr, cancelled.get()), PFRT_CODE_CANCELLED, {}));
      } else {
        const RunDesc options({.timeout_ms = 10});
        EXPECT_TRUE(
            fails(try_run(session.get(), {x}, nullptr, options.get()), PFRT_CODE_DEADLINE, {}));
      }
    });
  });
  canceller.join();
}

TEST(TbbStops, a_group_that_the_host_cancels_cuts_no_run_short) {
  const auto expected = of_pool(mixed_graph(), {mixed_input(64)});
  const auto env = tbb_env();
  const auto session = make_session(env.get(), mixed_graph(), threads("4").get());
  int runs = 0;
  in_arena(4, [&] {
    for (int i = 0; i < 20; ++i)
      in_cancelled_group([&] {
        EXPECT_TRUE(same(run_wide(session.get(), {mixed_input(64)}), expected));
        ++runs;
      });
  });
  EXPECT_EQ(runs, 20);
}

TEST(TbbStops, errors_of_runs_are_theirs_alone) {
  const auto expected = of_pool(mixed_graph(), {mixed_input(16)});
  const auto env = tbb_env();
  const auto session = make_session(env.get(), mixed_graph(), threads("4").get());
  in_arena(4, [&] {
    EXPECT_THROW(host_for(40,
                          [&](int i) {
                            const Array wrong = noise({16, 95}, 1);
                            if (i % 2 == 0) {
                              EXPECT_FALSE(try_run(session.get(), {wrong}).ok());
                            }
                            EXPECT_TRUE(same(run_wide(session.get(), {mixed_input(16)}), expected));
                            if (i == 20) throw std::runtime_error("the host's own");
                          }),
                 std::runtime_error);
    EXPECT_TRUE(same(run_wide(session.get(), {mixed_input(16)}), expected));
  });
}

// A client's function may not throw from a loop; where it does, the run has failed and no more.
TEST(TbbStops, a_call_that_throws_fails_its_run) {
  std::atomic<bool> throws{true};
  LoopSession loop(
      64,
      [&](uint64_t i, uint32_t) {
        if (throws && i == 40) throw std::runtime_error("a call's");
      },
      "4");
  in_arena(4, [&] {
    EXPECT_TRUE(fails(try_run(loop.session.get(), {kRow}), PFRT_CODE_PROVIDER, {}));
    throws = false;
    EXPECT_EQ(run_wide(loop.session.get(), {kRow}).size(), 1u);
  });
}

// ---- the life of the process ----

TEST(TbbLife, environments_come_and_go) {
  const auto expected = of_pool(mixed_graph(), {mixed_input(64)});
  for (int round = 0; round < 10; ++round) {
    auto env = tbb_env();
    const auto session = make_session(env.get(), mixed_graph(), threads("4").get());
    if (round % 2 == 0) env.reset();  // the session keeps what it needs
    EXPECT_TRUE(same(run_wide(session.get(), {mixed_input(64)}), expected));
  }
}

TEST(TbbLife, another_executor_takes_its_place_for_a_while) {
  const auto env = tbb_env();
  struct Count {
    std::atomic<int> loops{0};
  } count;
  pfrt_executor own{};
  own.struct_size = sizeof own;
  own.width = 2;
  own.user = &count;
  own.loop = [](void* user, uint32_t, uint64_t n, void (*fn)(void*, uint64_t, uint32_t),
                void* arg) {
    ++static_cast<Count*>(user)->loops;
    for (uint64_t i = 0; i < n; ++i) fn(arg, i, 0);
  };
  const auto session = make_session(env.get(), mixed_graph(), threads("4").get());
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &own)));
  (void)run_wide(session.get(), {mixed_input(256)});
  const int loops = count.loops;
  EXPECT_GT(loops, 0);
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), nullptr)));
  (void)run_wide(session.get(), {mixed_input(256)});
  EXPECT_EQ(count.loops, loops);
}

// ThreadSanitizer lets a child of a process with threads start no others, and takes what oneTBB's
// allocator does at the exit for a race with its own threads.
#if !defined(PFRT_SANITIZE_THREAD)
TEST(TbbLife, a_forked_child_has_threads_of_the_librarys) {
  const auto expected = of_pool(mixed_graph(), {mixed_input(64)});
  const auto env = tbb_env();
  const auto session = make_session(env.get(), mixed_graph(), threads("4").get());
  in_arena(4,
           [&] { host_for(20, [&](int) { (void)run_wide(session.get(), {mixed_input(64)}); }); });
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const int before = threads_now();
    bool good = static_cast<bool>(same(run_wide(session.get(), {mixed_input(64)}), expected));
    good = good && threads_now() > before;
    const auto fresh = tbb_env();
    const auto other = make_session(fresh.get(), mixed_graph(), threads("4").get());
    good = good && same(run_wide(other.get(), {mixed_input(64)}), expected);
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// The process exits while threads of it, oneTBB's among them, are in the middle of runs.
TEST(TbbLifeDeathTest, exits_in_the_middle_of_runs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (int round = 0; round < 3; ++round)
    EXPECT_EXIT(
        {
          alarm(60);
          const auto env = tbb_env();
          const auto session = make_session(env.get(), mixed_graph(), threads("4").get());
          for (int t = 0; t < 3; ++t)
            std::thread([&, t] {
              const auto more = [&](int) {
                while (try_run(session.get(), {mixed_input(64)}).ok()) continue;
              };
              if (t == 0) in_arena(3, [&] { host_for(3, more); });
              more(0);
            }).detach();
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
          std::exit(0);
        },
        testing::ExitedWithCode(0), "");
}

#else
// That nothing of oneTBB's is reported does not mean that nothing is.
struct Racy {
  std::atomic<int> there{0};
  int number = 0;
};
__attribute__((noinline)) void planted_race(Racy& racy) {
  ++racy.there;
  while (racy.there < 2) std::this_thread::yield();
  // The sanitizer may miss a race of two accesses in the same instant.
  for (int i = 0; i < 100; ++i, std::this_thread::yield()) ++racy.number;
}

TEST(TbbRaceDeathTest, between_calls_of_a_loop_is_reported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        alarm(60);
        Racy racy;
        LoopSession loop(
            2, [&](uint64_t, uint32_t) { planted_race(racy); }, "2");
        in_arena(2, [&] { (void)run(loop.session.get(), {kRow}); });
        std::exit(0);
      },
      testing::ExitedWithCode(66), "planted_race");
}
#endif

}  // namespace
}  // namespace pfrt_test
