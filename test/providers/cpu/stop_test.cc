// SPDX-License-Identifier: Apache-2.0
//
// Kernels look at the run while they work, not only between the bodies of their loops. A step whose
// work is in one body, or in none, looks so often that a run stops within milliseconds on any
// processor, and leaves at once when told to.
#include <gtest/gtest.h>

#include <numeric>

#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/one_node.h"

namespace pfrt::test {
namespace {

struct Long {
  std::string_view op, row;  // empty = the first row that takes the case
  double work;               // number of multiply-adds, comparisons or elements
  Case c;
};

Data floats(Dims dims) {
  Values values(static_cast<size_t>(count(dims)));
  uint32_t random = 1;
  for (double& v : values) {
    random = random * 1664525u + 1013904223u;
    v = static_cast<double>(random >> 16) / 65536;
  }
  return {PFRT_DTYPE_FLOAT32, std::move(dims), std::move(values)};
}

Data result(Dims dims, pfrt_dtype dtype = PFRT_DTYPE_FLOAT32) {
  return {dtype, std::move(dims), {}};
}

Data indices(int64_t n, int64_t bound) {
  Values values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(static_cast<int64_t>(i) * 7 % bound);
  return {PFRT_DTYPE_INT64, {n}, std::move(values)};
}

Data bytes(Dims dims) {
  Values values(static_cast<size_t>(count(dims)), 3);
  return {PFRT_DTYPE_UINT8, std::move(dims), std::move(values)};
}

std::vector<Long> long_steps() {
  std::vector<Long> all;
  const auto add = [&](std::string_view op, std::string_view row, double work, std::vector<Data> in,
                       std::vector<Data> out, std::vector<Attr> attrs = {}) {
    all.push_back({op, row, work, Case{std::move(in), std::move(out), std::move(attrs)}});
  };
  // With many channels and few pixels, one tile has a long sum.
  add("Conv", "", 64.0 * 16 * 9 * 2048, {floats({1, 2048, 4, 4}), floats({16, 2048, 3, 3})},
      {result({1, 16, 4, 4})}, {{"pads", Dims{1, 1, 1, 1}}});
  add("Conv", "conv_depthwise_rows", 2.0 * 25 * 300 * 300,
      {floats({1, 2, 300, 300}), floats({2, 1, 5, 5})}, {result({1, 2, 300, 300})},
      {{"group", int64_t{2}}, {"pads", Dims{2, 2, 2, 2}}});
  // A one-dimensional image has a single row.
  add("Conv", "conv_depthwise_rows", 2.0 * 9 * 400'000,
      {floats({1, 2, 400'000}), floats({2, 1, 9})}, {result({1, 2, 400'000})},
      {{"group", int64_t{2}}, {"pads", Dims{4, 4}}});
  add("ConvTranspose", "", 64.0 * 8 * 9 * 64 * 64, {floats({1, 64, 64, 64}), floats({64, 8, 3, 3})},
      {result({1, 8, 66, 66})});
  add("ConvInteger", "", 16.0 * 16 * 9 * 1024, {bytes({1, 1024, 4, 4}), bytes({16, 1024, 3, 3})},
      {result({1, 16, 4, 4}, PFRT_DTYPE_INT32)}, {{"pads", Dims{1, 1, 1, 1}}});
  add("MatMul", "", 16.0 * 16 * 16384, {floats({16, 16384}), floats({16384, 16})},
      {result({16, 16})});
  add("Gemm", "", 16.0 * 16 * 16384, {floats({16, 16384}), floats({16384, 16})},
      {result({16, 16})});
  add("Einsum", "", 2e5, {floats({200'000}), floats({200'000}), floats({200'000})}, {result({})},
      {{"equation", std::string("i,i,i->")}});
  add("MaxPool", "", 9.0 * 300 * 300, {floats({1, 1, 300, 300})}, {result({1, 1, 298, 298})},
      {{"kernel_shape", Dims{3, 3}}});
  add("AveragePool", "", 9.0 * 300 * 300, {floats({1, 1, 300, 300})}, {result({1, 1, 298, 298})},
      {{"kernel_shape", Dims{3, 3}}});
  add("TopK", "", 3e6, {floats({200'000}), {PFRT_DTYPE_INT64, {1}, {100'000}, true}},
      {result({100'000}), result({100'000}, PFRT_DTYPE_INT64)});
  add("ScatterElements", "", 1e6, {floats({200'000}), indices(200'000, 200'000), floats({200'000})},
      {result({200'000})});
  add("LRN", "", 9e4, {floats({1, 1, 300, 300})}, {result({1, 1, 300, 300})},
      {{"size", int64_t{5}}});
  add("Einsum", "", 2e6, {floats({200, 100}), floats({100, 100}), floats({100, 200})}, {result({})},
      {{"equation", std::string("ij,jk,kl->")}});
  // A single plane has few positions, with windows of thousands of pixels.
  add("AveragePool", "", 1e8, {floats({1, 1, 400, 400})}, {result({1, 1, 101, 101})},
      {{"kernel_shape", Dims{300, 300}}});
  add("AveragePool", "", 1e8, {floats({1, 1, 20'000})}, {result({1, 1, 10'001})},
      {{"kernel_shape", Dims{10'000}}});
  add("MaxPool", "", 1e7, {floats({1, 1, 20'000})}, {result({1, 1, 10'001})},
      {{"kernel_shape", Dims{10'000}}});
  add("Det", "", 9e6, {floats({300, 300})}, {result({})});
  add("DFT", "", 2e7, {floats({1, 300'007, 1})}, {result({1, 300'007, 2})},
      {{"inverse", int64_t{0}}, {"onesided", int64_t{0}}});
  // These have a single line.
  for (const char* op : {"Softmax", "LogSoftmax"})
    add(op, "", 3e6, {floats({1, 2'000'000})}, {result({1, 2'000'000})}, {{"axis", int64_t{1}}});
  add("ArgMax", "", 2e6, {floats({1, 2'000'000})}, {result({1, 1}, PFRT_DTYPE_INT64)},
      {{"axis", int64_t{1}}});
  add("CumSum", "", 2e6, {floats({2'000'000}), {PFRT_DTYPE_INT64, {}, {0}}}, {result({2'000'000})});
  return all;
}

// Runs the named row, or the first that takes the case.
Outcome run_first(const Long& step, const RunForm& form) {
  Outcome outcome;
  outcome.refused = "there is no such row";
  for (const auto family : cpu::kernels())
    for (const cpu::KernelRow& row : family) {
      if (row.op != step.op || !(step.row.empty() || row.name == step.row)) continue;
      outcome = run(row, step.c, form);
      if (outcome.refused.empty()) return outcome;
    }
  return outcome;
}

TEST(KernelStops, a_step_looks_at_the_run_while_it_works) {
  constexpr double kMostBetween = 5e5;  // about a millisecond of the slowest kernels
  for (const Long& step : long_steps()) {
    SCOPED_TRACE(message(step.op, " ", step.c.text()));
    const Outcome whole = run_first(step, {});
    ASSERT_EQ(whole.refused + whole.fault, "");
    EXPECT_GE(static_cast<double>(whole.looks), 2 + step.work / kMostBetween);
  }
}

TEST(KernelStops, a_step_leaves_when_it_is_told_to) {
  for (const Long& step : long_steps()) {
    SCOPED_TRACE(message(step.op, " ", step.c.text()));
    const Outcome whole = run_first(step, {});
    RunForm form;
    form.looks = whole.looks / 3;
    const Outcome cut = run_first(step, form);
    EXPECT_TRUE(cut.cancelled) << cut.refused << cut.fault;
    // Each of a few levels of loops looks once more.
    EXPECT_LE(cut.looks, form.looks + 8);
  }
}

}  // namespace
}  // namespace pfrt::test
