// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using TuneCommand = InTemporaryFolder;

TEST_F(TuneCommand, measures_once_and_remembers) {
  const std::string command = "tune " PFRT_DIGITS " --search model --cache-dir kept";
  const Ran first = run(command);
  EXPECT_EQ(first.code, 0) << first.output;
  EXPECT_TRUE(has(first.output, " steps can be divided in several ways; ")) << first.output;
  if (has(first.output, "0 of ")) GTEST_SKIP() << "kernels here have nothing to choose";
  EXPECT_TRUE(has(first.output, "kept in kept; sessions with tune 'on' or 'cached' use it\n"));
  const Ran again = run(command);
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_TRUE(has(again.output, "; 0 were measured, ")) << again.output;
  EXPECT_TRUE(has(again.output, "(remembered)")) << again.output;
  EXPECT_TRUE(has(run("cache list --check --dir kept").output, "tuned")) << "in the list";
  const Ran json = run(command + " --json");
  EXPECT_TRUE(has(json.output, "\"measured\":0")) << json.output;
  EXPECT_TRUE(has(json.output, "\"parameters\":\"")) << json.output;
  EXPECT_TRUE(has(run("explain " PFRT_DIGITS " --tune --json", "PFRT_CACHE_DIR=kept").output,
                  "(remembered)"));
  EXPECT_EQ(run("cache clear --dir kept").code, 0);
  EXPECT_FALSE(has(run(command).output, "; 0 were measured, "));
}

TEST_F(TuneCommand, says_that_nothing_is_kept) {
  const Ran ran = run("tune " PFRT_DIGITS " --search random --budget 0.1", "PFRT_CACHE_DIR=");
  EXPECT_EQ(ran.code, 0) << ran.output;
  if (has(ran.output, "0 of ")) GTEST_SKIP() << "kernels here have nothing to choose";
  EXPECT_TRUE(has(ran.output, "nothing is kept: give a folder by --cache-dir or PFRT_CACHE_DIR"))
      << ran.output;
}

TEST_F(TuneCommand, refuses_what_makes_no_sense) {
  for (const char* wrong : {" --budget 0", " --budget -1", " --budget x", " --search guess",
                            " --iterations -1", " --dim nosuch=1"})
    EXPECT_EQ(run(std::string("tune " PFRT_DIGITS) + wrong).code, 2) << wrong;
  EXPECT_EQ(run("tune absent.onnx").code, 2);
}

}  // namespace
}  // namespace pfrt_test
