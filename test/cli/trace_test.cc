// SPDX-License-Identifier: Apache-2.0
//
// The reader of traces, and the families of the kernels that it finds in them.
#include "cxxapi/cli/page/trace.h"

#include <gtest/gtest.h>

#include <pyflame_rt/env.hpp>
#include <stdexcept>

#include "cxxapi/cli/page/json_reader.h"
#include "cxxapi/cli/page/kernel_families.h"

namespace pfrt_test {
namespace {

using cli::JsonReader;
using cli::Trace;
using cli::TraceSpan;

std::string event(const std::string& rest) { return "{\"pid\":1," + rest + "}"; }
std::string span(const std::string& name, const std::string& category, int tid, double from,
                 double us, const std::string& args) {
  return event("\"ph\":\"X\",\"tid\":" + std::to_string(tid) + ",\"ts\":" + std::to_string(from) +
               ",\"dur\":" + std::to_string(us) + ",\"cat\":\"" + category + "\",\"name\":\"" +
               name + "\",\"args\":{" + args + "}");
}
std::string step(const std::string& node, int run, int tid, double from, double us,
                 const std::string& kernel = "matmul_panels+add") {
  return span(node + "_kernel_time", "Node", tid, from, us,
              "\"run\":" + std::to_string(run) + ",\"op_name\":\"MatMul,Add\",\"provider\":\"P\"," +
                  "\"kernel\":\"" + kernel + "\",\"bytes\":100,\"flops\":200");
}
std::string run(int number, const std::string& tag, double from, double us) {
  return span("model_run", "Session", 1, from, us,
              "\"run\":" + std::to_string(number) + ",\"tag\":\"" + tag + "\"");
}
std::string trace_of(const std::vector<std::string>& events) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  for (size_t i = 0; i < events.size(); ++i) out += (i == 0 ? "\n" : ",\n") + events[i];
  return out +
         "],\"otherData\":{\"graph\":\"g\",\"wall_us\":9.5,\"threads\":[{\"tid\":1,"
         "\"busy_us\":4.25}],\"dropped_events\":3}}\n";
}

TEST(Trace, sums_the_runs_that_count_and_keeps_the_spans_of_the_last) {
  const Trace trace = cli::read_trace(
      trace_of({event("\"ph\":\"M\",\"tid\":7,\"ts\":0,\"name\":\"thread_name\",\"args\":{\"name\":"
                      "\"seven\"}"),
                span("model_loading", "Session", 7, 0, 5, ""), step("a", 1, 7, 10, 99),
                run(1, "warm-up", 10, 100), step("a", 2, 7, 200, 3), run(2, "profiled", 200, 5),
                step("a", 3, 7, 300, 1.5), step("b", 3, 7, 302.125, 2, "softmax_lines"),
                span("a_loop", "Loop", 9, 300.5, 1,
                     "\"run\":3,\"op_name\":\"MatMul,Add\",\"kernel\":"
                     "\"matmul_panels+add\",\"provider\":\"P\""),
                run(3, "profiled", 300, 4.25)}));
  ASSERT_EQ(trace.steps.size(), 2U);
  EXPECT_EQ(trace.steps[0].nodes, "a");
  EXPECT_EQ(trace.steps[0].ops, "MatMul,Add");
  EXPECT_EQ(trace.steps[0].times, 2U) << "the warm-up does not count, nor does a share";
  EXPECT_EQ(trace.steps[0].ns, 4500);
  EXPECT_EQ(trace.steps[0].flops, 200);
  EXPECT_EQ(trace.steps[1].kernel, "softmax_lines");
  EXPECT_EQ(trace.runs, 3U);
  EXPECT_EQ(trace.run_ns, (std::vector<int64_t>{4250, 5000}));
  EXPECT_EQ(trace.last_run.ns, 4125);
  ASSERT_EQ(trace.last_run.threads.size(), 2U);
  EXPECT_EQ(trace.last_run.threads[0].name, "seven");
  EXPECT_EQ(trace.last_run.threads[1].name, "thread 9");
  EXPECT_EQ(trace.last_run.threads[0].busy_ns, 3500);
  ASSERT_EQ(trace.last_run.threads[0].rows.size(), 1U);
  EXPECT_EQ(trace.last_run.threads[0].rows[0][1].start_ns, 2125);
  EXPECT_EQ(trace.last_run.threads[1].rows[0][0].kind, TraceSpan::kShare);
  EXPECT_EQ(trace.last_run.threads[1].rows[0][0].what, 0U);
  EXPECT_EQ(trace.stages, (std::vector<std::string>{"model_loading"}));
  EXPECT_EQ(trace.before.threads.size(), 1U);
  EXPECT_EQ(trace.busy_us, (std::vector<double>{4.25}));
  EXPECT_EQ(trace.wall_us, 9.5);
  EXPECT_EQ(trace.dropped_events, 3);
}

TEST(Trace, puts_a_span_within_another_into_a_row_below) {
  const Trace trace = cli::read_trace(
      trace_of({step("inner", 1, 1, 2, 3), step("next", 1, 1, 5, 1), step("deep", 1, 1, 2, 1),
                step("outer", 1, 1, 1, 8), step("after", 1, 1, 9, 1), run(1, "profiled", 0, 10)}));
  ASSERT_EQ(trace.last_run.threads.size(), 1U);
  std::vector<std::vector<std::string>> names;
  for (const auto& row : trace.last_run.threads[0].rows) {
    names.emplace_back();
    for (const TraceSpan& s : row) names.back().push_back(trace.steps[s.what].nodes);
  }
  const std::vector<std::vector<std::string>> expected = {
      {"outer", "after"}, {"inner", "next"}, {"deep"}};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(trace.last_run.threads[0].busy_ns, 9000);
}

TEST(Trace, counts_all_runs_where_none_was_profiled) {
  const Trace trace = cli::read_trace(
      trace_of({step("a", 1, 1, 0, 1), run(1, "", 0, 1), step("a", 2, 1, 5, 1), run(2, "", 5, 1)}));
  EXPECT_EQ(trace.run_ns.size(), 2U);
  EXPECT_EQ(trace.steps[0].times, 2U);
}

TEST(Trace, of_nothing_is_empty) {
  const Trace trace = cli::read_trace(trace_of({}));
  EXPECT_TRUE(trace.steps.empty() && trace.last_run.threads.empty() && trace.run_ns.empty() &&
              trace.memory.empty());
}

TEST(Trace, leaves_out_the_shortest_spans) {
  std::vector<std::string> events;
  for (int i = 0; i < 10; ++i)
    events.push_back(step("s" + std::to_string(i), 1, 1, 10 * i, i % 2 == 0 ? 5 : 1));
  events.push_back(run(1, "profiled", 0, 100));
  const Trace trace = cli::read_trace(trace_of(events), 5);
  EXPECT_EQ(trace.last_run.left_out, 5U);
  ASSERT_EQ(trace.last_run.threads[0].rows.size(), 1U);
  for (const TraceSpan& s : trace.last_run.threads[0].rows[0]) EXPECT_EQ(s.ns, 5000);
  EXPECT_EQ(trace.steps.size(), 10U) << "the table has all";
}

TEST(Trace, keeps_the_highest_of_many_points_of_memory) {
  std::vector<std::string> events = {run(1, "profiled", 0, 1)};
  for (int i = 0; i < 10000; ++i)
    events.push_back(event("\"ph\":\"C\",\"tid\":0,\"ts\":" + std::to_string(i + 2) +
                           ",\"name\":\"memory\",\"args\":{\"working_bytes\":" +
                           std::to_string(i == 7001 ? 500 : 1) + ",\"result_bytes\":2}"));
  const Trace trace = cli::read_trace(trace_of(events));
  EXPECT_LE(trace.memory.size(), Trace::kMostPoints);
  double most = 0;
  for (const cli::MemoryPoint& p : trace.memory) most = std::max(most, p.working_bytes);
  EXPECT_EQ(most, 500);
  EXPECT_EQ(trace.memory.front().at_ns, 0);
}

TEST(Trace, takes_numbers_that_no_profile_has) {
  for (const char* number : {"1e400", "-1e308", "1e308", "0"}) {
    const std::string text =
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"Node\",\"name\":\"a\",\"ts\":" +
        std::string(number) + ",\"dur\":1,\"tid\":1}]}";
    try {
      (void)cli::read_trace(text);
    } catch (const std::runtime_error& error) {  // a number that no double holds
      EXPECT_NE(std::string(error.what()).find("not a number"), std::string::npos) << error.what();
    }
  }
}

TEST(JsonReader, reads_every_escape) {
  JsonReader json("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\ud800x\"");
  EXPECT_EQ(json.string(), "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBDx");
  json.end();
}

TEST(JsonReader, says_where_text_is_no_json) {
  for (const char* text : {"", "{", "{\"a\"", "{\"a\":}", "{\"a\":1,}", "[1", "\"open", "\"\\x\"",
                           "\"\\u12\"", "\"\\ud800\\u\"", "{\"traceEvents\":5}", "{} x", "nul",
                           "{\"otherData\":{\"wall_us\":\"x\"}}"}) {
    try {
      (void)cli::read_trace(text);
      ADD_FAILURE() << text;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).rfind("reading JSON: byte ", 0), 0U) << error.what();
    }
  }
  const std::string deep(100000, '[');
  EXPECT_THROW(JsonReader(deep).skip(), std::runtime_error);
}

std::string family(const std::string& kernel, const std::string& ops = "") {
  return std::string(cli::kernel_families()[cli::kernel_family(kernel, ops)].name);
}

TEST(KernelFamilies, go_by_the_first_kernel_of_a_step) {
  EXPECT_EQ(family("matmul_panels+add+layer_normalization"), "matmul");
  EXPECT_EQ(family("gemm_packed"), "matmul");
  EXPECT_EQ(family("attention_panels"), "attention");
  EXPECT_EQ(family("conv_direct_nchw16c+relu"), "conv");
  EXPECT_EQ(family("conv_depthwise_rows_nchw16c+hard_swish"), "depthwise");
  EXPECT_EQ(family("qlinear_conv_depthwise"), "depthwise");
  EXPECT_EQ(family("layer_norm_rows"), "norm");
  EXPECT_EQ(family("softmax_lines"), "norm");
  EXPECT_EQ(family("reduce_mean_vectors+gelu"), "reduce");
  EXPECT_EQ(family("max_pool_rows"), "reduce");
  EXPECT_EQ(family("elementwise_jit_avx512_3ops"), "elementwise");
  EXPECT_EQ(family("transpose_tiles+mul"), "move");
  EXPECT_EQ(family("a_plug_ins_kernel"), "other");
  EXPECT_EQ(family(""), "other");
}

TEST(KernelFamilies, go_by_the_operator_where_the_kernel_is_not_known) {
  EXPECT_EQ(family("wse_MeshGEMM", "MatMul,Add"), "matmul");
  EXPECT_EQ(family("wse_Softmax", "Softmax"), "norm");
  EXPECT_EQ(family("div_ref", "Div"), "elementwise");
  EXPECT_EQ(family("host_If", "If"), "other");
}

// What a provider here can run has a family of its own, but for operators that are of no family.
TEST(KernelFamilies, have_the_kernels_of_the_cpu) {
  size_t count = 0, others = 0;
  std::string names;
  for (const pyflame_rt::KernelInfo& k :
       pyflame_rt::Environment::instance().kernels("CPUExecutionProvider")) {
    ++count;
    if (family(k.name, k.op) != "other") continue;
    ++others;
    names += k.name + " (" + k.op + ") ";
  }
  EXPECT_GT(count, 200U);
  EXPECT_LT(others, count / 5) << names;
}

}  // namespace
}  // namespace pfrt_test
