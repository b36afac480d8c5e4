// SPDX-License-Identifier: Apache-2.0
//
// Rows that refuse a node because others are faster can do it, with the same results; those that
// cannot do it refuse it whatever pays. The row that is chosen is the one that measurements found
// best (bench/models/choices.sh).
#include "providers/cpu/kernel/pays.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "providers/cpu/isa/amx.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/conv/conv_case.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

const cpu::KernelRow* row_named(std::string_view name) {
  for (std::span<const cpu::KernelRow> family : cpu::kernels())
    for (const cpu::KernelRow& row : family)
      if (row.name == name) return &row;
  return nullptr;
}

ConvShape shape_of(int64_t in, int64_t size, int64_t out, int64_t taps, int64_t groups,
                   int64_t stride = 1) {
  ConvShape s;
  s.in = in;
  s.out = out;
  s.height = s.width = size;
  s.groups = groups;
  s.taps_y = s.taps_x = taps;
  s.stride_y = s.stride_x = stride;
  s.top = s.left = s.bottom = s.right = taps / 2;
  return s;
}

struct ForSpeed {
  std::string_view row;
  ConvShape shape;
};
// Convolutions that a row leaves to others for their speed alone.
const ForSpeed kForSpeed[] = {
    {"conv_direct", shape_of(16, 9, 3, 1, 1)},
    {"conv_direct", shape_of(12, 9, 20, 1, 4)},
    {"conv_winograd", shape_of(16, 10, 40, 3, 1)},
    {"conv_winograd", shape_of(34, 7, 10, 3, 2)},
    {"conv_pointwise", shape_of(48, 8, 32, 1, 1)},
    {"conv_pointwise", shape_of(250, 5, 100, 1, 1)},
    {"conv_depthwise_rows", shape_of(2, 9, 18, 3, 2)},
    {"conv_depthwise_rows", shape_of(1, 9, 9, 3, 1)},
    {"conv_grouped_rows", shape_of(3, 11, 16, 3, 1, 2)},
    {"conv_grouped_rows", shape_of(18, 9, 4, 2, 2)},
    {"conv_grouped_rows", shape_of(24, 7, 24, 1, 2)},
};

TEST(Pays, rows_that_are_left_out_for_speed_give_the_same_results) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(31);
  for (const auto& [name, shape] : kForSpeed)
    for (const bool bias : {false, true}) {
      const Case c = conv_case(shape, bias, random);
      ASSERT_NE(row_named(name), nullptr) << name;
      EXPECT_NE(run(*row_named(name), c).refused, "") << name << " " << shape.text();
      const cpu::EveryRowPays every;
      expect_sums(name, shape, c);
    }
}

TEST(Pays, rows_refuse_what_they_cannot_do_all_the_same) {
  Random random(37);
  const ForSpeed kCannot[] = {
      {"conv_winograd", shape_of(15, 9, 40, 3, 1)},
      {"conv_winograd", shape_of(64, 9, 64, 3, 1, 2)},
      {"conv_pointwise", shape_of(9, 8, 7, 3, 1)},
      {"conv_pointwise", shape_of(9, 3, 7, 1, 1)},
      {"conv_depthwise_rows", shape_of(4, 9, 4, 3, 2)},
      {"conv_grouped_rows", shape_of(20, 9, 4, 3, 2)},
      {"conv_grouped_rows", shape_of(4, 9, 4, 3, 2, 3)},
      {"conv_one_position", shape_of(4, 9, 4, 3, 1)},
  };
  const cpu::EveryRowPays every;
  for (const auto& [name, shape] : kCannot)
    EXPECT_NE(run(*row_named(name), conv_case(shape, false, random)).refused, "")
        << name << " " << shape.text();
}

// Many shapes of all kinds go through all rows.
TEST(Pays, every_row_that_takes_a_convolution_gives_its_sums) {
  Random random(41);
  const auto one_of = [&](std::initializer_list<int64_t> list) {
    return std::data(list)[random.below(static_cast<int64_t>(list.size()))];
  };
  const cpu::EveryRowPays every;
  for (int i = 0; i < 150; ++i) {
    const int64_t groups = one_of({1, 1, 2, 3});
    ConvShape s =
        shape_of(one_of({1, 3, 8, 16, 17, 40}) * groups, one_of({1, 4, 7, 10}),
                 one_of({1, 3, 8, 17, 32}) * groups, one_of({1, 2, 3, 5}), groups, one_of({1, 2}));
    s.width = one_of({2, 6, 9, 16});
    Case c = conv_case(s, i % 2 == 0, random);
    c.absolute *= 4;  // long sums without chains round more
    for (std::span<const cpu::KernelRow> family : cpu::kernels())
      for (const cpu::KernelRow& row : family) {
        if (row.op != "Conv" || cpu::isa_from_name(row.isa).value() > cpu::isa()) continue;
        const Outcome got = run(row, c);
        if (!got.refused.empty()) continue;
        ASSERT_EQ(got.fault, "") << row.name << " " << s.text();
        EXPECT_EQ(difference(c, got), "") << row.name << " " << s.text();
      }
  }
}

// The kernel that a plan takes for a convolution of constant weights.
std::string chosen(const ConvShape& shape, Random& random) {
  const Case c = conv_case(shape, true, random);
  Graph g;
  std::vector<uint32_t> inputs;
  for (const Data& data : c.inputs) inputs.push_back(g.add(data));
  g.outputs = {g.add("Conv", inputs, c.outputs[0].dims, c.attrs)};
  const GraphOutcome got = run(g);
  EXPECT_EQ(got.fault, "") << shape.text();
  return got.kernels.empty() ? "" : got.kernels[0];
}

TEST(Pays, choices_are_those_that_were_fitted) {
  if (cpu::isa() < cpu::Isa::kAvx2 || cpu::amx_usable())
    GTEST_SKIP() << "other machines have other choices";
  const bool avx2 = cpu::isa() < cpu::Isa::kAvx512;
  const ForSpeed kChosen[] = {
      // Few outputs: no window is gathered.
      {"conv_winograd", shape_of(64, 14, 3, 3, 1)},
      {"conv_direct", shape_of(16, 14, 3, 3, 1)},
      {"conv_direct", shape_of(16, 14, 3, 5, 1, 2)},
      {"conv_implicit_gemm", shape_of(16, 14, 3, 1, 1)},
      {"conv_grouped_rows", shape_of(3, 14, 3, 3, 1)},
      {"conv_depthwise_rows", shape_of(1, 14, 5, 3, 1)},
      {"conv_direct", shape_of(3, 14, 16, 3, 1)},
      // With AVX2, weights of tiles take longer to read than they save for a few positions.
      {avx2 ? "conv_direct" : "conv_winograd", shape_of(64, 5, 64, 3, 1)},
      {"conv_winograd", shape_of(64, 7, 64, 3, 1)},
      {"conv_winograd", shape_of(32, 8, 16, 3, 1)},
      {"conv_direct", shape_of(24, 8, 32, 3, 1)},
      // Vectors of pixels, but for few pixels of many channels.
      {"conv_pointwise", shape_of(24, 16, 40, 1, 1)},
      {"conv_pointwise", shape_of(72, 48, 24, 1, 1)},
      {"conv_direct", shape_of(230, 14, 100, 1, 1)},
      {"conv_direct", shape_of(48, 16, 40, 1, 1)},
  };
  Random random(47);
  for (const auto& [name, shape] : kChosen) EXPECT_EQ(chosen(shape, random), name) << shape.text();
}

// Weights are packed before the size of the image is known, for the row that was chosen then.
TEST(Pays, images_that_turn_out_small_go_by_the_row_that_packed) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(53);
  for (const int64_t taps : {3, 5})
    for (const pfrt_compile_hints hints :
         {pfrt_compile_hints{0}, pfrt_compile_hints{PFRT_COMPILE_FAST}}) {
      const ConvShape shape = shape_of(32, 3, 32, taps, 1);
      const Case c = conv_case(shape, true, random);
      Graph g;
      std::vector<uint32_t> inputs;
      for (const Data& data : c.inputs) inputs.push_back(g.add(data));
      g.outputs = {g.add("Conv", inputs, c.outputs[0].dims, c.attrs)};
      g.told[inputs[0]] = {1, 32, -2, -3};
      g.told[g.outputs[0]] = {1, 32, -2, -3};
      g.hints = hints;
      const GraphOutcome got = run(g);
      ASSERT_EQ(got.fault, "") << shape.text();
      const auto* const y = reinterpret_cast<const float*>(got.outputs[0].data());
      for (size_t i = 0; i < c.outputs[0].values.size(); ++i)
        ASSERT_NEAR(static_cast<double>(y[i]), c.outputs[0].values[i], 2e-2) << got.kernels[0];
    }
}

// Says whether products of |rows| rows by |columns| constant columns pack them.
bool packs(const char* op, int64_t rows, int64_t k, int64_t columns) {
  Random random(43);
  Graph g;
  const uint32_t a = g.add(random.data(PFRT_DTYPE_FLOAT32, {rows, k}));
  Data weights = random.data(PFRT_DTYPE_FLOAT32, {k, columns});
  weights.constant = true;
  const uint32_t b = g.add(std::move(weights));
  g.outputs = {g.add(op, {a, b}, {rows, columns})};
  const GraphOutcome got = run(g);
  EXPECT_EQ(got.fault, "");
  return !got.kernels.empty() && got.kernels[0].ends_with("_panels");
}

TEST(Pays, products_of_few_rows_pack_where_everything_pays) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  if (cpu::amx_usable()) GTEST_SKIP() << "columns are packed for tiles here";
  for (const char* const op : {"MatMul", "Gemm"}) {
    EXPECT_FALSE(packs(op, 2, 40, 5)) << op;
    EXPECT_TRUE(packs(op, 2, 40, 8)) << op;
    EXPECT_TRUE(packs(op, 6, 40, 2)) << op;
    EXPECT_FALSE(packs(op, 6, 40, 1)) << op;
    const cpu::EveryRowPays every;
    EXPECT_TRUE(packs(op, 2, 40, 5)) << op;
  }
}

}  // namespace
}  // namespace pfrt::test
