// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using TestCommand = InTemporaryFolder;

// A TensorProto of float32 [1,10] that begins with these numbers; others are 0.
std::string tensor(std::vector<float> numbers) {
  numbers.resize(10);
  std::string out = {8, 1, 8, 10, 16, 1, 74, 40};
  return out.append(reinterpret_cast<const char*>(numbers.data()), 40);
}

TEST_F(TestCommand, passes_no_case_without_expected_outputs) {
  std::filesystem::create_directories("relu/test_data_set_0");
  write_file("relu/model.onnx", onnx_relu());
  write_file("relu/test_data_set_0/input_0.pb", tensor({}));
  Ran ran = run("test relu");
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_TRUE(has(ran.output, "no output_0.pb in '")) << ran.output;
  EXPECT_TRUE(has(ran.output, "0 passed, 1 failed, 0 skipped\n")) << ran.output;
  write_file("relu/test_data_set_0/output_0.pb", tensor({}));
  ran = run("test relu");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output, "1 passed, 0 failed, 0 skipped\n");
}

// An element near 0 is judged beside the largest one, of which a sum may have lost as much.
TEST_F(TestCommand, judges_elements_beside_the_largest) {
  std::filesystem::create_directories("relu/test_data_set_0");
  write_file("relu/model.onnx", onnx_relu());
  const auto judged = [&](const std::vector<float>& got, const std::vector<float>& want,
                          const std::string& options = "") {
    write_file("relu/test_data_set_0/input_0.pb", tensor(got));
    write_file("relu/test_data_set_0/output_0.pb", tensor(want));
    return run("test relu" + options);
  };
  EXPECT_EQ(judged({100, 8e-4f}, {100, 1e-4f}).code, 0) << "1e-5 of 100 are allowed";
  Ran ran = judged({100, 2e-3f}, {100, 1e-4f});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(has(ran.output,
                  "off by 0.0019, allowed are 0.001: 0.001 (--rtol) of what is expected and 1e-05 "
                  "(--atol) of the largest element, 100"))
      << ran.output;
  ran = judged({0.5f, 8e-5f}, {0.5f, 1e-5f});
  EXPECT_EQ(ran.code, 1) << "below 1 the limit is absolute";
  EXPECT_FALSE(has(ran.output, "largest")) << ran.output;
  EXPECT_EQ(judged({100, 8e-4f}, {100, 1e-4f}, " --atol 1e-6").code, 1);
  ran = judged({1}, {std::numeric_limits<float>::infinity(), 1});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(has(ran.output, "which no tolerance allows")) << ran.output;
}

}  // namespace
}  // namespace pfrt_test
