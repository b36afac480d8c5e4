// SPDX-License-Identifier: Apache-2.0
//
// A process that loads, runs and then forks. Its children run too, on several threads, whatever
// other threads of the parent were doing.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "test/capi/client.h"

// ThreadSanitizer does not let a child of a process with threads start others.
#if defined(PFRT_SANITIZE_THREAD)
#define PFRT_NEEDS_FORK() GTEST_SKIP() << "ThreadSanitizer allows no threads after a fork"
#else
#define PFRT_NEEDS_FORK() static_cast<void>(0)
#endif

namespace pfrt_test {
namespace {

// AddressSanitizer's allocator may be locked by a thread that is just starting, and stays locked in
// a child: its builds fork when all other threads sleep.
void let_others_sleep() {
#if defined(PFRT_SANITIZE_ADDRESS)
  const auto asleep = [] {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(task.path() / "stat");
      std::string line;
      std::getline(file, line);
      const size_t name_end = line.rfind(')');
      const bool own = task.path().filename() == std::to_string(gettid());
      if (!own && name_end != std::string::npos && line.substr(name_end, 3) != ") S") return false;
    }
    return true;
  };
  for (int in_turn = 0; in_turn < 10; in_turn = asleep() ? in_turn + 1 : 0) usleep(1000);
#endif
}

// Runs |fn| in a child and returns the child's exit code; 100 when it hangs.
template <typename Fn>
int in_child(Fn fn) {
  let_others_sleep();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(fn());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

GraphBuilder wide_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 256});
  g.constant("w", floats({256, 256}, random_floats(256 * 256, 5)));
  g.node("MatMul", {"x", "w"}, {"a"});
  g.node("Tanh", {"a"}, {"b"});
  g.node("MatMul", {"b", "w"}, {"y"});
  g.output("y");
  return g;
}

const Array& wide_input() {
  static const Array x = floats({512, 256}, random_floats(512 * 256, 6));
  return x;
}

TEST(Fork, a_child_runs_in_parallel_after_a_preload) {
  PFRT_NEEDS_FORK();
  const auto env = make_env();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "3"}});
  const auto session = make_session(env.get(), wide_graph(), options.get());
  const auto expected = run(session.get(), {wide_input()});
  ASSERT_EQ(expected.size(), 1u);
  const auto check = [&]() -> int {
    if (threads_now() != 1) return 2;
    const auto outputs = run(session.get(), {wide_input()});
    if (outputs.size() != 1 || outputs[0].bytes != expected[0].bytes) return 3;
    if (threads_now() != 3) return 4;  // it has threads of its own
    const auto fresh = make_session(env.get(), wide_graph(), options.get());
    if (!fresh || run(fresh.get(), {wide_input()})[0].bytes != expected[0].bytes) return 5;
    return 0;
  };
  EXPECT_EQ(in_child(check), 0);
  // The child's own children do so too.
  EXPECT_EQ(in_child([&] {
              if (const int code = check()) return code;
              return in_child(check);
            }),
            0);
  EXPECT_EQ(run(session.get(), {wide_input()})[0].bytes, expected[0].bytes);
}

TEST(Fork, a_child_may_release_everything) {
  PFRT_NEEDS_FORK();
  auto env = make_env();
  auto session = make_session(env.get(), wide_graph());
  (void)run(session.get(), {wide_input()});
  EXPECT_EQ(in_child([&] {
              session.reset();
              env.reset();
              auto again = make_env();
              auto other = make_session(again.get(), wide_graph());
              return run(other.get(), {wide_input()}).size() == 1 ? 0 : 1;
            }),
            0);
}

// The child must not wait for locks that the parent's threads hold at the fork.
TEST(Fork, a_child_runs_while_the_parents_threads_are_at_work) {
  PFRT_NEEDS_FORK();
#if defined(PFRT_SANITIZE_ADDRESS)
  GTEST_SKIP() << "a child may find AddressSanitizer's own locks held";
#endif
  const auto env = make_env();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "2"}});
  const auto model = make_model(env.get(), wide_graph());
  const auto session = make_session(env.get(), model.get(), options.get());
  const auto expected = run(session.get(), {wide_input()});
  std::atomic<bool> over{false};
  std::vector<std::thread> others;
  for (int t = 0; t < 4; ++t)
    others.emplace_back([&, t] {
      for (int64_t n = 1; !over; n = n % 40 + 1) {
        if (t == 0) {  // makes new plans all the time
          (void)try_run(session.get(),
                        {floats({n, 256}, std::vector<float>(static_cast<size_t>(n * 256)))});
        } else if (t == 1) {
          (void)make_session(env.get(), model.get(), options.get());
        } else {
          (void)try_run(session.get(), {wide_input()});
        }
      }
    });
  for (int round = 0; round < 25; ++round)
    EXPECT_EQ(in_child([&] {
                const auto outputs = run(session.get(), {wide_input()});
                if (outputs.size() != 1 || outputs[0].bytes != expected[0].bytes) return 1;
                const auto fresh = make_session(env.get(), model.get(), options.get());
                return fresh && run(fresh.get(), {wide_input()})[0].bytes == expected[0].bytes ? 0
                                                                                               : 2;
              }),
              0);
  over = true;
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace pfrt_test
