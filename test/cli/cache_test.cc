// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <pyflame_rt/pyflame_rt.hpp>
#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using CacheCommand = InTemporaryFolder;

TEST_F(CacheCommand, warms_lists_and_clears) {
  pyflame_rt::save_model(one_node("Relu", {{1, 10}}), "model.onnx");
  const Ran warmed = run("cache warm model.onnx absent.onnx --dir kept");
  EXPECT_EQ(warmed.code, 1) << "a model is absent";
  EXPECT_TRUE(has(warmed.output, "model.onnx: in the cache\n")) << warmed.output;
  EXPECT_TRUE(has(warmed.output, "absent.onnx: ")) << warmed.output;
  const Ran listed = run("cache list --check", "PFRT_CACHE_DIR=kept");
  EXPECT_EQ(listed.code, 0) << listed.output;
  EXPECT_TRUE(has(listed.output, "model.onnx")) << listed.output;
  EXPECT_TRUE(has(listed.output, "1 entries, ")) << listed.output;
  EXPECT_TRUE(
      has(run("explain model.onnx", "PFRT_CACHE_DIR=kept").output, "from the cache, entry "));
  const Ran json = run("cache list --cache-dir kept --json");
  EXPECT_TRUE(has(json.output, "\"kind\":\"compiled\"")) << json.output;
  EXPECT_TRUE(has(run("cache clear --dir kept").output, "1 entries removed from kept"));
  EXPECT_TRUE(has(run("cache list --dir kept").output, "0 entries, "));
}

TEST_F(CacheCommand, says_what_is_missing) {
  const Ran ran = run("cache list", "PFRT_CACHE_DIR=");
  EXPECT_NE(ran.code, 0);
  EXPECT_TRUE(
      has(ran.output, "give its folder by --cache-dir or the environment variable PFRT_CACHE_DIR"))
      << ran.output;
  EXPECT_NE(run("cache warm --dir kept").code, 0);
  EXPECT_NE(run("cache list model.onnx --dir kept").code, 0);
}

}  // namespace
}  // namespace pfrt_test
