// SPDX-License-Identifier: Apache-2.0
//
// The environment's option executor: plug-ins that bring threads, and what is said of those that
// are not there or of no use. The real one is tested in test/plugins/executor.
#include <condition_variable>
#include <mutex>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

Failure try_env(const Settings& settings) {
  const auto options = make_options(PFRT_OPTIONS_ENV, settings);
  pfrt_env* env = nullptr;
  Failure failure = take(api().env->create(options.get(), &env));
  EXPECT_EQ(env == nullptr, !failure.ok());
  api().env->release(env);
  return failure;
}

TEST(ExecutorPlugin, that_is_not_there_is_named_with_the_folders_and_the_fix) {
  EXPECT_TRUE(
      fails(try_env({{"executor", "nobody"}, {"plugin_path", "/nowhere"}}), PFRT_CODE_NOT_FOUND,
            {"'nobody'", "libpyflamert_executor_nobody.so", "/nowhere (No such file or directory)",
             "PFRT_PLUGIN_PATH", "'plugin_path'", "leave the option 'executor' out"}));
  EXPECT_TRUE(fails(try_env({{"executor", "pol"}}), PFRT_CODE_NOT_FOUND, {"did you mean 'pool'?"}));
  EXPECT_TRUE(fails(try_env({{"executor", "good_seria"}, {"plugin_path", PFRT_BROKEN_PLUGINS}}),
                    PFRT_CODE_NOT_FOUND, {"did you mean 'good_serial'?"}));
  // Everything else goes on.
  EXPECT_TRUE(ok(try_env({{"executor", "pool"}})));
  EXPECT_TRUE(ok(try_env({})));
}

TEST(ExecutorPlugin, that_is_of_no_use_says_why) {
  const auto of = [](std::string_view word) {
    return try_env({{"executor", word}, {"plugin_path", PFRT_BROKEN_PLUGINS}});
  };
  EXPECT_TRUE(fails(of("has_no_threads"), PFRT_CODE_UNSUPPORTED,
                    {"libpyflamert_executor_has_no_threads.so", "no threads on this planet"}));
  EXPECT_TRUE(fails(of("has_no_loop"), PFRT_CODE_PLUGIN,
                    {"libpyflamert_executor_has_no_loop.so", "'loop'"}));
}

GraphBuilder wide_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 256});
  g.constant("w", floats({256, 256}, random_floats(256 * 256, 5)));
  g.node("MatMul", {"x", "w"}, {"a"});
  g.node("Tanh", {"a"}, {"y"});
  g.output("y");
  return g;
}

TEST(ExecutorPlugin, has_the_loops_of_runs_and_the_library_their_tasks) {
  const Array x = noise({512, 256}, 6);
  const auto pool = make_env();
  const auto expected = run(make_session(pool.get(), wide_graph()).get(), {x});
  const auto env = make_env({{"executor", "good_serial"}, {"plugin_path", PFRT_BROKEN_PLUGINS}});
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "4"}});
  const auto session = make_session(env.get(), wide_graph(), options.get());
  const int threads = threads_now();
  EXPECT_EQ(run(session.get(), {x})[0].bytes, expected[0].bytes);
  EXPECT_LE(threads_now(), threads);  // none is started; one that was joined may be seen still

  // The plug-in takes no tasks.
  struct Outcome {
    std::mutex mutex;
    std::condition_variable came;
    bool over = false;
    Failure failure;
  } outcome;
  pfrt_io in = x.io(), out{};
  out.struct_size = sizeof out;
  ASSERT_TRUE(ok(api().session->run_async(
      session.get(), &in, 1, &out, 1, nullptr,
      [](void* user, pfrt_status* status, pfrt_io* outputs, size_t count) {
        auto& self = *static_cast<Outcome*>(user);
        for (size_t i = 0; i < count; ++i) api().value->release(outputs[i].value);
        const std::lock_guard<std::mutex> lock(self.mutex);
        self.failure = take(status);
        self.over = true;
        self.came.notify_all();
      },
      &outcome)));
  std::unique_lock<std::mutex> lock(outcome.mutex);
  outcome.came.wait(lock, [&] { return outcome.over; });
  EXPECT_TRUE(ok(outcome.failure));
}

TEST(ExecutorPlugin, that_leaves_calls_out_fails_the_run) {
  const auto env = make_env({{"executor", "leaves_out"}, {"plugin_path", PFRT_BROKEN_PLUGINS}});
  const auto session = make_session(env.get(), [] {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {1 << 22});
    g.node("Erf", {"x"}, {"y"});
    g.output("y");
    return g;
  }());
  const RunDesc options({.num_threads = 4});
  std::vector<Array> out;
  const Failure failure = try_run(session.get(), {noise({1 << 22}, 3)}, &out, options.get());
  EXPECT_TRUE(fails(failure, PFRT_CODE_PROVIDER, {"executor"}));
}

}  // namespace
}  // namespace pfrt_test
