// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using Profile = InTemporaryFolder;

constexpr char kProfile[] = "profile " PFRT_DIGITS " --threads 2 ";

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(Profile, writes_an_event_for_each_step) {
  const Ran told = run(std::string(kProfile) + "--json -o steps.json");
  ASSERT_EQ(told.code, 0) << told.output;
  const std::string trace = read_file("steps.json");
  const size_t events = times(trace, "\"ph\":\"X\"");
  EXPECT_GT(events, 1u) << trace;
  EXPECT_NE(told.output.find("\"steps\":" + std::to_string(events) + ","), std::string::npos)
      << told.output;
  EXPECT_EQ(times(trace, "\"ts\":"), events);
  EXPECT_EQ(times(trace, "\"dur\":"), events);
  EXPECT_EQ(times(trace, "\"flops\":"), events);
  EXPECT_EQ(times(trace, "\"tid\":0"), events + 2);  // and two that name the track
}

TEST_F(Profile, runs_either_mode_and_prints_a_table) {
  for (const char* mode : {"sequential", "parallel"}) {
    const Ran ran = run(std::string(kProfile) + "--mode " + mode);
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_NE(ran.output.find("GFLOP/s"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("wrote trace.json: "), std::string::npos) << ran.output;
    EXPECT_NE(read_file("trace.json").find("\"traceEvents\""), std::string::npos);
  }
  EXPECT_NE(run(std::string(kProfile) + "--mode sideways").code, 0);
}

TEST_F(Profile, says_where_it_cannot_write) {
  const Ran ran = run(std::string(kProfile) + "-o no/such/folder.json");
  EXPECT_EQ(ran.code, 2) << ran.output;
  EXPECT_NE(ran.output.find("cannot write the trace to 'no/such/folder.json'"), std::string::npos)
      << ran.output;
}

}  // namespace
}  // namespace pfrt_test
