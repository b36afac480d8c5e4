// SPDX-License-Identifier: Apache-2.0
//
// Attention has more forms than kernels_test draws. This tests many more of its cases, those of
// com.microsoft, and the cases that the kernels refuse. A failure prints its seed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/dtype.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/sanitized.h"

namespace pfrt::test {
namespace {

const cpu::KernelRow& row_of(std::string_view op) {
  for (const auto family : cpu::kernels())
    for (const cpu::KernelRow& row : family)
      if (row.op == op) return row;
  ADD_FAILURE() << "no kernel for " << op;
  std::abort();
}

void check_many(std::string_view op, pfrt_dtype dtype, uint64_t cases, int64_t size = 700) {
  const cpu::KernelRow& row = row_of(op);
  const Generators& all = row.domain.empty() ? attention_cases() : contrib_attention_cases();
  for (uint64_t seed = 1000; seed < 1000 + cases; ++seed) {
    Random random(seed * 1000 + dtype);
    const Case c = all.at(op)(random, dtype, size);
    const Outcome outcome = run(row, c);
    const std::string wrong = outcome.refused + outcome.fault;
    ASSERT_EQ(wrong.empty() ? difference(c, outcome) : wrong, "")
        << "PFRT_TEST_CASE=\"" << row.name << " " << dtype_name(dtype) << " " << seed
        << "\": " << c.text();
  }
}

TEST(Attention, hundreds_of_forms_against_plain_loops) {
  check_many("Attention", PFRT_DTYPE_FLOAT32, 600);
  check_many("Attention", PFRT_DTYPE_FLOAT64, 200);
  check_many("Attention", PFRT_DTYPE_FLOAT16, 200);
  check_many("GroupQueryAttention", PFRT_DTYPE_FLOAT32, 300);
  check_many("LinearAttention", PFRT_DTYPE_FLOAT32, 200);
  check_many("MatMulNBits", PFRT_DTYPE_FLOAT32, 150);
}

// The sequences have several blocks of keys, and windows see parts of them.
TEST(Attention, long_sequences_against_plain_loops) {
  check_many("Attention", PFRT_DTYPE_FLOAT32, kSanitized ? 4 : 16, kVeryLarge);
  check_many("Attention", PFRT_DTYPE_FLOAT16, kSanitized ? 1 : 4, kVeryLarge);
  check_many("GroupQueryAttention", PFRT_DTYPE_FLOAT32, kSanitized ? 2 : 8, kVeryLarge);
}

TEST(AttentionThreads, com_microsoft_gives_the_same_bits_on_any_number) {
  for (const auto& [op, generator] : contrib_attention_cases()) {
    Random random(7);
    const Case c = generator(random, PFRT_DTYPE_FLOAT32, 2 * kLarge);
    const Outcome one = run(row_of(op), c);
    ASSERT_EQ(one.refused + one.fault, "") << op;
    for (uint32_t workers : {2u, 4u}) {
      RunForm form;
      form.workers = workers;
      const Outcome many = run(row_of(op), c, form);
      for (size_t i = 0; i < one.outputs.size(); ++i) {
        ASSERT_EQ(one.outputs[i].size(), many.outputs[i].size());
        EXPECT_EQ(memcmp(one.outputs[i].data(), many.outputs[i].data(), one.outputs[i].size()), 0)
            << op << " output " << i << " on " << workers << " threads";
      }
    }
  }
}

// Returns the row's error for a case that makes no sense.
std::string fault_of(std::string_view op, const Case& c) {
  const Outcome outcome = run(row_of(op), c);
  return outcome.refused + outcome.fault;
}

Case small_attention() {
  Random random(1);
  Case c;
  for (int i = 0; i < 3; ++i) c.inputs.push_back(random.data(PFRT_DTYPE_FLOAT32, {1, 2, 3, 4}));
  c.outputs = {expected(PFRT_DTYPE_FLOAT32, {1, 2, 3, 4}, {})};
  return c;
}

// The formula gives hidden keys the weight 0, and 0 * NaN is NaN. A single query sees the first key
// alone.
TEST(Attention, nan_in_a_hidden_value_is_in_the_result) {
  for (const int64_t queries : {1, 2}) {
    Case c;
    c.inputs = {{PFRT_DTYPE_FLOAT32, {1, 1, queries, 2}, Values(static_cast<size_t>(queries) * 2)},
                {PFRT_DTYPE_FLOAT32, {1, 1, 3, 2}, Values(6)},
                {PFRT_DTYPE_FLOAT32, {1, 1, 3, 2}, {1, 2, 3, 4, 5, NAN}}};
    c.attrs = {{"is_causal", int64_t{1}}};
    Values wanted = {1, NAN};
    if (queries == 2) wanted = {1, NAN, 2, NAN};
    c.outputs = {expected(PFRT_DTYPE_FLOAT32, {1, 1, queries, 2}, wanted)};
    const Outcome outcome = run(row_of("Attention"), c);
    ASSERT_EQ(outcome.refused + outcome.fault, "");
    EXPECT_EQ(difference(c, outcome), "") << queries;
  }
}

// 2 heads of 70 queries and 301 keys; with |odd| in place of a value's element, unless it is 0.
Case case_of_pairs(double odd = 0) {
  Random random(3);
  Case c;
  c.inputs = {random.data(PFRT_DTYPE_FLOAT32, {1, 2, 70, 37}, -1, 1),
              random.data(PFRT_DTYPE_FLOAT32, {1, 2, 301, 37}, -1, 1),
              random.data(PFRT_DTYPE_FLOAT32, {1, 2, 301, 51}, -1, 1)};
  if (odd != 0) c.inputs[2].values[5 * 51 + 7] = odd;
  c.outputs = {{PFRT_DTYPE_FLOAT32, {1, 2, 70, 51}, Values(2 * 70 * 51), false}};
  return c;
}

std::vector<float> attended(const Case& c, const RunForm& form) {
  const Outcome outcome = run(row_of("Attention"), c, form);
  EXPECT_EQ(outcome.refused + outcome.fault, "");
  const auto* const y = reinterpret_cast<const float*>(outcome.outputs[0].data());
  return {y, y + outcome.outputs[0].size() / sizeof(float)};
}

TEST(Attention, of_pairs_of_bfloat16_errs_as_their_factors_do) {
  if (cpu::isa() < cpu::Isa::kAvx512Bf16 || cpu::split_matmul_usable())
    GTEST_SKIP() << "needs avx512_bf16, without tiles";
  Case c = case_of_pairs();
  for (const int64_t causal : {0, 1}) {
    c.attrs = {{"is_causal", causal}};
    const std::vector<float> plain = attended(c, {});
    const std::vector<double> want(plain.begin(), plain.end());
    const std::vector<float> got = attended(c, {.precision = Precision::kBfloat16});
    const double size = rms_error(std::vector<float>(plain.size()), want);
    EXPECT_LE(rms_error(got, want), 4e-3 * size);
    EXPECT_GT(rms_error(got, want), 1e-4 * size);
    EXPECT_EQ(got, attended(c, {.workers = 3, .precision = Precision::kBfloat16}));
    EXPECT_EQ(plain, attended(c, {.precision = Precision::kFast}));
  }
}

TEST(Attention, of_pairs_of_bfloat16_lets_odd_values_through) {
  if (cpu::isa() < cpu::Isa::kAvx512Bf16 || cpu::split_matmul_usable())
    GTEST_SKIP() << "needs avx512_bf16, without tiles";
  for (const double odd : {std::numeric_limits<double>::infinity(), static_cast<double>(NAN)}) {
    const Case c = case_of_pairs(odd);
    const std::vector<float> plain = attended(c, {});
    const std::vector<float> got = attended(c, {.precision = Precision::kBfloat16});
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(std::isnan(got[i]), std::isnan(plain[i])) << odd << " at " << i;
      EXPECT_EQ(std::isinf(got[i]), std::isinf(plain[i])) << odd << " at " << i;
    }
  }
}

TEST(Attention, turns_away_what_does_not_fit) {
  Case c = small_attention();
  c.inputs[1].dims = {1, 2, 4, 3};
  EXPECT_NE(fault_of("Attention", c).find("do not agree"), std::string::npos);
  c = small_attention();
  c.inputs[2].dims = {2, 3, 4};
  EXPECT_NE(fault_of("Attention", c).find("rank"), std::string::npos);
  c = small_attention();
  c.inputs.push_back(Data{PFRT_DTYPE_BOOL, {2, 3, 2}, Values(12, 1)});
  c.inputs.back().dims = {3, 2, 2};
  EXPECT_NE(fault_of("Attention", c).find("broadcast"), std::string::npos);
  c = small_attention();
  for (Data& input : c.inputs) input.dims = {1, 3, 8};
  c.outputs[0].dims = {1, 3, 8};
  c.attrs = {{"q_num_heads", int64_t{1} << 62}, {"kv_num_heads", int64_t{2}}};
  EXPECT_NE(fault_of("Attention", c).find("q_num_heads"), std::string::npos);
  c.attrs = {{"q_num_heads", int64_t{3}}, {"kv_num_heads", int64_t{2}}};
  EXPECT_NE(fault_of("Attention", c).find("agree"), std::string::npos);
}

TEST(Attention, counts_of_keys_are_checked_in_the_run) {
  for (double keys : {-1.0, 4.0}) {
    Case c = small_attention();
    c.inputs.resize(7);
    c.inputs[6] = {PFRT_DTYPE_INT64, {1}, {keys}, false};
    EXPECT_NE(fault_of("Attention", c).find("nonpad_kv_seqlen[0] is"), std::string::npos) << keys;
  }
}

TEST(Attention, dimensions_of_nothing_may_be_anything) {
  Case c;
  const int64_t huge = int64_t{1} << 30;
  for (int i = 0; i < 3; ++i) c.inputs.push_back({PFRT_DTYPE_FLOAT32, {huge, huge, 0, 4}, {}});
  c.outputs = {expected(PFRT_DTYPE_FLOAT32, {huge, huge, 0, 4}, {})};
  EXPECT_EQ(fault_of("Attention", c), "");
}

TEST(TensorScatter, rows_outside_the_cache_are_a_fault) {
  Case c;
  Random random(1);
  c.inputs = {random.data(PFRT_DTYPE_FLOAT32, {1, 4, 2}),
              random.data(PFRT_DTYPE_FLOAT32, {1, 3, 2}),
              {PFRT_DTYPE_INT64, {1}, {2}, false}};
  c.outputs = {expected(PFRT_DTYPE_FLOAT32, {1, 4, 2}, {})};
  EXPECT_NE(fault_of("TensorScatter", c).find("do not fit into 4"), std::string::npos);
}

TEST(RotaryEmbedding, positions_outside_the_cache_are_a_fault) {
  Case c;
  Random random(1);
  c.inputs = {random.data(PFRT_DTYPE_FLOAT32, {1, 1, 2, 4}),
              random.data(PFRT_DTYPE_FLOAT32, {5, 2}),
              random.data(PFRT_DTYPE_FLOAT32, {5, 2}),
              {PFRT_DTYPE_INT64, {1, 2}, {4, 5}, false}};
  c.outputs = {expected(PFRT_DTYPE_FLOAT32, {1, 1, 2, 4}, {})};
  EXPECT_NE(fault_of("RotaryEmbedding", c).find("position 5"), std::string::npos);
}

TEST(MatMulNBits, groups_and_sizes_are_checked) {
  Case c;
  Random random(1);
  c.inputs = {random.data(PFRT_DTYPE_FLOAT32, {1, 32}),
              random.data(PFRT_DTYPE_UINT8, {2, 2, 8}, 0, 255),
              random.data(PFRT_DTYPE_FLOAT32, {2, 2}),
              Data{},
              {PFRT_DTYPE_INT32, {32}, Values(32, 2), false}};
  c.outputs = {expected(PFRT_DTYPE_FLOAT32, {1, 2}, {})};
  c.attrs = {
      {"K", int64_t{32}}, {"N", int64_t{2}}, {"bits", int64_t{4}}, {"block_size", int64_t{16}}};
  EXPECT_NE(fault_of("MatMulNBits", c).find("g_idx[0] is 2"), std::string::npos);
  c.attrs[1].value = int64_t{1} << 31;
  EXPECT_NE(fault_of("MatMulNBits", c).find("B has"), std::string::npos);
  c.attrs[2].value = int64_t{3};
  EXPECT_NE(fault_of("MatMulNBits", c).find("3 bits"), std::string::npos);
}

}  // namespace
}  // namespace pfrt::test
