// SPDX-License-Identifier: Apache-2.0
//
// Sessions with a log function of their own.
#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// Takes lines, and counts its releases.
struct Lines {
  std::mutex mutex;
  std::vector<std::string> lines;
  std::atomic<int> released{0};

  static void take(void* user, pfrt_log_level, pfrt_string line) {
    auto& self = *static_cast<Lines*>(user);
    const std::lock_guard lock(self.mutex);
    EXPECT_EQ(self.released, 0);
    self.lines.push_back(text(line));
  }
  static void release(void* user) { ++static_cast<Lines*>(user)->released; }
  size_t count(std::string_view part) {
    const std::lock_guard lock(mutex);
    return static_cast<size_t>(std::ranges::count_if(
        lines, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }
};

// A provider that runs nothing, and says so in the log.
void register_talker(pfrt_env* env) {
  static const pfrt_provider_table table = [] {
    pfrt_provider_table t{};
    t.struct_size = sizeof t;
    t.abi = PFRT_ABI_VERSION;
    t.devices = str("talker");
    t.close = [](pfrt_provider*) {};
    t.claim = [](pfrt_provider*, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                 const pfrt_sink* sink) -> pfrt_code {
      sink->log(sink, PFRT_LOG_WARNING, str("the talker claims nothing"));
      for (uint32_t n = 0; n < snapshot->node_count; ++n)
        claims->refuse(claims, n, str("it talks"));
      return PFRT_CODE_OK;
    };
    t.compile = [](pfrt_provider*, const pfrt_region*, size_t, size_t, const pfrt_sink*,
                   pfrt_executable**, size_t*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
    t.release_executable = [](pfrt_executable*) {};
    t.specialise = [](pfrt_executable*, const pfrt_shapes*, const pfrt_sink*,
                      pfrt_program*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
    t.release_program = [](pfrt_executable*, pfrt_program*) {};
    return t;
  }();
  pfrt_client_provider c{};
  c.struct_size = sizeof c;
  c.abi = PFRT_ABI_VERSION;
  c.name = str("TalkerExecutionProvider");
  c.table = &table;
  c.open = [](void*, pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
              pfrt_provider** out) -> pfrt_code {
    static int opened;
    *out = reinterpret_cast<pfrt_provider*>(&opened);
    return PFRT_CODE_OK;
  };
  EXPECT_TRUE(ok(api().env->register_provider(env, &c)));
}

class SessionLog : public testing::Test {
 protected:
  void SetUp() override {
    env_ = make_env({{"log_level", "warning"}});
    ASSERT_TRUE(ok(api().env->set_logger(env_.get(), Lines::take, &common_)));
    register_talker(env_.get());
    model_ = make_model(env_.get(), add_graph());
  }
  void TearDown() override { EXPECT_TRUE(ok(api().env->set_logger(env_.get(), nullptr, nullptr))); }
  Failure create(const Settings& settings, Lines* lines, Handle<pfrt_session>* out) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, settings);
    pfrt_session_desc desc{};
    desc.struct_size = sizeof desc;
    desc.model = model_.get();
    desc.options = options.get();
    if (lines) {
      desc.log = Lines::take;
      desc.log_user = lines;
      desc.log_release = Lines::release;
    }
    pfrt_session* raw = nullptr;
    Failure failure = take(api().session->create(env_.get(), &desc, &raw));
    out->reset(raw);
    return failure;
  }
  Lines common_;
  Handle<pfrt_env> env_;
  Handle<pfrt_model> model_;
};

const Settings kTalker = {{"providers", "TalkerExecutionProvider,CPUExecutionProvider"}};

TEST_F(SessionLog, takes_the_lines_of_create_and_of_runs) {
  Lines own;
  Handle<pfrt_session> session;
  Settings settings = kTalker;
  settings.emplace_back("log_level", "debug");
  ASSERT_TRUE(ok(create(settings, &own, &session)));
  EXPECT_EQ(own.count("session of graph"), 1u);
  EXPECT_GT(own.count("the talker claims nothing"), 0u);
  const size_t before = own.count("");
  run(session.get(), {floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_GT(own.count(""), before);
  EXPECT_EQ(own.released, 0);
  session.reset();
  EXPECT_GT(own.count("Cleanup"), 0u);
  EXPECT_EQ(own.released, 1);
  EXPECT_EQ(common_.count(""), 0u) << common_.lines[0];
}

TEST_F(SessionLog, has_the_level_of_its_session) {
  Lines own;
  Handle<pfrt_session> session;
  Settings settings = kTalker;
  settings.emplace_back("log_level", "error");
  ASSERT_TRUE(ok(create(settings, &own, &session)));
  EXPECT_EQ(own.count(""), 0u) << "the talker's line is a warning";
  EXPECT_EQ(common_.count(""), 0u);
}

TEST_F(SessionLog, is_that_of_the_environment_where_there_is_none) {
  Lines own;
  Handle<pfrt_session> other, session;
  ASSERT_TRUE(ok(create(kTalker, &own, &session)));
  const size_t mine = own.count("");
  ASSERT_TRUE(ok(create(kTalker, nullptr, &other)));
  EXPECT_GT(common_.count("the talker claims nothing"), 0u);
  EXPECT_EQ(own.count(""), mine);
}

TEST_F(SessionLog, is_released_when_create_fails) {
  Lines own;
  Handle<pfrt_session> session;
  EXPECT_TRUE(fails(create({{"providers", "Nobody"}}, &own, &session), PFRT_CODE_NOT_FOUND, {}));
  EXPECT_EQ(own.released, 1);
  Lines late;
  EXPECT_TRUE(fails(create({{"providers", "TalkerExecutionProvider"}}, &late, &session),
                    PFRT_CODE_UNSUPPORTED_OPERATOR, {}));
  EXPECT_GT(late.count("the talker claims nothing"), 0u);
  EXPECT_EQ(late.released, 1);
  pfrt_session_desc desc{};
  desc.struct_size = sizeof desc;
  desc.log_user = &late;
  desc.log_release = Lines::release;
  pfrt_session* raw = nullptr;
  EXPECT_TRUE(fails(api().session->create(env_.get(), &desc, &raw), PFRT_CODE_INVALID_ARGUMENT,
                    {"desc.model"}));
  EXPECT_EQ(late.released, 2);
}

TEST_F(SessionLog, takes_the_lines_of_asynchronous_runs) {
  Lines own;
  Handle<pfrt_session> session;
  Settings settings = kTalker;
  settings.emplace_back("log_level", "debug");
  ASSERT_TRUE(ok(create(settings, &own, &session)));
  const size_t before = own.count("");
  const Array x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const pfrt_io in = x.io();
  pfrt_io out{};
  out.struct_size = sizeof out;
  std::promise<void> done;
  ASSERT_TRUE(ok(api().session->run_async(
      session.get(), &in, 1, &out, 1, nullptr,
      [](void* user, pfrt_status* status, pfrt_io* outputs, size_t) {
        EXPECT_TRUE(ok(status));
        api().value->release(outputs[0].value);
        static_cast<std::promise<void>*>(user)->set_value();
      },
      &done)));
  session.reset();
  done.get_future().wait();
  EXPECT_GT(own.count(""), before);
  EXPECT_EQ(common_.count(""), 0u);
  for (int i = 0; i < 3000 && own.released == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(own.released, 1);
}

TEST_F(SessionLog, function_may_set_a_logger_and_run) {
  struct Shared {
    pfrt_env* env;
    Lines* common;
    int lines = 0;
  } shared{env_.get(), &common_};
  const auto options = make_options(PFRT_OPTIONS_SESSION, kTalker);
  pfrt_session_desc desc{};
  desc.struct_size = sizeof desc;
  desc.model = model_.get();
  desc.options = options.get();
  desc.log = [](void* user, pfrt_log_level, pfrt_string) {
    auto& self = *static_cast<Shared*>(user);
    ++self.lines;
    EXPECT_TRUE(ok(api().env->set_logger(self.env, Lines::take, self.common)));
    throw 1;
  };
  desc.log_user = &shared;
  pfrt_session* raw = nullptr;
  ASSERT_TRUE(ok(api().session->create(env_.get(), &desc, &raw)));
  api().session->release(raw);
  EXPECT_GT(shared.lines, 0);
}

}  // namespace
}  // namespace pfrt_test
