// SPDX-License-Identifier: Apache-2.0
//
// Symbolic dimensions that nobody gives a size.
#include <gtest/gtest.h>

#include <algorithm>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using pyflame_rt::DType;
using pyflame_rt::Graph;
using pyflame_rt::Tensor;
using pyflame_rt::TensorInfo;

TensorInfo dynamic(const std::string& name, const pyflame_rt::Shape& shape,
                   const std::vector<std::string>& dims) {
  TensorInfo info(name, shape, DType::Float32);
  info.dim_names = dims;
  return info;
}

// A convolution over |window| samples of an input [batch, 1, samples], whose dimensions have
// |dims| for names.
void save_window(const std::string& path, int64_t window, const std::vector<std::string>& dims) {
  Graph graph("window");
  graph.add_input(dynamic("x", {{}, {1}, {}}, dims));
  graph.add_output(dynamic("y", {{}, {1}, {}}, {"", "", ""}));
  graph.add_initializer(
      "w", Tensor::from_vector<float>(std::vector<float>(static_cast<size_t>(window), 1),
                                      {1, 1, window}));
  graph.add_node(make_node("conv", "Conv", {"x", "w"}, {"y"}));
  pyflame_rt::Model::from_graph(graph).save(path);
}

// An input [batch, n] that is reshaped to |columns| columns and added to as many numbers.
void save_columns(const std::string& path, int64_t columns) {
  Graph graph("columns");
  graph.add_input(dynamic("x", {{}, {}}, {"batch", "n"}));
  graph.add_output(dynamic("y", {{}, {}}, {"", ""}));
  const auto size = static_cast<size_t>(columns);
  graph.add_initializer("k",
                        Tensor::from_vector<float>(std::vector<float>(size * 2, 1), {columns, 2}));
  graph.add_node(make_node("product", "MatMul", {"x", "k"}, {"y"}));
  pyflame_rt::Model::from_graph(graph).save(path);
}

using Sizes = InTemporaryFolder;

TEST_F(Sizes, that_fit_are_found_and_told) {
  save_window("window.onnx", 48, {"batch", "", "samples"});
  Ran ran = run("run window.onnx");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "sizes  batch=1, samples=48 assumed; --dim NAME=N gives others\n"))
      << ran.output;
  ran = run("run window.onnx --json");
  EXPECT_TRUE(has(ran.output, "\"assumed_dims\":{\"batch\":1,\"samples\":48}")) << ran.output;
  for (const std::string command : {"profile window.onnx", "explain window.onnx",
                                    "bench window.onnx --seconds 0.01 --threads 1"}) {
    ran = run(command);
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_TRUE(has(ran.output, "batch=1, samples=48 assumed")) << command << ran.output;
  }
  ran = run("profile window.onnx --json");
  EXPECT_TRUE(has(ran.output, "\"assumed_dims\":{\"batch\":1,\"samples\":48}")) << ran.output;
  ran = run("bench window.onnx --seconds 0.01 --threads 1 --json");
  EXPECT_TRUE(has(ran.output, "\"x\":{\"dtype\":\"float32\",\"shape\":[1,1,48],")) << ran.output;
}

TEST_F(Sizes, that_one_value_fits_alone_are_found) {
  save_columns("columns.onnx", 77);
  const Ran ran = run("run columns.onnx");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "sizes  batch=1, n=77 assumed")) << ran.output;
}

TEST_F(Sizes, that_are_given_stay) {
  save_window("window.onnx", 48, {"batch", "", "samples"});
  Ran ran = run("run window.onnx --dim samples=50");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "sizes  batch=1 assumed")) << ran.output;
  EXPECT_TRUE(has(ran.output, "float32[1,1,3]")) << ran.output;
  ran = run("run window.onnx --dim samples=50 --dim batch=2");
  EXPECT_FALSE(has(ran.output, "assumed")) << ran.output;
  ran = run("run window.onnx --dim samples=3 --dim batch=2");
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.output, "the window covers 48 elements")) << ran.output;
  EXPECT_FALSE(has(ran.output, "assumed")) << ran.output;
}

TEST_F(Sizes, without_a_name_are_called_by_input_and_axis) {
  save_window("window.onnx", 48, {"", "", ""});
  Ran ran = run("run window.onnx");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "sizes  x:0=1, x:2=48 assumed")) << ran.output;
  ran = run("run window.onnx --dim x:2=49 --dim x:0=3");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "float32[3,1,2]")) << ran.output;
  ran = run("run window.onnx --dim x:1=49");
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.output, "--dim x:1=49: no input has this dimension; known: x:0 x:2\n"))
      << ran.output;
}

TEST_F(Sizes, that_do_not_exist_end_in_what_to_give) {
  save_window("window.onnx", 100'000, {"batch", "", "samples"});
  const Ran ran = run("run window.onnx");
  EXPECT_EQ(ran.code, 2) << ran.output;
  EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 1) << ran.output;
  EXPECT_TRUE(has(ran.output, "the window covers 100000 elements")) << ran.output;
  EXPECT_TRUE(has(ran.output, "; this is with batch=1, samples=1 assumed, and none of "))
      << ran.output;
  EXPECT_TRUE(has(ran.output, " other sizes tried fits: give --dim samples=N")) << ran.output;
}

TEST_F(Sizes, of_a_file_are_those_of_other_inputs_too) {
  Graph graph("two");
  for (const char* name : {"a", "b"}) graph.add_input(dynamic(name, {{}, {2}}, {"rows", ""}));
  graph.add_output(dynamic("y", {{}, {2}}, {"rows", ""}));
  graph.add_node(make_node("sum", "Add", {"a", "b"}, {"y"}));
  pyflame_rt::Model::from_graph(graph).save("two.onnx");
  Ran ran = run("run two.onnx --dim rows=5 --output out.npy");
  ASSERT_EQ(ran.code, 0) << ran.output;
  ran = run("run two.onnx --input a=out.npy");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "float32[5,2]")) << ran.output;
  EXPECT_FALSE(has(ran.output, "assumed")) << ran.output;
}

}  // namespace
}  // namespace pfrt_test
