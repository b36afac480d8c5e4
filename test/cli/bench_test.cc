// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using Bench = InTemporaryFolder;

constexpr char kBench[] = "bench " PFRT_DIGITS " --threads 1 --seconds 0.01 ";

// A .npy file of float32 zeros.
std::string npy(const std::string& shape, size_t elements) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out = std::string("\x93NUMPY\x01", 7) + '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + std::string(4 * elements, '\0');
}

// A TensorProto of float32 zeros [2,1,8,8].
std::string pb() {
  std::string out = {8, 2, 8, 1, 8, 8, 8, 8, 16, 1, 74};
  out += "\x80\x04";  // 512 bytes
  return out + std::string(512, '\0');
}

TEST_F(Bench, files_that_are_no_arrays_are_bad_usage) {
  ASSERT_EQ(::mkfifo("pipe.npy", 0600), 0);
  write_file("negative.npy", npy("-1,1,8,8", 64));
  write_file("large.npy", npy("4294967296,4294967296,8,8", 64));
  write_file("larger.npy", npy("99999999999999999999,1,8,8", 64));
  write_file("short.npy", npy("1,1,8,8", 63));
  write_file("blank.npy", npy("1 1,8,8", 64));
  write_file("commas.npy", npy("1,1,,8,8", 64));
  write_file("cut.npy", npy("1,1,8,8", 64).substr(0, 40));
  for (const auto& [file, found] : {std::pair{"pipe.npy", "it is no regular file"},
                                    {"negative.npy", "its shape has '-1', which is no dimension"},
                                    {"large.npy", "it is shorter than its shape says"},
                                    {"larger.npy", "its shape is too large"},
                                    {"short.npy", "it is shorter than its shape says"},
                                    {"blank.npy", "dimensions without a comma between"},
                                    {"commas.npy", "its shape has '', which is no dimension"},
                                    {"cut.npy", "it is truncated"}}) {
    const Ran ran = run(std::string(kBench) + "--input image=" + file);
    EXPECT_EQ(ran.code, 2) << ran.output;
    EXPECT_NE(ran.output.find(found), std::string::npos) << ran.output;
  }
}

TEST_F(Bench, feeds_files_in_their_shape) {
  write_file("three.npy", npy("3,1,8,8", 192));
  Ran ran = run(std::string(kBench) + "--input image=three.npy");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("image: float32[3,1,8,8], three.npy"), std::string::npos) << ran.output;
  write_file("two.pb", pb());
  ran = run(std::string(kBench) + "--input image=two.pb");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("image: float32[2,1,8,8], two.pb"), std::string::npos) << ran.output;
  ran = run(std::string(kBench) + "--dim batch=4");
  EXPECT_NE(ran.output.find("image: float32[4,1,8,8], random"), std::string::npos) << ran.output;
}

TEST_F(Bench, says_which_input_it_cannot_feed) {
  write_file("wrong.npy", npy("3,1,8,9", 216));
  for (const auto& [input, reason] :
       {std::pair{"images=x.npy", "--input images: the model has no such input; it has image"},
        {"image=x.npy", "x.npy"},
        {"image", "--input 'image' is not of the form NAME=VALUE"},
        {"image=wrong.npy", "image"}}) {
    const Ran ran = run(std::string(kBench) + "--input " + input);
    EXPECT_NE(ran.code, 0) << input;
    EXPECT_NE(ran.output.find(reason), std::string::npos) << ran.output;
  }
}

TEST_F(Bench, reports_the_first_run_beside_the_load) {
  const Ran ran = run(std::string(kBench) + "--json");
  EXPECT_EQ(ran.code, 0) << ran.output;
  for (const std::string key : {"\"load_s\":", "\"first_run_s\":", "\"median_s\":"}) {
    const size_t at = ran.output.find(key);
    ASSERT_NE(at, std::string::npos) << key << ran.output;
    EXPECT_GT(std::atof(ran.output.c_str() + at + key.size()), 0) << key;
  }
}

TEST_F(Bench, shows_progress_on_a_terminal_alone) {
  Ran ran = run_in_terminal(kBench);
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "measuring: ")) << ran.output;
  ran = run(kBench);
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_FALSE(has(ran.output, "measuring: ")) << ran.output;
}

TEST_F(Bench, keeps_what_it_has_when_interrupted) {
  const std::string endless = "bench " PFRT_DIGITS " --threads 1 --seconds 1e6";
  Ran ran = run_in_terminal(endless, 80, "measuring: ");
  EXPECT_EQ(ran.code, 130) << ran.output;
  EXPECT_TRUE(has(ran.output, "\r\nours ")) << ran.output;
  EXPECT_TRUE(has(ran.output, "note     interrupted")) << ran.output;
  ran = run_in_terminal(endless + " --json", 80, "measuring: ");
  EXPECT_EQ(ran.code, 130) << ran.output;
  EXPECT_TRUE(has(ran.output, "\"interrupted\":true}")) << ran.output;
}

TEST_F(Bench, may_tune) {
  Ran ran = run(std::string(kBench) + "--tune");
  EXPECT_EQ(ran.code, 0) << ran.output;
  ran = run("run " PFRT_DIGITS " --tune");
  EXPECT_EQ(ran.code, 0) << ran.output;
  for (const std::string tune : {"", " --tune"}) {
    ran = run("explain " PFRT_DIGITS " --json" + tune);
    EXPECT_EQ(ran.code, 0) << ran.output;
    const bool can = ran.output.find("conv_direct") != std::string::npos;
    EXPECT_EQ(ran.output.find("tuned: ") != std::string::npos, can && !tune.empty()) << ran.output;
  }
}

}  // namespace
}  // namespace pfrt_test
