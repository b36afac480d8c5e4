// SPDX-License-Identifier: Apache-2.0
//
// A client's own memory, threads and logger, and counts of the calls that they get.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// Two layers wide enough for loops of many calls.
GraphBuilder hooked_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 256});
  g.constant("w", floats({256, 256}, random_floats(256 * 256, 5)));
  g.node("MatMul", {"x", "w"}, {"a"});
  g.node("Tanh", {"a"}, {"b"});
  g.node("MatMul", {"b", "w"}, {"y"});
  g.output("y");
  return g;
}

const Array& hooked_input() {
  static const Array x = floats({512, 256}, random_floats(512 * 256, 6));
  return x;
}

std::vector<Array> wide_result() {
  const auto env = make_env();
  return run(make_session(env.get(), hooked_graph()).get(), {hooked_input()});
}

// ---- memory ----

struct Memory {
  std::mutex mutex;
  std::map<void*, uint64_t> live;
  int allocations = 0, releases = 0, strangers = 0;
  bool empty = false;
  uint64_t shift = 0;  // misaligns the memory by so many bytes

  pfrt_allocator table() {
    pfrt_allocator t{};
    t.struct_size = sizeof t;
    t.user = this;
    t.allocate = [](void* user, uint64_t bytes, uint64_t alignment) -> void* {
      auto& self = *static_cast<Memory*>(user);
      const std::lock_guard<std::mutex> lock(self.mutex);
      if (self.empty) return nullptr;
      char* data = static_cast<char*>(std::aligned_alloc(alignment, bytes + alignment));
      ++self.allocations;
      self.live[data + self.shift] = bytes;
      return data + self.shift;
    };
    t.free = [](void* user, void* data, uint64_t bytes) {
      auto& self = *static_cast<Memory*>(user);
      const std::lock_guard<std::mutex> lock(self.mutex);
      const auto at = self.live.find(data);
      if (at == self.live.end() || at->second != bytes) {
        ++self.strangers;
        return;
      }
      self.live.erase(at);
      std::free(static_cast<char*>(data) - self.shift);
    };
    t.release = [](void* user) { ++static_cast<Memory*>(user)->releases; };
    return t;
  }
};

TEST(Allocator, gives_and_gets_back_everything_once) {
  Memory memory;
  Handle<pfrt_value> kept;
  {
    const auto env = make_env();
    const pfrt_allocator table = memory.table();
    ASSERT_TRUE(ok(api().env->set_allocator(env.get(), &table)));
    const auto session = make_session(env.get(), hooked_graph());
    const int before = memory.allocations;
    pfrt_io in = hooked_input().io(), out{};
    out.struct_size = sizeof out;
    ASSERT_TRUE(ok(api().session->run(session.get(), &in, 1, &out, 1, nullptr)));
    EXPECT_GE(memory.allocations, before + 2);  // the result and the block of inner values
    kept.reset(out.value);
    EXPECT_TRUE(memory.live.count(static_cast<void*>([&] {
      pfrt_tensor view{};
      view.struct_size = sizeof view;
      EXPECT_TRUE(ok(api().value->tensor(kept.get(), &view)));
      return view.data;
    }())));
  }
  // Only the result is left, and it keeps the allocator.
  EXPECT_EQ(memory.live.size(), 1u);
  EXPECT_EQ(memory.releases, 0);
  EXPECT_EQ(array_of(kept.get()).bytes, wide_result()[0].bytes);
  kept.reset();
  EXPECT_TRUE(memory.live.empty());
  EXPECT_EQ(memory.strangers, 0);
  EXPECT_EQ(memory.releases, 1);
}

TEST(Allocator, without_memory_is_an_error_and_no_more) {
  Memory memory;
  {
    const auto env = make_env();
    const pfrt_allocator table = memory.table();
    ASSERT_TRUE(ok(api().env->set_allocator(env.get(), &table)));
    const auto session = make_session(env.get(), hooked_graph());
    memory.empty = true;
    EXPECT_TRUE(fails(try_run(session.get(), {hooked_input()}), PFRT_CODE_OUT_OF_MEMORY, {}));
    memory.empty = false;
    memory.shift = 4;  // misaligned memory counts as none
    EXPECT_TRUE(fails(try_run(session.get(), {hooked_input()}), PFRT_CODE_OUT_OF_MEMORY, {}));
    memory.shift = 0;
    EXPECT_EQ(run(session.get(), {hooked_input()})[0].bytes, wide_result()[0].bytes);
    ASSERT_TRUE(ok(api().env->set_allocator(env.get(), nullptr)));
    const int before = memory.allocations;
    const auto other = make_session(env.get(), add_graph());
    EXPECT_EQ(run(other.get(), {floats({1, 3}, {0, 0, 0})}).size(), 1u);
    EXPECT_EQ(memory.allocations, before);
  }
  EXPECT_TRUE(memory.live.empty());
  EXPECT_EQ(memory.strangers, 0);
  EXPECT_EQ(memory.releases, 1);
}

TEST(Allocator, has_its_functions) {
  Memory memory;
  const auto env = make_env();
  pfrt_allocator table = memory.table();
  table.free = nullptr;
  EXPECT_TRUE(fails(api().env->set_allocator(env.get(), &table), PFRT_CODE_INVALID_ARGUMENT,
                    {"allocator", "NULL"}));
  EXPECT_EQ(memory.releases, 1);
}

// ---- threads ----

// An executor that starts threads for every loop, as the plainest client might.
struct Loops {
  std::atomic<int> loops{0}, calls{0}, releases{0}, tasks{0};
  std::atomic<uint32_t> widest{0};
  enum { kRight, kLeavesOut, kWrongWorker, kTwice, kTwiceAndLeavesOut } way = kRight;
  std::vector<std::thread> task_threads;

  pfrt_executor table(uint32_t width) {
    pfrt_executor t{};
    t.struct_size = sizeof t;
    t.width = width;
    t.user = this;
    t.loop = [](void* user, uint32_t workers, uint64_t n, void (*fn)(void*, uint64_t, uint32_t),
                void* arg) {
      auto& self = *static_cast<Loops*>(user);
      ++self.loops;
      uint32_t seen = self.widest;
      while (seen < workers && !self.widest.compare_exchange_weak(seen, workers)) continue;
      std::atomic<uint64_t> next{0};
      const auto work = [&](uint32_t worker) {
        for (uint64_t i; (i = next++) < n;) {
          if ((self.way == kLeavesOut || self.way == kTwiceAndLeavesOut) && i == n - 1) continue;
          fn(arg, i, self.way == kWrongWorker ? workers : worker);
          if (i == 0 && (self.way == kTwice || self.way == kTwiceAndLeavesOut)) fn(arg, i, worker);
          ++self.calls;
        }
      };
      std::vector<std::thread> threads;
      for (uint32_t w = 1; w < workers; ++w) threads.emplace_back(work, w);
      work(0);
      for (std::thread& thread : threads) thread.join();
    };
    t.release = [](void* user) { ++static_cast<Loops*>(user)->releases; };
    return t;
  }
};

TEST(Executor, runs_every_loop_and_the_runtime_starts_no_thread) {
  const auto expected = wide_result();
  Loops loops;
  {
    const auto env = make_env();
    const pfrt_executor table = loops.table(3);
    ASSERT_TRUE(ok(api().env->set_executor(env.get(), &table)));
    const int threads = threads_now();
    const auto session = make_session(env.get(), hooked_graph());
    for (const int64_t asked : {0, 2, 8}) {
      const RunDesc options({.num_threads = asked});
      const auto outputs = run(session.get(), {hooked_input()}, options.get());
      ASSERT_EQ(outputs.size(), 1u);
      EXPECT_EQ(outputs[0].bytes, expected[0].bytes);
    }
    EXPECT_LE(threads_now(), threads);  // a thread that was joined may have been counted before
    EXPECT_EQ(loops.releases, 0);
  }
  EXPECT_GE(loops.loops, 6);  // two steps a run
  EXPECT_GT(loops.calls, loops.loops);
  EXPECT_EQ(loops.widest, 3u);  // its own width, when more is asked for
  EXPECT_EQ(loops.releases, 1);
}

TEST(Executor, s_threads_flush_denormals_where_the_session_does) {
  Loops loops;
  const auto env = make_env();
  const pfrt_executor table = loops.table(3);
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &table)));
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Mul", {"x", "x"}, {"y"});
  g.output("y");
  const auto options =
      make_options(PFRT_OPTIONS_SESSION, {{"session.set_denormal_as_zero", "true"}});
  const auto session = make_session(env.get(), g, options.get());
  const auto outputs = run(session.get(), {floats({200'000}, std::vector<float>(200'000, 1e-20f))});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].bytes, floats({200'000}, std::vector<float>(200'000, 0.0f)).bytes);
  EXPECT_GT(loops.calls, 1);
}

TEST(Executor, that_errs_fails_the_run) {
  Loops loops;
  const auto env = make_env();
  const pfrt_executor table = loops.table(2);
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &table)));
  const auto session = make_session(env.get(), hooked_graph());
  for (const auto way :
       {Loops::kLeavesOut, Loops::kWrongWorker, Loops::kTwice, Loops::kTwiceAndLeavesOut}) {
    loops.way = way;
    EXPECT_TRUE(fails(try_run(session.get(), {hooked_input()}), PFRT_CODE_PROVIDER, {"executor"}));
  }
  loops.way = Loops::kRight;
  EXPECT_EQ(run(session.get(), {hooked_input()})[0].bytes, wide_result()[0].bytes);
}

struct Outcome {
  std::mutex mutex;
  std::condition_variable came;
  int calls = 0;
  std::thread::id thread;
  Failure failure;
  static void done(void* user, pfrt_status* status, pfrt_io* outputs, size_t count) {
    auto& self = *static_cast<Outcome*>(user);
    for (size_t i = 0; i < count; ++i) api().value->release(outputs[i].value);
    const std::lock_guard<std::mutex> lock(self.mutex);
    self.failure = take(status);
    self.thread = std::this_thread::get_id();
    ++self.calls;
    self.came.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    came.wait(lock, [&] { return calls > 0; });
  }
};

Failure start(pfrt_session* session, Outcome& outcome) {
  pfrt_io in = hooked_input().io(), out{};
  out.struct_size = sizeof out;
  return take(
      api().session->run_async(session, &in, 1, &out, 1, nullptr, &Outcome::done, &outcome));
}

TEST(Executor, has_asynchronous_runs_where_it_takes_tasks) {
  Loops loops;
  const auto env = make_env();
  pfrt_executor table = loops.table(2);
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &table)));
  const auto session = make_session(env.get(), hooked_graph());
  Outcome never, once;
  EXPECT_TRUE(fails(start(session.get(), never), PFRT_CODE_UNSUPPORTED, {"executor", "submit"}));
  EXPECT_EQ(never.calls, 0);

  table.submit = [](void* user, void (*fn)(void*), void* arg) -> pfrt_code {
    auto& self = *static_cast<Loops*>(user);
    ++self.tasks;
    self.task_threads.emplace_back(fn, arg);
    return PFRT_CODE_OK;
  };
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &table)));
  ASSERT_TRUE(ok(start(session.get(), once)));
  const std::thread::id expected = loops.task_threads.at(0).get_id();
  once.wait();
  EXPECT_TRUE(ok(once.failure));
  EXPECT_EQ(once.thread, expected);
  loops.task_threads[0].join();
  EXPECT_EQ(loops.tasks, 1);
  EXPECT_EQ(once.calls, 1);
}

struct Threads {
  std::atomic<int> created{0}, joined{0}, releases{0};
  bool none = false;

  pfrt_thread_hooks table() {
    pfrt_thread_hooks t{};
    t.struct_size = sizeof t;
    t.user = this;
    t.create = [](void* user, void (*main)(void*), void* arg, void** out) -> pfrt_code {
      auto& self = *static_cast<Threads*>(user);
      if (self.none) return PFRT_CODE_UNSUPPORTED;
      ++self.created;
      *out = new std::thread(main, arg);
      return PFRT_CODE_OK;
    };
    t.join = [](void* user, void* thread) {
      auto* made = static_cast<std::thread*>(thread);
      made->join();
      delete made;
      ++static_cast<Threads*>(user)->joined;
    };
    t.release = [](void* user) { ++static_cast<Threads*>(user)->releases; };
    return t;
  }
};

TEST(ThreadHooks, make_and_join_the_threads_of_the_environment) {
  const auto expected = wide_result();
  Threads threads;
  {
    const auto env = make_env();
    const pfrt_thread_hooks table = threads.table();
    ASSERT_TRUE(ok(api().env->set_thread_hooks(env.get(), &table)));
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "3"}});
    for (int i = 0; i < 5; ++i) {
      const auto session = make_session(env.get(), hooked_graph(), options.get());
      EXPECT_EQ(run(session.get(), {hooked_input()})[0].bytes, expected[0].bytes);
    }
    EXPECT_EQ(threads.created, 2);  // beside the caller, for all sessions
    Outcome outcome;
    const auto session = make_session(env.get(), hooked_graph(), options.get());
    ASSERT_TRUE(ok(start(session.get(), outcome)));
    outcome.wait();
    EXPECT_TRUE(ok(outcome.failure));
    EXPECT_EQ(threads.created, 3);
    EXPECT_EQ(threads.joined, 0);
  }
  // A run's thread may hold the environment a moment longer and then has to end its own pool. Such
  // a thread is joined when the library is used next.
  for (int i = 0; i < 2000 && threads.releases == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto next = make_env();
  }
  EXPECT_EQ(threads.joined, threads.created);
  EXPECT_EQ(threads.releases, 1);
}

TEST(ThreadHooks, without_threads_runs_go_on_alone) {
  Threads threads;
  threads.none = true;
  {
    const auto env = make_env();
    const pfrt_thread_hooks table = threads.table();
    ASSERT_TRUE(ok(api().env->set_thread_hooks(env.get(), &table)));
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "4"}});
    const auto session = make_session(env.get(), hooked_graph(), options.get());
    EXPECT_EQ(run(session.get(), {hooked_input()})[0].bytes, wide_result()[0].bytes);
    Outcome never;
    EXPECT_TRUE(fails(start(session.get(), never), PFRT_CODE_OUT_OF_MEMORY, {"thread"}));
    EXPECT_EQ(never.calls, 0);
  }
  EXPECT_EQ(threads.created, 0);
  EXPECT_EQ(threads.releases, 1);
}

// Several calls ask for a thread while a client's thread is still being created.
TEST(ThreadHooks, first_asynchronous_runs_started_at_once) {
  // The last handle may be released inside a callback: the threads then end when the library is
  // used next.
  static Threads threads;
  for (int round = 0; round < 20; ++round) {
    const auto env = make_env();
    pfrt_thread_hooks table = threads.table();
    table.create = [](void* user, void (*main)(void*), void* arg, void** out) -> pfrt_code {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++static_cast<Threads*>(user)->created;
      *out = new std::thread(main, arg);
      return PFRT_CODE_OK;
    };
    ASSERT_TRUE(ok(api().env->set_thread_hooks(env.get(), &table)));
    const auto session = make_session(env.get(), hooked_graph());
    Outcome outcomes[8];
    std::vector<std::thread> callers;
    for (Outcome& outcome : outcomes)
      callers.emplace_back([&] { EXPECT_TRUE(ok(start(session.get(), outcome))); });
    for (std::thread& caller : callers) caller.join();
    if (HasFailure()) return;
    for (Outcome& outcome : outcomes) {
      outcome.wait();
      EXPECT_TRUE(ok(outcome.failure));
    }
  }
}

// ---- log ----

TEST(Logger, takes_lines_from_any_thread) {
  struct Lines {
    std::atomic<int> warnings{0}, others{0};
  } lines;
  const auto env = make_env({{"log_level", "warning"}, {"plugin_path", PFRT_BAD_PLUGINS}});
  ASSERT_TRUE(ok(api().env->set_logger(
      env.get(),
      [](void* user, pfrt_log_level level, pfrt_string line) {
        auto& self = *static_cast<Lines*>(user);
        const bool ours = text(line).find("BadExecutionProvider is set aside") != std::string::npos;
        ++(ours && level == PFRT_LOG_WARNING ? self.warnings : self.others);
      },
      &lines)));
  const auto model = make_model(env.get(), add_graph());
  const auto options = make_options(PFRT_OPTIONS_SESSION,
                                    {{"providers", "BadExecutionProvider,CPUExecutionProvider"}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) (void)make_session(env.get(), model.get(), options.get());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines.warnings, 20);
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), nullptr, nullptr)));
}

TEST(Logger, sessions_and_runs_have_levels_of_their_own) {
  std::vector<std::string> lines;
  const auto env = make_env({{"log_level", "error"}});
  ASSERT_TRUE(ok(api().env->set_logger(
      env.get(),
      [](void* user, pfrt_log_level, pfrt_string line) {
        static_cast<std::vector<std::string>*>(user)->emplace_back(text(line));
      },
      &lines)));
  const auto found = [&](std::string_view what) {
    return std::ranges::count_if(
        lines, [&](const std::string& l) { return l.find(what) != std::string::npos; });
  };
  const auto model = make_model(env.get(), hooked_graph());
  const auto quiet = make_session(env.get(), model.get());
  EXPECT_TRUE(lines.empty());

  const auto info = make_options(PFRT_OPTIONS_SESSION, {{"log_level", "info"}});
  const auto session = make_session(env.get(), model.get(), info.get());
  EXPECT_EQ(found("session of graph"), 1);
  (void)run(session.get(), {hooked_input()});
  EXPECT_EQ(found("run"), 0);
  const RunDesc debug({.log_level = PFRT_LOG_DEBUG, .tag = "first"});
  (void)run(session.get(), {hooked_input()}, debug.get());
  EXPECT_EQ(found("run 'first' on "), 1);
  (void)run(quiet.get(), {hooked_input()}, debug.get());
  EXPECT_EQ(found("run 'first' on "), 2);

  const auto verbose = make_options(PFRT_OPTIONS_SESSION, {{"verbose_optimization", "true"}});
  const auto told =
      make_session(env.get(), make_model(env.get(), hooked_graph()).get(), verbose.get());
  EXPECT_GT(found("nodes before"), 0);
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), nullptr, nullptr)));
}

// A log function that uses the library for each line that it gets, and hands on to another.
struct Busy {
  pfrt_env* env = nullptr;
  int lines = 0, taken_over = 0;
  bool inside = false;

  static void first(void* user, pfrt_log_level, pfrt_string) {
    auto& self = *static_cast<Busy*>(user);
    EXPECT_FALSE(self.inside);
    self.inside = true;
    ++self.lines;
    EXPECT_GT(api().env->plugin_count(self.env), 0u);
    size_t kernels = 0;
    EXPECT_TRUE(ok(api().env->kernel_count(self.env, str("CPUExecutionProvider"), &kernels)));
    EXPECT_GT(kernels, 0u);
    const auto session = make_session(self.env, add_graph());
    EXPECT_NE(session, nullptr);
    EXPECT_NE(make_env({{"log_level", "debug"}}), nullptr);
    EXPECT_TRUE(ok(api().env->set_logger(self.env, &Busy::second, &self)));
    self.inside = false;
  }
  static void second(void* user, pfrt_log_level, pfrt_string) {
    ++static_cast<Busy*>(user)->taken_over;
  }
};

TEST(Logger, may_use_the_library_and_set_another) {
  const auto env = make_env({{"log_level", "debug"}});
  Busy busy{env.get()};
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), &Busy::first, &busy)));
  testing::internal::CaptureStderr();
  const auto session = make_session(env.get(), hooked_graph());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("pyflame_rt debug: "), std::string::npos);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(busy.lines, 1);
  EXPECT_GT(busy.taken_over, 0);
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), nullptr, nullptr)));
}

// ---- exceptions of a client's functions, which no function of the library may hand on ----

TEST(Thrown, by_a_release_ends_there) {
  const auto env = make_env();
  const Array x = floats({2}, {1, 2});
  const pfrt_tensor view = x.view();
  static int released;
  released = 0;
  const auto release = [](void*, void*) {
    ++released;
    throw 7;
  };
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->wrap_tensor(&view, release, nullptr, &raw)));
  api().value->release(raw);
  GraphBuilder g;
  ASSERT_TRUE(ok(api().graph->add_initializer(g.get(), str("k"), &view, 1, release, nullptr)));
  g = GraphBuilder();
  EXPECT_EQ(released, 2);
  const char text[] = "no model";
  pfrt_model* none = nullptr;
  EXPECT_FALSE(ok(api().model->load_memory(env.get(), text, sizeof text, PFRT_BORROW, release,
                                           nullptr, nullptr, &none)));
  EXPECT_EQ(released, 3);
}

TEST(Thrown, by_a_listener_is_an_error) {
  const auto env = make_env();
  const auto model = make_model(env.get(), hooked_graph());
  const std::string path = testing::TempDir() + "pfrt_listener.pfm";
  ASSERT_TRUE(ok(api().model->save(env.get(), model.get(), str(path), nullptr)));
  const auto options = make_options(PFRT_OPTIONS_LOAD);
  ASSERT_TRUE(ok(api().options->set_progress(
      options.get(), [](void*, double, pfrt_string) { throw 7; }, nullptr)));
  pfrt_model* raw = nullptr;
  EXPECT_TRUE(fails(api().model->load_file(env.get(), str(path), options.get(), &raw),
                    PFRT_CODE_INTERNAL, {"unexpected exception"}));
  EXPECT_EQ(raw, nullptr);
  std::remove(path.c_str());
}

TEST(Thrown, by_what_hears_of_a_run_ends_there) {
  const auto env = make_env();
  const auto session = make_session(env.get(), hooked_graph());
  const pfrt_io in = hooked_input().io();
  pfrt_io out{};
  out.struct_size = sizeof out;
  std::atomic<int> done{0};
  ASSERT_TRUE(ok(api().session->run_async(
      session.get(), &in, 1, &out, 1, nullptr,
      [](void* user, pfrt_status* status, pfrt_io* outputs, size_t count) {
        EXPECT_EQ(status, nullptr);
        for (size_t i = 0; i < count; ++i) api().value->release(outputs[i].value);
        ++*static_cast<std::atomic<int>*>(user);
        throw 7;
      },
      &done)));
  while (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(run(session.get(), {hooked_input()})[0].bytes, wide_result()[0].bytes);
}

TEST(Thrown, by_an_allocator_is_no_memory) {
  const auto env = make_env();
  pfrt_allocator a{};
  a.struct_size = sizeof a;
  a.allocate = [](void*, uint64_t, uint64_t) -> void* { throw 7; };
  a.free = [](void*, void*, uint64_t) { throw 7; };
  a.release = [](void*) { throw 7; };
  const auto session = make_session(env.get(), hooked_graph());
  ASSERT_TRUE(ok(api().env->set_allocator(env.get(), &a)));
  EXPECT_TRUE(fails(try_run(session.get(), {hooked_input()}), PFRT_CODE_OUT_OF_MEMORY, {}));
  ASSERT_TRUE(ok(api().env->set_allocator(env.get(), nullptr)));
  EXPECT_EQ(run(session.get(), {hooked_input()})[0].bytes, wide_result()[0].bytes);
}

TEST(Thrown, by_an_executor_fails_its_run) {
  const auto env = make_env();
  pfrt_executor e{};
  e.struct_size = sizeof e;
  e.width = 2;
  e.loop = [](void*, uint32_t, uint64_t, void (*)(void*, uint64_t, uint32_t), void*) { throw 7; };
  ASSERT_TRUE(ok(api().env->set_executor(env.get(), &e)));
  const auto session = make_session(env.get(), hooked_graph());
  ASSERT_TRUE(session);
  EXPECT_TRUE(fails(try_run(session.get(), {hooked_input()}), PFRT_CODE_PROVIDER, {}));
}

}  // namespace
}  // namespace pfrt_test
