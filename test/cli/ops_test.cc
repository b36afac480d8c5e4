// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "test/cli/tool.h"

namespace pfrt_test {
namespace {

TEST(Ops, prints_a_note_an_operator) {
  const Ran ran = run("ops --notes");
  ASSERT_EQ(ran.code, 0) << ran.output;
  const size_t first = ran.output.find("ThresholdedRelu: NaN ");
  EXPECT_NE(first, std::string::npos) << ran.output;
  EXPECT_EQ(ran.output.find("ThresholdedRelu: ", first + 1), std::string::npos) << ran.output;
}

TEST(Ops, has_notes_in_json) {
  const Ran ran = run("ops --json");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("\"note\":\"To string: "), std::string::npos);
}

}  // namespace
}  // namespace pfrt_test
