// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cxxapi/cli/machine/machine.h"
#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

// Returns the text of each of the JSON's lists "measured" and "not_measured".
std::pair<std::string, std::string> lists(const std::string& json) {
  const size_t first = json.find("\"measured\":["), second = json.find("\"not_measured\":[");
  if (first == std::string::npos || second == std::string::npos) return {};
  return {json.substr(first, second - first), json.substr(second)};
}

// A machine with tiles gets a note about the stacks that the host's signal handlers need.
TEST(DoctorNotes, say_what_tiles_ask_of_the_host) {
  cli::Machine machine;
  machine.isa = {"avx2", "avx512f"};
  EXPECT_TRUE(cli::machine_notes(machine, "").empty());
  machine.isa.push_back("amx_tile");
  for (const char* cap : {"", "amx"}) {
    const auto notes = cli::machine_notes(machine, cap);
    ASSERT_EQ(notes.size(), 1u) << cap;
    EXPECT_TRUE(has(notes[0], "sigaltstack")) << notes[0];
    EXPECT_TRUE(has(notes[0], "PFRT_ISA=avx512_bf16")) << notes[0];
  }
  EXPECT_TRUE(cli::machine_notes(machine, "avx512").empty());
}

TEST(DoctorMeasure, prints_json) {
  const Ran ran = run("doctor --measure --seconds 0.05 --json");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 1) << ran.output;
  const auto [measured, absent] = lists(ran.output);
  for (const char* name : {"read L1", "read L2"}) {
    const std::string row = std::string("{\"provider\":\"CPUExecutionProvider\",\"name\":\"") +
                            name + "\",\"unit\":\"GB/s\",\"threads\":1,\"median\":";
    EXPECT_TRUE(has(measured, row)) << ran.output;
  }
  EXPECT_FALSE(has(ran.output, ":null")) << ran.output;
  EXPECT_TRUE(has(ran.output, "\"plugins\":")) << ran.output;
}

TEST(DoctorMeasure, prints_a_table) {
  const Ran ran = run("doctor --measure --seconds 0.05 --threads 1");
  ASSERT_EQ(ran.code, 0) << ran.output;
  for (const char* part : {"\nCPUExecutionProvider", "\nread memory ", " 1 thread ", "GB/s"})
    EXPECT_TRUE(has(ran.output, part)) << part << " in\n" << ran.output;
  EXPECT_FALSE(has(ran.output, "threads  best")) << ran.output;
}

TEST(DoctorMeasure, keeps_to_the_cap) {
  const Ran ran = run("doctor --measure --seconds 0.05 --json", "PFRT_ISA=generic");
  ASSERT_EQ(ran.code, 0) << ran.output;
  const auto [measured, absent] = lists(ran.output);
  EXPECT_FALSE(has(measured, "fp32 fma")) << ran.output;
  EXPECT_TRUE(has(absent, "\"name\":\"fp32 fma\",\"reason\":\"needs avx2; usable is generic\""))
      << ran.output;
}

TEST(DoctorMeasure, measures_what_is_asked_for_alone) {
  const Ran ran = run("doctor --measure --seconds 0.05 --only 'read L'");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "\nread L1 ")) << ran.output;
  EXPECT_FALSE(has(ran.output, "\nread memory ")) << ran.output;
}

TEST(DoctorMeasure, says_what_is_wrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"doctor --measure --threads 4096", "4096 threads"},
      {"doctor --measure --seconds 0", "--seconds"},
      {"doctor --measure --seconds x", "--seconds"},
      {"doctor --seconds 1", "--measure"},
      {"doctor --only read", "--measure"},
      {"doctor --measure --only fp64", "'fp64'"},
      {"doctor --threads 1", "--measure"},
  };
  for (const auto& [arguments, part] : wrong) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_TRUE(has(ran.output, part)) << ran.output;
    EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 1) << ran.output;
  }
}

TEST(Doctor, fails_for_a_missing_plugin_folder) {
  Ran ran = run("doctor", "PFRT_PLUGIN_PATH=/nowhere");
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_TRUE(
      has(ran.output, "problem   PFRT_PLUGIN_PATH names '/nowhere', which does not exist\n"))
      << ran.output;
  ran = run("doctor --json", "PFRT_PLUGIN_PATH=/dev/null");
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_TRUE(has(ran.output,
                  "\"problems\":[\"PFRT_PLUGIN_PATH names '/dev/null', which is no "
                  "folder\"]"))
      << ran.output;
  EXPECT_EQ(run("doctor", "PFRT_PLUGIN_PATH=").code, 0);
}

TEST(Doctor, names_a_plugin_of_a_kind_that_has_no_table) {
  const TemporaryFolder folder;
  write_file("libpyflamert_transport_fast.so", "");
  const Ran ran = run("doctor", "PFRT_PLUGIN_PATH=" + folder.path());
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_TRUE(has(ran.output,
                  "libpyflamert_transport_fast.so' is rejected: its file, "
                  "libpyflamert_transport_fast.so, is of kind 'transport', which this version does "
                  "not know; it knows provider, import, ops, pass, service, executor\n"))
      << ran.output;
}

TEST(Doctor, says_whose_threads_loops_have) {
  Ran ran = run("doctor");
  EXPECT_TRUE(has(ran.output, "\nexecutor  pool, the library's own threads")) << ran.output;
  ran = run("doctor --executor nobody");
  EXPECT_NE(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "libpyflamert_executor_nobody.so")) << ran.output;
#if defined(PFRT_TBB)
  EXPECT_TRUE(has(run("doctor").output, "there is also tbb\n"));
  ran = run("doctor --json --executor tbb");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "\"executor\":\"tbb, the threads of oneTBB: ")) << ran.output;
#endif
}

TEST(Doctor, measures_only_when_asked) {
  const Ran ran = run("doctor --json");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_FALSE(has(ran.output, "measured")) << ran.output;
}

}  // namespace
}  // namespace pfrt_test
