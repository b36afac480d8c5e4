// SPDX-License-Identifier: Apache-2.0
//
// `pfrt plugins`, with the importers of test/plugins/importers.
#include <gtest/gtest.h>

#include <string>

#include "test/cli/tool.h"

namespace pfrt_test {
namespace {

TEST(PluginsCommand, lists_the_options_of_importers) {
  const std::string path = "PFRT_PLUGIN_PATH=" PFRT_TEST_IMPORTERS;
  Ran ran = run("plugins", path);
  ASSERT_EQ(ran.code, 0) << ran.output;
  for (const char* const part : {"Rows: 4 options of loads", "Columns: 4 options of loads",
                                 "import.rows.describe", "short long", "say something"})
    EXPECT_TRUE(has(ran.output, part)) << ran.output;
  EXPECT_FALSE(has(ran.output, "ONNX: ")) << ran.output;
  ran = run("plugins --json", path);
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(
      has(ran.output,
          "\"options\":[{\"key\":\"import.rows.scale\",\"type\":\"float\",\"default\":\"1\","
          "\"choices\":\"\",\"doc\":\"what x is multiplied by\"}"))
      << ran.output;
}

}  // namespace
}  // namespace pfrt_test
