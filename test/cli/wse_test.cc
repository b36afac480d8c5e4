// SPDX-License-Identifier: Apache-2.0
//
// `pfrt wse`, and the options by which other commands choose a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "test/cli/skeleton.h"
#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"
#include "test/sanitized.h"

namespace pfrt_test {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

TEST(WseCommand, prints_a_plan_and_draws_it) {
  const TemporaryFolder folder;  // the current one
  for (const char* machine : {"wse", "wse2", "wse3"}) {
    const Ran ran =
        run(std::string("wse " PFRT_DIGITS " --picture wafer.svg --machine ") + machine);
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_TRUE(has(ran.output, std::string("simulated ") + machine + " ")) << ran.output;
    EXPECT_TRUE(has(ran.output, "conv1")) << ran.output;
    EXPECT_TRUE(has(ran.output, "cycles from input to output")) << ran.output;
    EXPECT_TRUE(has(contents_of("wafer.svg"), "</svg>"));
  }
  EXPECT_EQ(run("wse " PFRT_DIGITS " --picture wafer.html").code, 0);
  const std::string page = contents_of("wafer.html");
  expect_balanced(page);
  for (const char* part : {"<!doctype html>", "color-scheme: light dark", "default-src 'none'",
                           "@media (prefers-color-scheme: dark)", "cycles a run"})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_TRUE(has(run("wse " PFRT_DIGITS " --json").output, "\"layers\": ["));
  EXPECT_EQ(run("wse " PFRT_DIGITS " --picture " PFRT_DIGITS).code, 2);
}

// Layers that take turns on the same PEs lie upon each other, and each of another size is seen.
TEST(WseCommand, draws_smaller_layers_upon_larger_ones) {
  const TemporaryFolder folder;
  const Ran ran = run("wse " PFRT_DIGITS " --option execution=streaming --picture wafer.svg");
  EXPECT_EQ(ran.code, 0) << ran.output;
  const std::string picture = contents_of("wafer.svg");
  EXPECT_TRUE(has(picture, "; layers take turns on the same PEs"));
  std::vector<double> widths;
  std::istringstream lines(picture);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("<rect", 0) == 0 && has(line, " cycles at work"))
      widths.push_back(std::stod(line.substr(line.find("width=") + 7)));
  ASSERT_GT(widths.size(), 1U);
  EXPECT_TRUE(std::is_sorted(widths.rbegin(), widths.rend()));
}

TEST(WseCommand, says_how_many_wafers_a_model_needs) {
  const Ran ran = run("wse " PFRT_DIGITS " --fabric 2x2 --arithmetic fp32 --dim batch=64");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "does not fit: needs ")) << ran.output;
}

TEST(WseCommand, estimates_products_and_language_models) {
  Ran ran = run("wse --gemm 64x64x64 --grid 8 --algorithm summa");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "SUMMA on 8x8 PEs, fp16: ")) << ran.output;
  ran = run("wse --gemm 20x30x40 --grid 8 --values --arithmetic fp32");
  EXPECT_TRUE(has(ran.output, "values: ")) << ran.output;
  ran = run("wse --gemv 64x64 --grid 8 --json");
  EXPECT_TRUE(has(ran.output, "\"algorithm\": \"MeshGEMV\"")) << ran.output;
  const Ran narrow = run("wse --gemv 4096x4096 --grid 64 --group 2");
  EXPECT_EQ(narrow.code, 0) << narrow.output;
  EXPECT_NE(narrow.output, run("wse --gemv 4096x4096 --grid 64 --group 8").output);
  EXPECT_EQ(run("wse --gemm 8x8x8 --group 2").code, 2);
  ran = run("wse --language-model --size layers=2 --size decode_grids=60 --size prefill_grids=60");
  EXPECT_TRUE(has(ran.output, "decode     60x60")) << ran.output;
}

// Rows that are not met fail, as text and as JSON. A table takes 12 seconds of processor time, so
// that the text is only asked for where PFRT_TEST_ALL is set.
TEST(WseCommand, validates) {
  if (pfrt::test::kSanitized) GTEST_SKIP() << "a table takes minutes with a sanitizer";
  const Ran json = run("wse validate --json");
  EXPECT_TRUE(has(json.output, "\"not_met\": ")) << json.output;
  const bool met = has(json.output, "\"not_met\": 0,");
  EXPECT_EQ(json.code, met ? 0 : 1);
  if (!std::getenv("PFRT_TEST_ALL")) return;
  const Ran text = run("wse validate");
  EXPECT_TRUE(has(text.output, "independent predictions: ")) << text.output;
  EXPECT_EQ(has(text.output, " 0 not met"), met) << text.output;
  EXPECT_EQ(text.code, json.code);
}

TEST(WseCommand, says_what_is_wrong) {
  for (const char* line :
       {"wse", "wse validate --gemm 2x2x2", "wse --gemm 2x2", "wse --gemm 2x2x2 --grid 0",
        "wse validate --set hop", "wse nowhere.onnx", "wse machine --machine nowhere.json",
        "wse --gemv 2x2 --values", "wse " PFRT_DIGITS " --machine cpu"})
    EXPECT_NE(run(line).code, 0) << line;
  EXPECT_TRUE(has(run("wse " PFRT_DIGITS " --option execution").output, "KEY=VALUE"));
}

TEST(DeviceOptions, choose_a_device_and_what_its_provider_takes) {
  Ran ran = run("run " PFRT_DIGITS " --device wse2 --option wse.arithmetic=fp32");
  EXPECT_EQ(ran.code, 0) << ran.output;
  ran = run("explain " PFRT_DIGITS " --device wse3");
  EXPECT_TRUE(has(ran.output, "WSEExecutionProvider")) << ran.output;
  EXPECT_TRUE(has(run("run " PFRT_DIGITS " --device wse4").output, "did you mean 'wse'?"));
  EXPECT_TRUE(has(run("run " PFRT_DIGITS " --option fp32").output, "PROVIDER.KEY=VALUE"));
  EXPECT_TRUE(has(run("run " PFRT_DIGITS " --device wse2 --option wse.arithmetic=fp8").output,
                  "fp16 bf16 fp32 f32_fast"));
}

}  // namespace
}  // namespace pfrt_test
