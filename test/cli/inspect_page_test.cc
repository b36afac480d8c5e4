// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "test/cli/skeleton.h"
#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using InspectPage = InTemporaryFolder;

TEST_F(InspectPage, has_both_graphs_and_the_passes) {
  const Ran ran = run("inspect " PFRT_DIGITS " --html page.html");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output.rfind("wrote page.html: 10 nodes, ", 0), 0U) << ran.output;
  const std::string html = read_file("page.html");
  expect_balanced(html);
  for (const char* part : {"id=\"before\"", "id=\"after\"", "ConstantFoldingPass",
                           "LayoutOptimizationPass", "float32 [", "maxpool1"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

TEST_F(InspectPage, keeps_to_the_level) {
  EXPECT_EQ(run("inspect " PFRT_DIGITS " --html page.html --level basic").code, 0);
  const std::string basic = read_file("page.html");
  EXPECT_NE(basic.find("ConstantFoldingPass"), std::string::npos);
  EXPECT_EQ(basic.find("LayoutOptimizationPass"), std::string::npos);
  EXPECT_EQ(run("inspect " PFRT_DIGITS " --html page.html --level none").code, 0);
  EXPECT_EQ(read_file("page.html").find("ConstantFoldingPass"), std::string::npos);
}

TEST_F(InspectPage, that_cannot_be_written_is_a_line_and_2) {
  for (const char* path : {"missing/page.html", "/dev/full", "."}) {
    const Ran ran = run(std::string("inspect " PFRT_DIGITS " --html ") + path);
    EXPECT_EQ(ran.code, 2) << path;
    EXPECT_EQ(ran.output.rfind("pfrt: cannot write the page to '", 0), 0U) << ran.output;
    EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 1) << ran.output;
  }
}

TEST_F(InspectPage, is_what_a_level_is_for) {
  const Ran ran = run("inspect " PFRT_DIGITS " --level basic");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.output.find("--html"), std::string::npos) << ran.output;
}

}  // namespace
}  // namespace pfrt_test
