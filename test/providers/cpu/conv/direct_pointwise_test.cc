// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of one tap on planes. They are near plain ones, and have the bits of those by lines
// of channels, on any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/one_node.h"

namespace pfrt::test {
namespace {

struct PointwiseShape {
  int64_t batch, in, height, width, out, stride_y, stride_x, groups;
};
// Shapes with all sorts of strides, with incomplete blocks and panels, and with few positions,
// which go by lines.
constexpr PointwiseShape kPointwise[] = {
    {1, 32, 23, 29, 16, 1, 1, 1},  {2, 64, 32, 32, 40, 1, 1, 1},  {1, 144, 25, 31, 48, 1, 1, 1},
    {1, 48, 46, 47, 33, 2, 2, 1},  {1, 32, 49, 50, 64, 2, 1, 1},  {1, 16, 70, 71, 20, 3, 3, 1},
    {2, 96, 24, 25, 64, 1, 1, 2},  {1, 272, 26, 26, 24, 1, 1, 1}, {1, 320, 53, 51, 160, 2, 2, 1},
    {1, 32, 1, 700, 256, 1, 1, 1}, {1, 64, 14, 14, 64, 1, 1, 1},
};

Case pointwise_case(const PointwiseShape& s, bool bias, Random& random) {
  const auto positions = [](int64_t size, int64_t stride) { return (size - 1) / stride + 1; };
  Case c;
  c.inputs = {random.data(PFRT_DTYPE_FLOAT32, {s.batch, s.in, s.height, s.width}),
              random.data(PFRT_DTYPE_FLOAT32, {s.out, s.in / s.groups, 1, 1})};
  c.inputs[1].constant = true;
  if (bias) c.inputs.push_back(random.data(PFRT_DTYPE_FLOAT32, {s.out}));
  const Dims y = {s.batch, s.out, positions(s.height, s.stride_y), positions(s.width, s.stride_x)};
  c.outputs = {{PFRT_DTYPE_FLOAT32, y, Values(static_cast<size_t>(count(y))), false}};
  c.attrs = {
      {"kernel_shape", Dims{1, 1}}, {"strides", Dims{s.stride_y, s.stride_x}}, {"group", s.groups}};
  return c;
}

TEST(DirectPointwise, is_near_plain_sums_with_the_same_bits_for_every_number_of_threads) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(17);
  for (const PointwiseShape& s : kPointwise)
    for (const bool bias : {false, true}) {
      const Case c = pointwise_case(s, bias, random);
      const std::vector<float> got = floats_by("conv_direct", c),
                               plain = floats_by("conv_implicit_gemm", c, Precision::kIeee);
      ASSERT_EQ(got.size(), plain.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], plain[i], 2e-6 * static_cast<double>(s.in) * 4) << c.text() << i;
      for (std::span<const cpu::KernelRow> family : cpu::kernels())
        for (const cpu::KernelRow& row : family) {
          if (row.name != "conv_direct") continue;
          const Outcome many = run(row, c, {.workers = 4, .placed = Placed::kAtStart});
          ASSERT_EQ(many.fault, "");
          EXPECT_EQ(std::memcmp(many.outputs[0].data(), got.data(), many.outputs[0].size()), 0)
              << c.text();
        }
    }
}

// Parts of the image have too few positions, so that they go by lines.
TEST(DirectPointwise, has_the_bits_of_lines_of_channels) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(19);
  constexpr int64_t kIn = 208, kOut = 48, kHeight = 40, kWidth = 17, kRows = 8;
  const Case whole = pointwise_case({1, kIn, kHeight, kWidth, kOut, 1, 1, 1}, true, random);
  const std::vector<float> all = floats_by("conv_direct", whole);
  for (int64_t y = 0; y < kHeight; y += kRows) {
    Case part = pointwise_case({1, kIn, kRows, kWidth, kOut, 1, 1, 1}, true, random);
    part.inputs[1] = whole.inputs[1];
    part.inputs[2] = whole.inputs[2];
    for (int64_t i = 0; i < kIn * kRows * kWidth; ++i)
      part.inputs[0].values[static_cast<size_t>(i)] = whole.inputs[0].values[static_cast<size_t>(
          (i / (kRows * kWidth) * kHeight + y) * kWidth + i % (kRows * kWidth))];
    const std::vector<float> some = floats_by("conv_direct", part);
    for (int64_t i = 0; i < kOut * kRows * kWidth; ++i)
      ASSERT_EQ(some[static_cast<size_t>(i)],
                all[static_cast<size_t>((i / (kRows * kWidth) * kHeight + y) * kWidth +
                                        i % (kRows * kWidth))])
          << i << " from row " << y;
  }
}

}  // namespace
}  // namespace pfrt::test
