// SPDX-License-Identifier: Apache-2.0
//
// Records of a profile: their contents with many threads at once, their bound, and the file that is
// written.
#include "core/base/os/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/session/profile_file.h"

namespace pfrt {
namespace {

using Kind = Profile::Kind;

std::string written(const Profile& profile, std::string_view graph) {
  const std::string path = testing::TempDir() + "/profile_test.json";
  const Status status = write_profile(profile, {.graph = graph, .session = 7}, path);
  EXPECT_TRUE(status.ok()) << status.message();
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  return text.str();
}

TEST(ProfileRecords, are_those_of_each_thread) {
  Profile profile;
  constexpr uint32_t kThreads = 4, kEach = 1000;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&profile, t] {
      for (uint32_t i = 0; i < kEach; ++i)
        profile.add(Kind::kRun, i, i + 1, profile.name(t % 2 ? "odd" : "even"), i, t);
    });
  while (Profile::Reading(profile).thread_count() < kThreads) {  // while the threads add
  }
  for (std::thread& thread : threads) thread.join();
  const Profile::Reading reading(profile);
  ASSERT_EQ(reading.thread_count(), kThreads);
  EXPECT_EQ(reading.dropped(), 0u);
  for (size_t t = 0; t < kThreads; ++t) {
    const auto records = reading.records(t);
    ASSERT_EQ(records.size(), kEach);
    for (uint32_t i = 0; i < kEach; ++i) {
      EXPECT_EQ(records[i]->start_ns, i);
      EXPECT_EQ(records[i]->run, i);
      EXPECT_EQ(records[i]->value, records[0]->value);
      EXPECT_EQ(reading.name(records[i]->name), records[0]->value % 2 ? "odd" : "even");
    }
  }
}

TEST(ProfileRecords, stay_within_their_bound) {
  Profile profile;
  constexpr uint64_t kMore = 2 * Profile::kMostBytes / sizeof(Profile::Record);
  for (uint64_t i = 0; i < kMore; ++i) profile.add(Kind::kStage, i, i + 1);
  EXPECT_EQ(profile.name(std::string(1 << 16, 'x')), Profile::kDropped);
  profile.add(Kind::kStage, 0, 1, Profile::kDropped);
  const Profile::Reading reading(profile);
  const size_t kept = reading.records(0).size();
  EXPECT_GT(kept, kMore / 3);
  EXPECT_LE(kept * sizeof(Profile::Record), Profile::kMostBytes);
  EXPECT_EQ(reading.dropped(), kMore + 1 - kept);
}

TEST(ProfileRecords, of_two_profiles_do_not_mix) {
  Profile first, second;
  for (int i = 0; i < 10; ++i) {
    first.add(Kind::kStage, 0, 1, first.name("first"));
    second.add(Kind::kStage, 0, 1, second.name("second"));
    second.add(Kind::kStage, 0, 1);
  }
  EXPECT_EQ(Profile::Reading(first).records(0).size(), 10u);
  EXPECT_EQ(Profile::Reading(second).records(0).size(), 20u);
}

TEST(ProfileRecords, of_a_loop_are_joined_where_they_follow_each_other) {
  Profile profile;
  profile.add_share(10, 20, 0, 1);
  profile.add_share(21, 30, 0, 1);
  profile.add_share(40, 50, 0, 2);
  const Profile::Reading reading(profile);
  const auto records = reading.records(0);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]->took_ns(), 20u);
  EXPECT_EQ(records[1]->start_ns, 40u);
}

TEST(ProfileFile, escapes_what_a_model_says) {
  Profile profile;
  const uint64_t at = profile.start_ns();
  profile.add(Kind::kStage, at, at + 1'234'567, profile.name("a\"b\\c\n\x01"));
  std::vector<ProfileStep> steps;
  steps.push_back({"caf\xc3\xa9 \xff\xc0\xaf", "Conv", "host", "k", 1, 2});
  const uint32_t step = profile.add_steps(std::move(steps));
  profile.add(Kind::kStep, at + 5, at + 7, step, 3);
  const std::string text = written(profile, "</script>\xed\xa0\x80");
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(R"("name":"a\u0022b\u005cc\u000a\u0001","dur":1234.567,)")) << text;
  EXPECT_TRUE(has("\"name\":\"caf\xc3\xa9 \\ufffd\\ufffd\\ufffd_kernel_time\"")) << text;
  EXPECT_TRUE(has(R"("ts":0.005,)")) << text;
  EXPECT_TRUE(has(R"("graph":"</script>\ufffd\ufffd\ufffd")")) << text;
}

TEST(ProfileFile, counts_threads_and_memory) {
  Profile profile;
  const uint64_t at = profile.start_ns();
  profile.add(Kind::kWorking, at + 1000, at + 3000, 0, 1, 64);
  profile.add(Kind::kStep, at + 1000, at + 2000, profile.add_steps(std::vector<ProfileStep>(1)), 1);
  profile.add(Kind::kRun, at, at + 4000, 0, 1, 1);
  const std::string text = written(profile, "g");
  EXPECT_NE(text.find(R"("busy_us":4.000)"), std::string::npos) << text;  // the step is in the run
  EXPECT_NE(text.find(R"("ts":1.000,"cat":"Counter","name":"memory","args":{"working_bytes":64,)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("ts":3.000,"cat":"Counter","name":"memory","args":{"working_bytes":0,)"),
            std::string::npos)
      << text;
}

TEST(ProfileFile, is_named_after_its_session) {
  const std::string path = profile_path("a/b", 12);
  EXPECT_EQ(path.rfind("a/b_20", 0), 0u) << path;
  EXPECT_EQ(path.substr(path.size() - 8), "_12.json") << path;
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(path.size(), ("a/b_2026-01-31_23-59-59_" + process + "_12.json").size()) << path;
  EXPECT_NE(path.find("_" + process + "_12.json"), std::string::npos) << path;
}

TEST(ProfileFile, is_not_written_where_it_cannot_be) {
  const Profile profile;
  const Status status = write_profile(profile, {}, "/no/such/folder/p.json");
  EXPECT_NE(status.message().find("/no/such/folder/p.json"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace pfrt
