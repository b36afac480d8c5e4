// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <pyflame_rt/pyflame_rt.hpp>
#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using RunCommand = InTemporaryFolder;

void save(const pyflame_rt::Graph& graph, const std::string& path) {
  pyflame_rt::Model::from_graph(graph).save(path);
}

TEST_F(RunCommand, ranks_no_scores_that_are_nan) {
  save(one_node("Sqrt", {1, 64}), "sqrt.onnx");  // NaN of about half of random numbers
  Ran ran = run("run sqrt.onnx");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, " of 64 elements\n")) << ran.output;
  EXPECT_TRUE(has(ran.output, "top-5 of row 0: none, as ")) << ran.output;
  ran = run("run sqrt.onnx --json");
  EXPECT_TRUE(has(ran.output, "\"top5\":[[]]")) << ran.output;
  EXPECT_TRUE(has(ran.output, "\"nan\":")) << ran.output;

  ran = run("run sqrt.onnx --input input=zeros");
  EXPECT_FALSE(has(ran.output, "NaN")) << ran.output;
  EXPECT_TRUE(has(ran.output, "top-5 of row 0: 0 (0) 1 (0)")) << ran.output;
}

}  // namespace
}  // namespace pfrt_test
