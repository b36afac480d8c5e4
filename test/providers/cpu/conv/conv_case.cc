// SPDX-License-Identifier: Apache-2.0
#include "test/providers/cpu/conv/conv_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/base/status.h"
#include "providers/cpu/registry/registry.h"

namespace pfrt::test {
namespace {

int64_t positions(int64_t size, int64_t taps, int64_t stride, int64_t dilation, int64_t pads) {
  return (size + pads - (taps - 1) * dilation - 1) / stride + 1;
}

}  // namespace

int64_t ConvShape::rows() const {
  return positions(height, taps_y, stride_y, dilation_y, top + bottom);
}

int64_t ConvShape::columns() const {
  return positions(width, taps_x, stride_x, dilation_x, left + right);
}

std::string ConvShape::text() const {
  return message(batch, "x", in, "x", height, "x", width, "->", out, "/", groups, " taps ", taps_y,
                 "x", taps_x, " strides ", stride_y, ",", stride_x, " dilations ", dilation_y, ",",
                 dilation_x, " pads ", top, ",", left, ",", bottom, ",", right);
}

Case conv_case(const ConvShape& s, bool bias, Random& random) {
  Case c;
  c.inputs = {random.data(PFRT_DTYPE_FLOAT32, {s.batch, s.in, s.height, s.width}),
              random.data(PFRT_DTYPE_FLOAT32, {s.out, s.in / s.groups, s.taps_y, s.taps_x})};
  c.inputs[1].constant = true;
  if (bias) c.inputs.push_back(random.data(PFRT_DTYPE_FLOAT32, {s.out}));
  c.attrs = {{"kernel_shape", Dims{s.taps_y, s.taps_x}},
             {"strides", Dims{s.stride_y, s.stride_x}},
             {"dilations", Dims{s.dilation_y, s.dilation_x}},
             {"pads", Dims{s.top, s.left, s.bottom, s.right}},
             {"group", s.groups}};
  set_expected(s, c);
  return c;
}

void set_expected(const ConvShape& s, Case& c) {
  const Values &x = c.inputs[0].values, &w = c.inputs[1].values;
  const int64_t depth = s.in / s.groups, group_out = s.out / s.groups;
  Values sums;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.out; ++o)
      for (int64_t r = 0; r < s.rows(); ++r)
        for (int64_t q = 0; q < s.columns(); ++q) {
          double sum = c.inputs.size() > 2 ? c.inputs[2].values[static_cast<size_t>(o)] : 0;
          for (int64_t k = 0; k < depth * s.taps_y * s.taps_x; ++k) {
            const int64_t channel = k / (s.taps_y * s.taps_x), tap = k % (s.taps_y * s.taps_x);
            const int64_t py = r * s.stride_y - s.top + tap / s.taps_x * s.dilation_y;
            const int64_t px = q * s.stride_x - s.left + tap % s.taps_x * s.dilation_x;
            const bool inside = py >= 0 && py < s.height && px >= 0 && px < s.width;
            const int64_t plane = n * s.in + o / group_out * depth + channel;
            sum += w[static_cast<size_t>(o * depth * s.taps_y * s.taps_x + k)] *
                   (inside ? x[static_cast<size_t>((plane * s.height + py) * s.width + px)] : 0.0);
          }
          sums.push_back(sum);
        }
  c.outputs = {{PFRT_DTYPE_FLOAT32, {s.batch, s.out, s.rows(), s.columns()}, sums, false}};
  // Products are below 9 and chains of sums are short.
  c.relative = 4;
  c.absolute = 9 * step_error(PFRT_DTYPE_FLOAT32) *
               std::sqrt(static_cast<double>(depth * s.taps_y * s.taps_x)) * 8;
}

void expect_sums(std::string_view name, const ConvShape& shape, const Case& c) {
  for (std::span<const cpu::KernelRow> family : cpu::kernels())
    for (const cpu::KernelRow& row : family) {
      if (row.name != name) continue;
      const Outcome one = run(row, c),
                    many = run(row, c, {.workers = 4, .placed = Placed::kAtStart});
      ASSERT_EQ(one.refused + one.fault + many.fault, "") << shape.text();
      EXPECT_EQ(difference(c, one), "") << shape.text();
      EXPECT_EQ(std::memcmp(one.outputs[0].data(), many.outputs[0].data(), one.outputs[0].size()),
                0)
          << shape.text();
      return;
    }
  ADD_FAILURE() << "no row " << name;
}

}  // namespace pfrt::test
