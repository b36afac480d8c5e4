// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using TestCommand = InTemporaryFolder;

// A TensorProto of float32 zeros [1,10].
std::string zeros() {
  std::string out = {8, 1, 8, 10, 16, 1, 74, 40};
  return out + std::string(40, '\0');
}

TEST_F(TestCommand, passes_no_case_without_expected_outputs) {
  std::filesystem::create_directories("relu/test_data_set_0");
  write_file("relu/model.onnx", onnx_relu());
  write_file("relu/test_data_set_0/input_0.pb", zeros());
  Ran ran = run("test relu");
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_TRUE(has(ran.output, "no output_0.pb in '")) << ran.output;
  EXPECT_TRUE(has(ran.output, "0 passed, 1 failed, 0 skipped\n")) << ran.output;
  write_file("relu/test_data_set_0/output_0.pb", zeros());
  ran = run("test relu");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output, "1 passed, 0 failed, 0 skipped\n");
}

}  // namespace
}  // namespace pfrt_test
