// SPDX-License-Identifier: Apache-2.0
//
// Command lines that are wrong, and how failures are told.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

void expect_refused(const std::string& arguments, const std::string& sentence,
                    const std::string& environment = "") {
  const Ran ran = run(arguments, environment);
  EXPECT_EQ(ran.code, 2) << arguments;
  EXPECT_EQ(ran.output, "pfrt: " + sentence + "\n") << arguments;
}

TEST(Line, knows_what_was_meant) {
  expect_refused("rnu x.onnx",
                 "'rnu' is no command of pfrt: did you mean 'run'? pfrt --help lists them");
  expect_refused("doktor",
                 "'doktor' is no command of pfrt: did you mean 'doctor'? pfrt --help lists them");
  expect_refused("check",
                 "'check' is no command of pfrt: did you mean 'check-plugin'? pfrt --help "
                 "lists them");
  expect_refused("run --thread 3 x.onnx",
                 "'--thread' is no option of pfrt run: did you mean '--threads'? pfrt run --help "
                 "lists them");
  expect_refused("bench x.onnx --secnods=1",
                 "'--secnods' is no option of pfrt bench: did you mean '--seconds'? pfrt bench "
                 "--help lists them");
  expect_refused("run --modle x.onnx",
                 "'--modle' is no option of pfrt run: did you mean '--mode'? pfrt run --help lists "
                 "them");
  expect_refused("--threads 2 run x.onnx",
                 "'--threads' is an option of run, test, bench, profile, doctor: give it after the "
                 "command");
}

TEST(Line, guesses_nothing_far_away) {
  expect_refused("fly", "'fly' is no command of pfrt: pfrt --help lists them");
  expect_refused("run x.onnx --zzz",
                 "'--zzz' is no option of pfrt run: pfrt run --help lists them");
  expect_refused("inspect a.onnx b.onnx",
                 "'b.onnx' is one argument too many for pfrt inspect, whose arguments are: model");
}

TEST(Line, tells_what_is_not_there_yet) {
  for (const char* arguments : {"prune", "prune --help", "serve model.onnx", "help quantize"}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_TRUE(has(ran.output, "' is not in this version: pfrt --help lists what is\n"))
        << ran.output;
  }
  expect_refused("prnue --help", "'prnue' is no command of pfrt: pfrt --help lists them");
}

TEST(Line, help_and_version_are_commands_too) {
  EXPECT_EQ(run("help").output, run("--help").output);
  EXPECT_EQ(run("help run").output, run("run --help").output);
  EXPECT_EQ(run("help run").code, 0);
  EXPECT_EQ(run("version").output, run("--version").output);
  EXPECT_EQ(run("version").code, 0);
  expect_refused("help rnu",
                 "'rnu' is no command of pfrt: did you mean 'run'? pfrt --help lists them");
}

TEST(Line, a_full_disk_is_a_failure) {
  for (const char* command :
       {"ops", "ops --json", "--help", "version", "doctor", "completion bash"}) {
    const Ran ran = run(std::string(command) + " 2>&1 >/dev/full; exit $?");
    EXPECT_EQ(ran.code, 1) << command;
    EXPECT_TRUE(has(ran.output, "pfrt: writing the output: No space left on device\n"))
        << ran.output;
  }
}

TEST(Line, fails_in_json) {
  Ran ran = run("run /nowhere.onnx --json");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.output.rfind("{\"error\":{\"message\":\"", 0), 0u) << ran.output;
  EXPECT_TRUE(has(ran.output, "'/nowhere.onnx'")) << ran.output;
  EXPECT_TRUE(has(ran.output, "\"code\":\"not found\",\"exit_code\":2}}\n")) << ran.output;
  EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 1) << ran.output;
  ran = run("rnu --json");
  EXPECT_EQ(
      ran.output,
      "{\"error\":{\"message\":\"'rnu' is no command of pfrt: did you mean 'run'? pfrt --help "
      "lists them\",\"code\":\"invalid argument\",\"exit_code\":2}}\n");
}

TEST(Line, documents_exit_codes_and_examples) {
  for (const char* command : {"--help", "run --help", "doctor --help", "completion --help"}) {
    const std::string help = run(command).output;
    EXPECT_TRUE(has(help, "Exit codes:\n  0    done\n  1    the work failed")) << help;
    EXPECT_TRUE(has(help, "\nExample")) << help;
    EXPECT_TRUE(has(help, "\n  pfrt ") || has(help, "\n  source <(pfrt ")) << help;
  }
}

using ExitCode = InTemporaryFolder;

TEST_F(ExitCode, is_0_when_all_is_done) {
  for (const char* command : {"run " PFRT_DIGITS, "doctor", "--help", "run --help", "--version"})
    EXPECT_EQ(run(command).code, 0) << command;
}

TEST_F(ExitCode, is_1_when_the_work_failed) {
  pyflame_rt::Graph graph = one_node("Relu", {std::nullopt});
  pyflame_rt::Model::from_graph(graph).save("relu.onnx");
  Ran ran = run("run relu.onnx --dim input:0=100000000000000 --json");  // 400 TB
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_TRUE(has(ran.output, "\"code\":\"out of memory\",\"exit_code\":1}}")) << ran.output;
  write_file("no_plugin.so", "no shared object");
  EXPECT_EQ(run("check-plugin no_plugin.so").code, 1);
  EXPECT_EQ(run("doctor", "PFRT_PLUGIN_PATH=/nowhere").code, 1);
  std::filesystem::create_directories("case/test_data_set_0");
  std::filesystem::copy_file("relu.onnx", "case/model.onnx");
  EXPECT_EQ(run("test case").code, 1);
}

TEST_F(ExitCode, is_2_when_the_input_cannot_be_used) {
  write_file("broken.onnx", "this is no model");
  for (const char* command :
       {"", "rnu", "run", "run broken.onnx", "run nowhere.onnx", "run " PFRT_DIGITS " --dim x=1",
        "run " PFRT_DIGITS " --input image=nowhere.npy", "run " PFRT_DIGITS " --level most",
        "optimize " PFRT_DIGITS " out.unknown", "check-plugin nowhere.so", "completion tcsh",
        "run " PFRT_DIGITS " --output ''", "run " PFRT_DIGITS " --output /dev/null", "inspect ''"})
    EXPECT_EQ(run(command).code, 2) << command << run(command).output;
  EXPECT_EQ(run("doctor", "PFRT_ISA=x").code, 2);
}

TEST(Variables, with_values_that_mean_nothing_are_refused) {
  expect_refused(
      "run " PFRT_DIGITS,
      "the environment has PFRT_ISA=avx51: the highest instruction set to use is one of "
      "generic, avx2, avx_vnni, avx512, avx512_vnni, avx512_bf16, amx; did you mean avx512?",
      "PFRT_ISA=avx51");
  expect_refused(
      "doctor",
      "the environment has PFRT_JIT_PERF=yes: whether to name generated code for perf is "
      "one of 0, 1",
      "PFRT_JIT_PERF=yes");
  expect_refused(
      "run " PFRT_DIGITS,
      "the environment has PFRT_JIT_DUMP=/nowhere: generated code is written to a folder "
      "that exists, and this is not one",
      "PFRT_JIT_DUMP=/nowhere");
  EXPECT_EQ(run("--version", "PFRT_ISA=x").code, 0);
}

TEST(Variables, with_values_that_providers_know_are_not) {
  const TemporaryFolder folder;
  for (const std::string isa :
       {"", "generic", "avx2", "avx_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx"}) {
    const Ran ran = run("run " PFRT_DIGITS,
                        "PFRT_ISA=" + isa + " PFRT_JIT_PERF=0 PFRT_JIT_DUMP=" + folder.path());
    EXPECT_EQ(ran.code, 0) << isa << ": " << ran.output;
  }
}

}  // namespace
}  // namespace pfrt_test
