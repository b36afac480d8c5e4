// SPDX-License-Identifier: Apache-2.0
//
// `pfrt ask`, and the counters that other commands show, with the provider of test/plugins/verbs.
#include <gtest/gtest.h>

#include <pyflame_rt/pyflame_rt.hpp>
#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

const std::string kPath = "PFRT_PLUGIN_PATH=" PFRT_VERBS_PLUGINS;

TEST(AskCommand, prints_what_is_answered) {
  Ran ran = run("ask verbs echo hello", kPath);
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output, "hello.\n");
  ran = run("ask verbs who --device words", kPath);
  EXPECT_EQ(ran.output, "verbs of words, build \n");
  ran = run("ask verbs answer x", kPath);
  EXPECT_TRUE(has(ran.output, "a:\n")) << ran.output;
  EXPECT_TRUE(has(ran.output, "float32")) << ran.output;
}

TEST(AskCommand, prints_json) {
  Ran ran = run("ask verbs echo hello --json", kPath);
  EXPECT_EQ(ran.output, "{\"text\":\"hello.\",\"tensors\":[]}\n");
  ran = run("ask verbs answer x --json", kPath);
  EXPECT_TRUE(has(ran.output, "\"tensors\":[{\"name\":\"a\",\"value\":{")) << ran.output;
}

TEST(AskCommand, says_what_is_wrong) {
  Ran ran = run("ask verbs dance", kPath);
  EXPECT_NE(ran.code, 0);
  EXPECT_TRUE(has(ran.output, "it knows echo, who")) << ran.output;
  ran = run("ask null selftest", kPath);
  EXPECT_NE(ran.code, 0);
  EXPECT_TRUE(has(ran.output, "VerbsExecutionProvider")) << ran.output;
  EXPECT_EQ(run("ask verbs", kPath).code, 2);
}

TEST(CounterTable, is_printed_where_a_device_counts) {
  const TemporaryFolder folder;  // the current one
  const std::string file = "negation.pfm";
  pyflame_rt::save_model(one_node("Neg", {2}), file);
  const std::string counting = file + " --provider verbs --level none";
  Ran ran = run("explain " + counting, kPath);
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "steps run")) << ran.output;
  ran = run("explain --json " + counting, kPath);
  EXPECT_TRUE(has(ran.output,
                  "\"provider\":\"VerbsExecutionProvider\",\"name\":\"cycles\","
                  "\"unit\":\"cycles\",\"value\":40}"))
      << ran.output;
  ran = run("explain " PFRT_DIGITS);
  EXPECT_FALSE(has(ran.output, "counter")) << ran.output;
  ran = run("profile -o /dev/null --json " + counting, kPath);
  EXPECT_TRUE(has(ran.output, "\"counters\":[{\"first_step\":")) << ran.output;
}

}  // namespace
}  // namespace pfrt_test
