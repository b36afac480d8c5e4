// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <fstream>
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

pfrt_status* start(pfrt_env* env, std::string_view name, const Options& options,
                   pfrt_service** out) {
  const auto list = options.list();
  return api().env->service_start(env, str(name), list.data(), list.size(), out);
}

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
  EXPECT_TRUE(fails(api().env->service_start(env.get(), str("Heartbeat"), nullptr, 1, &service),
                    PFRT_CODE_INVALID_ARGUMENT, {"options"}));
  EXPECT_TRUE(
      fails(start(nullptr, "Heartbeat", {}, &service), PFRT_CODE_INVALID_ARGUMENT, {"env"}));
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
