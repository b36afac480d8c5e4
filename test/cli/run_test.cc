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

// Saves a model that gives back its input, runs it with |input| typed, and returns what is printed.
Ran echoed(pyflame_rt::DType dtype, const pyflame_rt::Shape& shape, const std::string& input) {
  pyflame_rt::Graph graph("echo");
  graph.add_input({"x", shape, dtype});
  graph.add_output({"y", shape, dtype});
  graph.add_node(make_node("echo", "Identity", {"x"}, {"y"}));
  save(graph, "echo.onnx");
  return run("run echo.onnx --json --input 'x=" + input + "'");
}

TEST_F(RunCommand, takes_numbers_from_the_command_line) {
  using pyflame_rt::DType;
  const pyflame_rt::Shape rows{std::nullopt, 3};
  const auto expect = [](const Ran& ran, const std::string& shape, const std::string& first) {
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_TRUE(has(ran.output, "\"shape\":" + shape + ",\"first\":" + first)) << ran.output;
  };
  expect(echoed(DType::Float32, rows, "[[1, 2.5, -3e2], [+0, 1, .5]]"), "[2,3]",
         "[1,2.5,-300,0,1,0.5]");
  expect(echoed(DType::Float32, rows, "[1,2,3]"), "[1,3]", "[1,2,3]");
  expect(echoed(DType::Float32, {}, "3"), "[]", "[3]");
  expect(echoed(DType::Float32, {1, 1}, "3"), "[1,1]", "[3]");
  expect(echoed(DType::Float16, rows, "[1,2,-0.5]"), "[1,3]", "[1,2,-0.5]");
  expect(echoed(DType::Int64, {std::nullopt}, "[-9223372036854775808,7]"), "[2]",
         R"(["-9223372036854775808","7"])");
  expect(echoed(DType::UInt8, {std::nullopt}, "[0,255]"), "[2]", R"(["0","255"])");
  expect(echoed(DType::Bool, {std::nullopt}, "[true,false,1]"), "[3]",
         R"(["true","false","true"])");
  expect(echoed(DType::String, {std::nullopt}, "[\"a b\",\"c=d, [e]\"]"), "[2]",
         "[\"a b\",\"c=d, [e]\"]");
  expect(echoed(DType::Float32, {std::nullopt}, "[]"), "[0]", "[]");
}

TEST_F(RunCommand, refuses_numbers_that_are_none) {
  using pyflame_rt::DType;
  const pyflame_rt::Shape any{std::nullopt};
  const auto refused = [&](DType dtype, const std::string& input, const std::string& why) {
    const Ran ran = echoed(dtype, any, input);
    EXPECT_EQ(ran.code, 2) << input;
    EXPECT_TRUE(has(ran.output, why)) << ran.output;
  };
  refused(DType::Int8, "[1,200]", "'200' is no int8");
  refused(DType::Float16, "[65520]", "'65520' is no float16");
  refused(DType::Float32, "[1e39]", "'1e39' is no float32");
  refused(DType::Int64, "[1.5]", "'1.5' is no int64");
  refused(DType::Float32, "[1,two]", "'two' is no float32");
  refused(DType::Bool, "[2]", "'2' is no bool");
  refused(DType::Float32, "[1,[2]]", "a list stands where a number should");
  refused(DType::Float32, "[[1],2]", "lists are not all nested alike");
  refused(DType::Float32, "[[1],[2,3]]", "lists have 1 and 2 elements");
  refused(DType::Float32, "[1,2", "a ']' is missing");
  refused(DType::Float32, "[1,,2]", "a number is missing");
  refused(DType::Float32, "[1]]", "']' follows the value");
  refused(DType::Float32, "[\"1\"]", "a word, but the input is tensor(float32)");
  refused(DType::String, "[one]", "words stand in quotes");
  refused(DType::Float32, std::string(100, '[') + "1", "nested more than 16 deep");
  refused(DType::Float32, "three", "give FILE.npy, FILE.pb, random, zeros, a number or a list");
}

}  // namespace
}  // namespace pfrt_test
