// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "test/cli/skeleton.h"
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

TEST_F(Profile, writes_an_event_for_each_step_of_each_run) {
  const Ran told = run(std::string(kProfile) + "--json --runs 5 -o steps.json");
  ASSERT_EQ(told.code, 0) << told.output;
  const std::string trace = read_file("steps.json");
  const size_t runs = times(trace, "\"name\":\"model_run\""),
               events = times(trace, "\"cat\":\"Node\"");
  EXPECT_EQ(times(trace, "\"tag\":\"profiled\""), 5u);
  EXPECT_EQ(times(trace, "\"tag\":\"warm-up\""), 3u);
  ASSERT_GT(runs, 0u);
  EXPECT_GT(events, runs) << trace;
  EXPECT_NE(told.output.find("\"steps\":" + std::to_string(events / runs) + ",\"runs\":5,"),
            std::string::npos)
      << told.output;
  EXPECT_EQ(times(trace, "\"flops\":"), events);
}

TEST_F(Profile, draws_a_page_of_it) {
  const Ran ran = run(std::string(kProfile) + "--no-measure --html page.html");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("wrote page.html"), std::string::npos) << ran.output;
  const std::string page = read_file("page.html");
  EXPECT_EQ(times(page, "<script"), 3u);
  expect_balanced(page);
  EXPECT_LT(page.find("id=\"line\""), page.find("<table")) << "the time line comes first";
  EXPECT_NE(page.find("\"name\":\"conv\",\"text\":\"convolution\""), std::string::npos);
  EXPECT_EQ(times(page, "src="), 0u);
  EXPECT_EQ(times(page, "href="), 0u);
  EXPECT_NE(page.find("\"gflops\":0"), std::string::npos);
  const Ran refused = run(std::string(kProfile) + "--no-measure --html no/such/page.html");
  EXPECT_EQ(refused.code, 2) << refused.output;
  EXPECT_NE(refused.output.find("cannot write the page to 'no/such/page.html'"), std::string::npos);
}

TEST_F(Profile, wants_a_run) {
  for (const char* runs : {"0", "-1", "many"})
    EXPECT_NE(run(std::string(kProfile) + "--runs " + runs).code, 0) << runs;
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
