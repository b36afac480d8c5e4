// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <pyflame_rt/service.hpp>
#include <thread>

#include "test/capi/client.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

const char* const kPath = PFRT_SAMPLE_PLUGINS;

struct Options {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<pfrt_key_value> list() const {
    std::vector<pfrt_key_value> out;
    for (const auto& [key, value] : texts) out.push_back({str(key), str(value)});
    return out;
  }
};

pfrt_service_desc describe(std::string_view name, const std::vector<pfrt_key_value>& list) {
  pfrt_service_desc desc{};
  desc.struct_size = sizeof desc;
  desc.name = str(name);
  desc.options = list.data();
  desc.option_count = list.size();
  return desc;
}

pfrt_status* start(pfrt_env* env, std::string_view name, const Options& options,
                   pfrt_service** out) {
  const auto list = options.list();
  const pfrt_service_desc desc = describe(name, list);
  return api().env->service_start(env, &desc, out);
}

pfrt_status* check(pfrt_env* env, std::string_view name, const Options& options) {
  const auto list = options.list();
  const pfrt_service_desc desc = describe(name, list);
  return api().env->service_check(env, &desc);
}

struct ReplyReleaser {
  void operator()(pfrt_reply* reply) const { api().env->reply_release(reply); }
};
using Reply = std::unique_ptr<pfrt_reply, ReplyReleaser>;

Failure ask(pfrt_service* service, std::string_view verb, std::string_view request = {},
            std::string* out = nullptr, const pfrt_options* options = nullptr) {
  pfrt_ask_desc desc{};
  desc.struct_size = sizeof desc;
  desc.verb = str(verb);
  desc.request = str(request);
  desc.options = options;
  pfrt_reply* raw = nullptr;
  Failure failure = take(api().env->service_ask(service, &desc, &raw));
  EXPECT_EQ(failure.ok(), raw != nullptr);
  const Reply reply(raw);
  if (out) *out = text(api().env->reply_text(raw));
  return failure;
}

struct Stopper {
  void operator()(pfrt_service* service) const { api().env->service_stop(service); }
};
using Running = std::unique_ptr<pfrt_service, Stopper>;

Running start_named(pfrt_env* env, std::string_view name, const Options& options = {}) {
  pfrt_service* service = nullptr;
  EXPECT_TRUE(ok(start(env, name, options, &service)));
  return Running(service);
}

// Hears of a service's events.
struct Listener {
  std::mutex mutex;
  std::vector<std::pair<std::string, std::string>> events;
  std::atomic<int> count = 0;

  static void hear(void* user, pfrt_string name, pfrt_string words) {
    auto& self = *static_cast<Listener*>(user);
    const std::lock_guard lock(self.mutex);
    self.events.emplace_back(text(name), text(words));
    ++self.count;
  }
  // Waits, generously.
  bool heard(int least) const {
    for (int i = 0; i < 3000 && count < least; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return count >= least;
  }
};

size_t lines(const std::string& file, const std::string& part) {
  std::ifstream in(file);
  size_t count = 0;
  for (std::string line; std::getline(in, line);) count += line.find(part) != std::string::npos;
  return count;
}

// Waits, generously, until the file has a line with |part|.
bool appears(const std::string& file, const std::string& part) {
  for (int i = 0; i < 3000; ++i) {
    if (lines(file, part) > 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Service, is_written_with_the_cxx_api_that_it_is_given) {
  auto env = make_env({{"plugin_path", PFRT_GIVEN_API_PLUGINS}});
  for (int again = 0; again < 2; ++again) {
    pfrt_service* service = nullptr;
    ASSERT_TRUE(ok(start(env.get(), "Counter", {{{"model", PFRT_DIGITS}}}, &service)));
    EXPECT_EQ(text(api().env->service_address(service)), "10");
    api().env->service_stop(service);
  }
  pfrt_service* service = nullptr;
  EXPECT_TRUE(fails(start(env.get(), "Counter", {{{"model", "/nowhere.onnx"}}}, &service),
                    PFRT_CODE_PLUGIN, {"/nowhere.onnx"}));
}

TEST(Service, runs_a_model_until_it_is_stopped) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/beats";
  auto env = make_env({{"plugin_path", kPath}});
  pfrt_service* service = nullptr;
  ASSERT_TRUE(
      ok(start(env.get(), "Heartbeat",
               {{{"interval_ms", "5"}, {"file", file}, {"model", PFRT_DIGITS}}}, &service)));
  ASSERT_NE(service, nullptr);
  EXPECT_EQ(text(api().env->service_address(service)), file);
  env.reset();  // the service keeps what it needs
  EXPECT_TRUE(appears(file, "beat 2 ok"));
  EXPECT_EQ(lines(file, "failed"), 0u);
  api().env->service_stop(service);
  const size_t count = lines(file, "beat");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(lines(file, "beat"), count) << "nothing of it runs after stop";
}

TEST(Service, is_found_by_the_name_of_its_file_and_runs_twice) {
  const auto env = make_env({{"plugin_path", kPath}});
  pfrt_service *one = nullptr, *two = nullptr;
  ASSERT_TRUE(ok(start(env.get(), "heartbeat", {}, &one)));
  ASSERT_TRUE(ok(start(env.get(), "Heartbeat", {}, &two)));
  EXPECT_NE(one, two);
  EXPECT_EQ(text(api().env->service_address(one)), "");
  api().env->service_stop(one);
  api().env->service_stop(two);
  api().env->service_stop(nullptr);
}

TEST(Service, refusals_say_why_and_leave_nothing) {
  const auto env = make_env({{"plugin_path", kPath}});
  pfrt_service* service = reinterpret_cast<pfrt_service*>(&api);
  EXPECT_TRUE(fails(start(env.get(), "Nobody", {}, &service), PFRT_CODE_NOT_FOUND,
                    {"'Nobody'", "Heartbeat"}));
  EXPECT_EQ(service, nullptr);
  EXPECT_TRUE(fails(start(env.get(), "Heartbeat", {{{"colour", "red"}}}, &service),
                    PFRT_CODE_INVALID_ARGUMENT, {"'Heartbeat'", "'colour'", "interval_ms"}));
  EXPECT_TRUE(fails(start(env.get(), "Heartbeat", {{{"interval_ms", "soon"}}}, &service),
                    PFRT_CODE_INVALID_ARGUMENT, {"'soon'"}));
  EXPECT_TRUE(fails(start(env.get(), "Heartbeat", {{{"model", "/nowhere.onnx"}}}, &service),
                    PFRT_CODE_NOT_FOUND, {"/nowhere.onnx"}));
  EXPECT_EQ(service, nullptr);
  EXPECT_TRUE(fails(start(env.get(), "Heartbeat", {{{"intervall_ms", "5"}}}, &service),
                    PFRT_CODE_INVALID_ARGUMENT, {"starting", "nearest is 'interval_ms'"}));
  EXPECT_TRUE(fails(start(env.get(), "Heartbeat", {{{"file", "a"}, {"file", "b"}}}, &service),
                    PFRT_CODE_INVALID_ARGUMENT, {"'file' is given twice"}));
  pfrt_service_desc desc = describe("Heartbeat", {});
  desc.option_count = 1;
  desc.options = nullptr;
  EXPECT_TRUE(fails(api().env->service_start(env.get(), &desc, &service),
                    PFRT_CODE_INVALID_ARGUMENT, {"desc.options"}));
  EXPECT_TRUE(fails(api().env->service_start(env.get(), nullptr, &service),
                    PFRT_CODE_INVALID_ARGUMENT, {"'desc'"}));
  EXPECT_EQ(service, nullptr);
  EXPECT_TRUE(
      fails(start(nullptr, "Heartbeat", {}, &service), PFRT_CODE_INVALID_ARGUMENT, {"env"}));
}

// ---- options and their check ----

TEST(Service, lists_its_options) {
  const auto env = make_env({{"plugin_path", kPath}});
  size_t count = 0;
  ASSERT_TRUE(ok(api().env->service_option_count(env.get(), str("heartbeat"), &count)));
  ASSERT_EQ(count, 3u);
  pfrt_option_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().env->service_option_at(env.get(), str("Heartbeat"), 0, &info)));
  EXPECT_EQ(text(info.key), "interval_ms");
  EXPECT_EQ(info.type, uint32_t{PFRT_OPTION_INT});
  EXPECT_EQ(text(info.default_value), "1000");
  EXPECT_TRUE(fails(api().env->service_option_at(env.get(), str("Heartbeat"), 3, &info),
                    PFRT_CODE_INVALID_ARGUMENT, {"option 3 of 3", "Heartbeat"}));
  EXPECT_TRUE(fails(api().env->service_option_count(env.get(), str("Nobody"), &count),
                    PFRT_CODE_NOT_FOUND, {"Nobody", "Heartbeat"}));
  EXPECT_EQ(count, 0u);
  const auto other = make_env({{"plugin_path", PFRT_GIVEN_API_PLUGINS}});
  EXPECT_TRUE(ok(api().env->service_option_count(other.get(), str("Counter"), &count)));
  EXPECT_EQ(count, 0u) << "it has no list";
}

TEST(Service, is_checked_without_being_started) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/beats";
  const auto env = make_env({{"plugin_path", kPath}});
  const int threads = threads_now();
  EXPECT_TRUE(ok(check(env.get(), "Heartbeat", {{{"interval_ms", "5"}, {"file", file}}})));
  EXPECT_TRUE(ok(check(env.get(), "Heartbeat", {{{"model", PFRT_DIGITS}}})));
  EXPECT_EQ(threads_now(), threads);
  EXPECT_FALSE(std::ifstream(file).good());
  EXPECT_TRUE(fails(check(env.get(), "Heartbeat", {{{"interval", "5"}}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"checking service", "'interval'", "interval_ms"}));
  EXPECT_TRUE(fails(check(env.get(), "Heartbeat", {{{"interval_ms", "soon"}}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"'soon'", "an integer"}));
  EXPECT_TRUE(fails(check(env.get(), "Heartbeat", {{{"interval_ms", "0"}}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"number from 1"}));
  EXPECT_TRUE(fails(check(env.get(), "Heartbeat", {{{"model", "/nowhere.onnx"}}}),
                    PFRT_CODE_NOT_FOUND, {"/nowhere.onnx"}));
  const auto other = make_env({{"plugin_path", PFRT_GIVEN_API_PLUGINS}});
  EXPECT_TRUE(fails(check(other.get(), "Counter", {}), PFRT_CODE_UNSUPPORTED,
                    {"Counter", "neither lists its options nor checks them"}));
}

TEST(Service, choices_of_an_option_are_held_before_start) {
  const auto env = make_env({{"plugin_path", PFRT_BROKEN_PLUGINS}});
  pfrt_service* service = nullptr;
  EXPECT_TRUE(fails(start(env.get(), "Idle", {{{"colour", "blue"}}}, &service),
                    PFRT_CODE_INVALID_ARGUMENT, {"'colour' to 'blue'", "red green"}));
  EXPECT_TRUE(start_named(env.get(), "Idle", {{{"colour", "green"}}}));
}

// ---- questions ----

TEST(Service, answers_questions_while_it_runs) {
  const auto env = make_env({{"plugin_path", kPath}});
  const Running service = start_named(env.get(), "Heartbeat", {{{"interval_ms", "3600000"}}});
  std::string answer;
  ASSERT_TRUE(ok(ask(service.get(), "stats", {}, &answer)));
  EXPECT_EQ(answer.rfind("beats ", 0), 0u) << answer;
  EXPECT_TRUE(ok(ask(service.get(), "interval", "1")));
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i)
    askers.emplace_back([&] {
      for (int n = 0; n < 50; ++n) EXPECT_TRUE(ok(ask(service.get(), "stats")));
    });
  for (std::thread& asker : askers) asker.join();
  EXPECT_TRUE(fails(ask(service.get(), "interval", "never"), PFRT_CODE_INVALID_ARGUMENT,
                    {"asking service 'Heartbeat' to 'interval'", "'never'"}));
  EXPECT_TRUE(
      fails(ask(service.get(), "dance"), PFRT_CODE_UNSUPPORTED, {"'dance'", "stats and interval"}));
}

TEST(Service, questions_are_checked) {
  const auto env = make_env({{"plugin_path", kPath}});
  const Running service = start_named(env.get(), "Heartbeat");
  EXPECT_TRUE(fails(ask(service.get(), ""), PFRT_CODE_INVALID_ARGUMENT, {"desc.verb is empty"}));
  EXPECT_TRUE(fails(ask(nullptr, "stats"), PFRT_CODE_INVALID_ARGUMENT, {"'service'"}));
  pfrt_ask_desc desc{};
  desc.struct_size = sizeof desc;
  desc.verb = str("stats");
  desc.provider = str("cpu");
  pfrt_reply* reply = nullptr;
  EXPECT_TRUE(fails(api().env->service_ask(service.get(), &desc, &reply),
                    PFRT_CODE_INVALID_ARGUMENT, {"desc.provider is set"}));
  const auto device = make_options(PFRT_OPTIONS_ASK, {{"device", "cpu"}});
  const auto own = make_options(PFRT_OPTIONS_ASK, {{"provider.cpu.x", "1"}});
  for (const auto& options : {device.get(), own.get()})
    EXPECT_TRUE(fails(ask(service.get(), "stats", {}, nullptr, options), PFRT_CODE_INVALID_ARGUMENT,
                      {"for a provider's device"}));
  const auto load = make_options(PFRT_OPTIONS_LOAD);
  EXPECT_TRUE(fails(ask(service.get(), "stats", {}, nullptr, load.get()),
                    PFRT_CODE_INVALID_ARGUMENT, {"of kind load, not ask"}));
  const auto cancelled = make_options(PFRT_OPTIONS_ASK);
  api().options->cancel(cancelled.get());
  EXPECT_TRUE(
      fails(ask(service.get(), "stats", {}, nullptr, cancelled.get()), PFRT_CODE_CANCELLED, {}));
  const auto other = make_env({{"plugin_path", PFRT_GIVEN_API_PLUGINS}});
  const Running counter = start_named(other.get(), "Counter", {{{"model", PFRT_DIGITS}}});
  EXPECT_TRUE(
      fails(ask(counter.get(), "stats"), PFRT_CODE_UNSUPPORTED, {"Counter", "takes no questions"}));
}

// ---- events ----

TEST(Service, tells_of_events_until_it_is_stopped) {
  const auto env = make_env({{"plugin_path", kPath}});
  Listener listener;
  const Options options{{{"interval_ms", "1"}}};
  const auto list = options.list();
  pfrt_service_desc desc = describe("Heartbeat", list);
  desc.event = Listener::hear;
  desc.event_user = &listener;
  pfrt_service* service = nullptr;
  ASSERT_TRUE(ok(api().env->service_start(env.get(), &desc, &service)));
  EXPECT_TRUE(listener.heard(3));
  api().env->service_stop(service);
  const int count = listener.count;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(listener.count, count);
  EXPECT_EQ(listener.events[0].first, "beat");
  EXPECT_NE(listener.events[0].second.find("beat 1 ok"), std::string::npos);
}

TEST(Service, an_event_may_ask_the_service_and_throw) {
  const auto env = make_env({{"plugin_path", kPath}});
  struct Shared {
    std::atomic<pfrt_service*> service = nullptr;
    std::atomic<int> answered = 0;
  } shared;
  const Options options{{{"interval_ms", "1"}}};
  const auto list = options.list();
  pfrt_service_desc desc = describe("Heartbeat", list);
  desc.event = [](void* user, pfrt_string, pfrt_string) {
    auto& self = *static_cast<Shared*>(user);
    if (!self.service) return;
    if (ask(self.service, "stats").ok()) ++self.answered;
    throw 1;
  };
  desc.event_user = &shared;
  pfrt_service* service = nullptr;
  ASSERT_TRUE(ok(api().env->service_start(env.get(), &desc, &service)));
  shared.service = service;
  for (int i = 0; i < 3000 && shared.answered < 3; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(shared.answered, 3);
  shared.service = nullptr;
  api().env->service_stop(service);
}

TEST(Service, an_event_without_a_name_is_left_out) {
  const auto env = make_env({{"plugin_path", PFRT_BROKEN_PLUGINS}});
  Listener listener;
  pfrt_service_desc desc = describe("NamelessEvent", {});
  desc.options = nullptr;
  desc.event = Listener::hear;
  desc.event_user = &listener;
  pfrt_service* service = nullptr;
  ASSERT_TRUE(ok(api().env->service_start(env.get(), &desc, &service)));
  const Running running(service);
  EXPECT_EQ(listener.count, 0);
}

// ---- stop and progress of a start, with the service of test/plugins/attendant ----

struct Call {
  Handle<pfrt_options> options = make_options(PFRT_OPTIONS_ASK);
  std::vector<double> fractions;
  double cancel_at = 2;

  Call() { EXPECT_TRUE(ok(api().options->set_progress(options.get(), hear, this))); }
  static void hear(void* user, double fraction, pfrt_string) {
    auto& self = *static_cast<Call*>(user);
    self.fractions.push_back(fraction);
    if (fraction >= self.cancel_at) api().options->cancel(self.options.get());
  }
};

class Attendant : public testing::Test {
 protected:
  Failure start(const Options& options, const pfrt_options* call) {
    const auto list = options.list();
    pfrt_service_desc desc = describe("Attendant", list);
    desc.call = call;
    pfrt_service* service = nullptr;
    Failure failure = take(api().env->service_start(env_.get(), &desc, &service));
    EXPECT_EQ(failure.ok(), service != nullptr);
    running_.reset(service);
    return failure;
  }
  Handle<pfrt_env> env_ = make_env({{"plugin_path", PFRT_ATTENDANT_PLUGINS}});
  Running running_;
};

TEST_F(Attendant, progress_of_a_start_rises_to_one) {
  Call call;
  ASSERT_TRUE(ok(start({{{"steps", "4"}}}, call.options.get())));
  EXPECT_TRUE(std::is_sorted(call.fractions.begin(), call.fractions.end()));
  EXPECT_GE(call.fractions.size(), 5u);
  EXPECT_EQ(call.fractions.back(), 1.0);
}

TEST_F(Attendant, cancel_and_deadline_end_a_start) {
  const int threads = threads_now();
  Call call;
  call.cancel_at = 0.001;
  EXPECT_TRUE(fails(start({{{"steps", "100000000"}}}, call.options.get()), PFRT_CODE_CANCELLED,
                    {"starting service 'Attendant'", "cancelled by the caller"}));
  EXPECT_LT(call.fractions.back(), 1.0);
  EXPECT_TRUE(fails(start({}, call.options.get()), PFRT_CODE_CANCELLED, {"Attendant"}))
      << "a cancel holds until it is reset";
  api().options->reset_cancel(call.options.get());
  call.cancel_at = 2;
  EXPECT_TRUE(ok(start({}, call.options.get())));
  running_.reset();
  const auto late = make_options(PFRT_OPTIONS_ASK, {{"timeout_ms", "20"}});
  EXPECT_TRUE(
      fails(start({{{"steps", "100000000"}}}, late.get()), PFRT_CODE_DEADLINE, {"Attendant"}));
  EXPECT_EQ(threads_now(), threads);
}

TEST_F(Attendant, a_start_that_has_returned_is_not_cancelled) {
  Call call;
  ASSERT_TRUE(ok(start({}, call.options.get())));
  api().options->cancel(call.options.get());
  std::string answer;
  ASSERT_TRUE(ok(ask(running_.get(), "stop?", {}, &answer)));
  EXPECT_EQ(answer, "0") << "the sink of start says so";
}

TEST_F(Attendant, stopping_cancels_questions_and_waits_for_them) {
  ASSERT_TRUE(ok(start({}, nullptr)));
  pfrt_service* const service = running_.release();
  Failure failure;
  std::thread asker([&] { failure = ask(service, "wait"); });
  std::string answer;
  for (int i = 0; i < 3000 && answer != "1"; ++i) {
    ASSERT_TRUE(ok(ask(service, "waiting", {}, &answer)));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(answer, "1");
  api().env->service_stop(service);
  asker.join();
  EXPECT_TRUE(fails(failure, PFRT_CODE_CANCELLED, {"to 'wait'", "being stopped"}));
}

TEST_F(Attendant, a_question_has_a_deadline_and_progress) {
  ASSERT_TRUE(ok(start({}, nullptr)));
  const auto late = make_options(PFRT_OPTIONS_ASK, {{"timeout_ms", "20"}});
  EXPECT_TRUE(fails(ask(running_.get(), "wait", {}, nullptr, late.get()), PFRT_CODE_DEADLINE,
                    {"to 'wait'"}));
  Call call;
  ASSERT_TRUE(ok(ask(running_.get(), "half", {}, nullptr, call.options.get())));
  EXPECT_EQ(call.fractions, (std::vector<double>{0, 0.5, 1}));
}

TEST_F(Attendant, wrong_answers_are_errors) {
  ASSERT_TRUE(ok(start({}, nullptr)));
  for (const char* verb : {"nameless", "twice", "short"})
    EXPECT_TRUE(fails(ask(running_.get(), verb), PFRT_CODE_PLUGIN,
                      {"asking service 'Attendant'", verb, "its tensor"}));
  EXPECT_TRUE(fails(ask(running_.get(), "throw"), PFRT_CODE_PLUGIN,
                    {"an exception escaped the plug-in", "thrown"}));
  pfrt_ask_desc desc{};
  desc.struct_size = sizeof desc;
  desc.verb = str("echo");
  const auto value = value_of(floats({2}, {1, 2}));
  pfrt_value* const values[] = {value.get()};
  desc.values = values;
  desc.value_count = 1;
  pfrt_reply* reply = nullptr;
  ASSERT_TRUE(ok(api().env->service_ask(running_.get(), &desc, &reply)));
  const Reply owner(reply);
  running_.reset();
  env_.reset();
  pfrt_string name{};
  pfrt_value* tensor = nullptr;
  ASSERT_TRUE(ok(api().env->reply_at(reply, 0, &name, &tensor)));
  EXPECT_EQ(array_of(tensor).as<float>(), (std::vector<float>{1, 2})) << "outlives the service";
}

TEST_F(Attendant, faults_of_start_and_check_are_errors) {
  EXPECT_TRUE(fails(start({{{"fault", "throw"}}}, nullptr), PFRT_CODE_PLUGIN,
                    {"Attendant", "an exception escaped the plug-in"}));
  EXPECT_TRUE(
      fails(start({{{"fault", "nothing"}}}, nullptr), PFRT_CODE_PLUGIN, {"gave no handle"}));
  EXPECT_TRUE(fails(check(env_.get(), "Attendant", {{{"fault", "throw"}}}), PFRT_CODE_PLUGIN,
                    {"checking service 'Attendant'", "an exception escaped the plug-in"}));
  EXPECT_TRUE(ok(check(env_.get(), "Attendant", {{{"fault", "nothing"}}})));
}

// ---- the C++ API ----

TEST(Service, of_the_cxx_api_asks_checks_and_hears) {
  pyflame_rt::EnvironmentOptions options;
  options.plugin_path = kPath;
  pyflame_rt::Environment::instance(options);
  EXPECT_EQ(pyflame_rt::Service::options("Heartbeat").at(0).key, "interval_ms");
  pyflame_rt::ServiceSettings settings;
  settings.options = {{"interval_ms", "1"}};
  pyflame_rt::Service::check("Heartbeat", settings);
  std::atomic<int> beats = 0;
  std::vector<double> fractions;
  settings.on_event = [&](const std::string& name, const std::string&) {
    beats += name == "beat";
    throw std::runtime_error("is lost");
  };
  settings.progress = [&](double fraction) {
    fractions.push_back(fraction);
    return true;
  };
  pyflame_rt::Service service("Heartbeat", settings);
  EXPECT_EQ(fractions.back(), 1.0);
  pyflame_rt::Service moved = std::move(service);
  for (int i = 0; i < 3000 && beats < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(beats, 2);
  EXPECT_EQ(moved.ask("stats").text.rfind("beats ", 0), 0u);
  EXPECT_THROW(moved.ask("dance"), pyflame_rt::UnsupportedError);
  EXPECT_THROW(service.ask("stats"), pyflame_rt::InvalidArgumentError);  // NOLINT: moved from
  moved.stop();
  settings.options["interval_ms"] = "soon";
  EXPECT_THROW(pyflame_rt::Service::check("Heartbeat", settings), pyflame_rt::InvalidArgumentError);
  settings.options.clear();
  settings.progress = [](double) { return false; };
  EXPECT_THROW(pyflame_rt::Service("Heartbeat", settings), pyflame_rt::CancelledError);
  settings.progress = [](double) -> bool { throw std::logic_error("from progress"); };
  EXPECT_THROW(pyflame_rt::Service("Heartbeat", settings), std::logic_error);
}

TEST(Service, of_the_cxx_api_stops_with_its_object) {
  pyflame_rt::EnvironmentOptions options;
  options.plugin_path = kPath;
  pyflame_rt::Environment::instance(options);
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/beats";
  {
    pyflame_rt::Service service("Heartbeat", {{"interval_ms", "5"}, {"file", file}});
    EXPECT_TRUE(service.running());
    EXPECT_EQ(service.address(), file);
    pyflame_rt::Service moved = std::move(service);
    EXPECT_TRUE(appears(file, "beat 1 ok"));
    moved.stop();
    EXPECT_FALSE(moved.running());
    EXPECT_EQ(moved.address(), "");
  }
  EXPECT_THROW(pyflame_rt::Service("Nobody"), pyflame_rt::PyFlameRTError);
}

}  // namespace
}  // namespace pfrt_test
