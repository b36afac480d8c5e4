// SPDX-License-Identifier: Apache-2.0
//
// Files that commands write, and those that they must not.
#include <gtest/gtest.h>

#include <filesystem>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

namespace fs = std::filesystem;
using pyflame_rt::DType;

class OutputFile : public InTemporaryFolder {
 protected:
  OutputFile() {
    pyflame_rt::Model::from_graph(one_node("Relu", {1, 4})).save("relu.onnx");
    fs::create_symlink("relu.onnx", "link.onnx");
    fs::create_hard_link("relu.onnx", "same.onnx");
  }
};

TEST_F(OutputFile, is_not_the_input_by_any_name) {
  const std::string before = read_file("relu.onnx");
  for (const std::string command : {"optimize relu.onnx", "convert relu.onnx",
                                    "inspect relu.onnx --html", "profile relu.onnx -o"}) {
    for (const std::string out : {"relu.onnx", "./relu.onnx", "link.onnx", "same.onnx"}) {
      const Ran ran = run(command + " " + out);
      EXPECT_EQ(ran.code, 2) << command << ran.output;
      EXPECT_EQ(
          ran.output.rfind("pfrt: '" + out + "' would be overwritten, and it is the input", 0), 0u)
          << ran.output;
      EXPECT_EQ(read_file("relu.onnx"), before) << command;
    }
  }
  const Ran ran = run("optimize link.onnx relu.onnx");
  EXPECT_EQ(ran.output,
            "pfrt: 'relu.onnx' would be overwritten, and it is the input 'link.onnx': give another "
            "file, or --force\n");
}

TEST_F(OutputFile, is_the_input_with_force) {
  for (const std::string command : {"optimize", "convert"}) {
    const Ran ran = run(command + " relu.onnx relu.onnx --force");
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_EQ(run("run relu.onnx").code, 0);
  }
}

TEST_F(OutputFile, of_a_run_is_a_file_by_its_name) {
  Ran ran = run("run relu.onnx --output out.npy");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "wrote  out.npy\n")) << ran.output;
  EXPECT_TRUE(fs::is_regular_file("out.npy"));
  EXPECT_EQ(run("run relu.onnx --input input=out.npy --output again.npy").code, 0);
  EXPECT_EQ(read_file("again.npy"), read_file("out.npy"));  // a Relu of a Relu

  ran = run("run relu.onnx --output folder");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(fs::is_regular_file("folder/output.npy"));
  fs::create_directory("odd.npy");
  ran = run("run relu.onnx --output odd.npy");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(fs::is_regular_file("odd.npy/output.npy"));
}

TEST_F(OutputFile, of_a_run_is_not_one_of_its_files) {
  EXPECT_EQ(run("run relu.onnx --output x.npy").code, 0);
  const std::string before = read_file("x.npy");
  fs::create_symlink("x.npy", "y.npy");
  const Ran ran = run("run relu.onnx --input input=x.npy --output y.npy");
  EXPECT_EQ(ran.code, 2) << ran.output;
  EXPECT_TRUE(has(ran.output, "'y.npy' would be overwritten, and it is the input 'x.npy'"))
      << ran.output;
  EXPECT_EQ(read_file("x.npy"), before);

  fs::create_directory("folder");
  fs::create_symlink("../x.npy", "folder/output.npy");
  const Ran into = run("run relu.onnx --input input=x.npy --output folder");
  EXPECT_EQ(into.code, 2) << into.output;
  EXPECT_TRUE(has(into.output, "'folder/output.npy' would be overwritten")) << into.output;
  EXPECT_TRUE(has(into.output, "give another folder")) << into.output;
  EXPECT_EQ(read_file("x.npy"), before);
}

TEST_F(OutputFile, of_a_run_says_why_it_cannot_be) {
  pyflame_rt::Graph two = one_node("Relu", {1, 4});
  two.add_output({"second", {1, 4}, DType::Float32});
  two.add_node(make_node("other", "Neg", {"input"}, {"second"}));
  pyflame_rt::Model::from_graph(two).save("two.onnx");
  Ran ran = run("run two.onnx --output out.npy");
  EXPECT_EQ(ran.code, 2) << ran.output;
  EXPECT_EQ(ran.output,
            "pfrt: --output 'out.npy' is one file, and the model has 2 outputs (output, second): "
            "give a folder\n");
  EXPECT_FALSE(fs::exists("out.npy"));
  write_file("out.bin", "");
  ran = run("run relu.onnx --output out.bin");
  EXPECT_EQ(ran.code, 2) << ran.output;
  EXPECT_TRUE(has(ran.output, "cannot make the folder 'out.bin'")) << ran.output;
  EXPECT_TRUE(has(ran.output, "a file's name ends in .npy")) << ran.output;
  ran = run("run relu.onnx --output no/such/out.npy");
  EXPECT_EQ(ran.code, 2) << ran.output;
  EXPECT_TRUE(has(ran.output, "cannot write 'no/such/out.npy'")) << ran.output;
}

}  // namespace
}  // namespace pfrt_test
