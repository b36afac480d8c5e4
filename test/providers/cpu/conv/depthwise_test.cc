// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolutions of planes and of images in nChw16c, and those whose groups have a few
// channels.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/depthwise_loop.h"
#include "test/providers/cpu/conv/conv_case.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

ConvShape depthwise(int64_t channels, int64_t height, int64_t width, int64_t taps, int64_t stride,
                    int64_t dilation = 1, int64_t batch = 1) {
  const int64_t pad = taps / 2 * dilation;
  return {batch,  channels, height,   width,    channels, channels, taps, taps,
          stride, stride,   dilation, dilation, pad,      pad,      pad,  pad};
}

// Planes smaller than the window, of every width about those of vectors, odd ones under strides,
// channels that are no multiples of the vector, uneven padding, windows of one dimension and with
// more taps than registers, several outputs a channel, planes of many bands.
std::vector<ConvShape> shapes() {
  std::vector<ConvShape> all;
  for (const int64_t taps : {3, 5, 7})
    for (const int64_t stride : {1, 2})
      for (int64_t width = 1; width < 20; ++width)
        all.push_back(depthwise(5 + width % 3, 1 + (width * 5 + taps) % 17, width, taps, stride));
  for (const int64_t stride : {1, 2}) {
    all.push_back(depthwise(19, 7, 7, 3, stride, 1, 2));
    all.push_back(depthwise(33, 14, 14, 5, stride, 1, 2));
    all.push_back(depthwise(17, 15, 13, 3, stride, 2));
    all.push_back(depthwise(9, 14, 14, 5, stride, 3));
    all.push_back(depthwise(3, 57, 61, 3, stride, 1, 2));
    all.push_back(depthwise(2, 29, 225, 5, stride));
  }
  all.push_back({2, 6, 11, 12, 12, 6, 3, 3, 1, 1, 1, 1, 0, 2, 1, 0});
  all.push_back({1, 10, 9, 10, 10, 10, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1});
  all.push_back({1, 10, 12, 21, 10, 10, 5, 3, 1, 2, 1, 1, 4, 1, 0, 3});
  all.push_back({1, 10, 12, 21, 10, 10, 2, 4, 2, 1, 3, 2, 1, 5, 2, 7});
  all.push_back({1, 12, 1, 40, 12, 12, 1, 9, 1, 1, 1, 1, 0, 4, 0, 4});
  all.push_back({1, 12, 40, 1, 12, 12, 5, 1, 2, 1, 1, 1, 2, 0, 2, 0});
  all.push_back({1, 12, 20, 20, 12, 12, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1});
  all.push_back({1, 9, 1, 1, 9, 9, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
  all.push_back({2, 7, 2, 1, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1});
  all.push_back({1, 4, 1500, 3, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1});
  all.push_back({1, 4, 20, 20, 4, 4, 9, 9, 1, 1, 1, 1, 4, 4, 4, 4});
  all.push_back({1, 4, 12, 12, 4, 4, 3, 3, 1, 1, 12, 12, 12, 12, 12, 12});
  all.push_back({1, 9, 10, 12, 9, 9, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0});
  return all;
}

TEST(Depthwise, sums_are_those_of_double_precision_for_every_number_of_threads) {
  Random random(7);
  for (const ConvShape& s : shapes()) {
    if (s.rows() < 1 || s.columns() < 1) continue;
    for (const bool bias : {false, true})
      expect_sums("conv_depthwise_rows", s, conv_case(s, bias, random));
  }
}

TEST(Depthwise, what_is_not_finite_in_the_image_stays_where_it_belongs) {
  Random random(11);
  for (const ConvShape& s : shapes()) {
    if (s.rows() < 1 || s.columns() < 1) continue;
    Case c = conv_case(s, true, random);
    Values& pixels = c.inputs[0].values;
    pixels.front() = pixels.back() = std::numeric_limits<double>::infinity();
    pixels[pixels.size() / 2] = std::numeric_limits<double>::quiet_NaN();
    set_expected(s, c);
    expect_sums("conv_depthwise_rows", s, c);
  }
}

// A chain of one tap, depthwise, and one tap again: the values between are in nChw16c, unless they
// are outputs.
TEST(Depthwise, has_the_same_bits_in_either_layout) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(13);
  int64_t compared = 0;
  for (ConvShape s : shapes()) {
    if (s.rows() < 1 || s.columns() < 1 || s.out != s.groups) continue;
    s.in = s.out = s.groups = 16 * (1 + s.in % 3);
    const Case c = conv_case(s, true, random);
    const auto weights = [&](Dims dims) {
      Data data = random.data(PFRT_DTYPE_FLOAT32, std::move(dims));
      data.constant = true;
      return data;
    };
    Graph graph;
    const auto add = [&](const Data& data) {
      Data copy = data;
      return graph.add(std::move(copy));
    };
    const Dims inner{s.batch, s.in, s.height, s.width}, outer{s.batch, s.in, s.rows(), s.columns()};
    const uint32_t image = add(random.data(PFRT_DTYPE_FLOAT32, {s.batch, 16, s.height, s.width}));
    const uint32_t first = graph.add("Conv", {image, add(weights({s.in, 16, 1, 1}))}, inner,
                                     {{"kernel_shape", Dims{1, 1}}});
    const uint32_t middle =
        graph.add("Conv", {first, add(c.inputs[1]), add(c.inputs[2])}, outer, c.attrs);
    const uint32_t last =
        graph.add("Conv", {middle, add(weights({16, s.in, 1, 1}))},
                  {s.batch, 16, s.rows(), s.columns()}, {{"kernel_shape", Dims{1, 1}}});
    graph.outputs = {last};
    Graph all = graph;
    all.outputs = {last, first, middle};
    const GraphOutcome once = run(graph, 1), many = run(graph, 3), apart = run(all, 1);
    ASSERT_EQ(once.fault + many.fault + apart.fault, "") << s.text();
    EXPECT_EQ(once.outputs[0], many.outputs[0]) << s.text();
    EXPECT_EQ(once.outputs[0], apart.outputs[0]) << s.text();
    for (const std::string& kernel : once.kernels)
      compared += kernel.find("conv_depthwise_rows_nchw16c") == 0;
  }
  EXPECT_GT(compared, 100);
}

// Groups of a few channels, in and out.
constexpr ConvShape kGrouped[] = {
    {1, 8, 28, 28, 8, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 12, 13, 11, 18, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 20, 7, 7, 10, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 16, 15, 17, 16, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
    {1, 9, 16, 9, 9, 3, 5, 5, 2, 2, 1, 1, 1, 2, 3, 1},
    {1, 24, 30, 42, 12, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 8, 2, 1, 4, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 8, 3, 5, 12, 4, 1, 3, 1, 1, 1, 1, 0, 1, 0, 2},
    {1, 6, 40, 130, 6, 3, 3, 3, 1, 1, 2, 3, 2, 3, 2, 3},
    {1, 6, 9, 9, 6, 3, 3, 3, 1, 1, 9, 9, 9, 9, 9, 9},
    {1, 8, 8200, 2, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
};

TEST(GroupedRows, sums_are_those_of_double_precision_for_every_number_of_threads) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(17);
  for (const ConvShape& s : kGrouped)
    for (const bool bias : {false, true}) {
      if (cpu::isa() >= cpu::Isa::kAvx512 && s.out / s.groups >= 8) continue;
      expect_sums("conv_grouped_rows", s, conv_case(s, bias, random));
    }
}

TEST(GroupedRows, what_is_not_finite_stays_in_its_group) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  Random random(19);
  for (const ConvShape& s : kGrouped) {
    if (cpu::isa() >= cpu::Isa::kAvx512 && s.out / s.groups >= 8) continue;
    Case c = conv_case(s, true, random);
    Values& pixels = c.inputs[0].values;
    pixels.front() = std::numeric_limits<double>::infinity();
    pixels[pixels.size() / 2] = std::numeric_limits<double>::quiet_NaN();
    set_expected(s, c);
    expect_sums("conv_grouped_rows", s, c);
  }
}

using cpu::DepthwiseLoop;

// Bands that are computed apart have the bits of those computed together, and so have planes.
TEST(DepthwiseLoop, bands_and_planes_may_be_computed_apart) {
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  const auto loop =
      DepthwiseLoop::make({false, {37, 20}, {37, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
  ASSERT_NE(loop, nullptr);
  ASSERT_GT(loop->bands(), 3);
  EXPECT_EQ(loop->first_row(0), 0);
  EXPECT_EQ(loop->first_row(loop->bands()), 37);
  constexpr size_t kPlanes = 3, kPixels = 37 * 20;
  std::vector<float> in(kPlanes * kPixels), weights(kPlanes * 9), bias(kPlanes);
  for (auto* list : {&in, &weights, &bias})
    for (size_t i = 0; i < list->size(); ++i) (*list)[i] = static_cast<float>(i * 7 % 23) - 11.5f;
  std::vector<float> whole(in.size()), parts(in.size());
  loop->run(in.data(), weights.data(), bias.data(), whole.data(), 0, loop->bands(), kPlanes, 1);
  for (size_t p = 0; p < kPlanes; ++p)
    for (int64_t b = 0; b < loop->bands(); ++b)
      loop->run(in.data() + p * kPixels, weights.data() + p * 9, bias.data() + p,
                parts.data() + p * kPixels, b, b + 1);
  EXPECT_EQ(whole, parts);
  std::fill(parts.begin(), parts.end(), 5.0f);
  loop->run(in.data(), weights.data(), bias.data(), parts.data(), 1, 1);
  EXPECT_EQ(parts, std::vector<float>(in.size(), 5.0f));
}

TEST(DepthwiseLoop, leaves_other_windows_to_others) {
  using Shape = DepthwiseLoop::Shape;
  const Shape good{false, {14, 14}, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  ASSERT_NE(DepthwiseLoop::make(good), nullptr);
  const auto with = [&](auto member, DepthwiseLoop::Pair value) {
    Shape shape = good;
    shape.*member = value;
    return DepthwiseLoop::make(shape);
  };
  EXPECT_EQ(with(&Shape::strides, {1, 3}), nullptr);
  EXPECT_EQ(with(&Shape::taps, {8, 7}), nullptr);
  EXPECT_EQ(with(&Shape::taps, {0, 3}), nullptr);
  EXPECT_EQ(with(&Shape::image, {0, 14}), nullptr);
  EXPECT_EQ(with(&Shape::positions, {14, 0}), nullptr);
  EXPECT_EQ(with(&Shape::pads, {-1, 0}), nullptr);
  EXPECT_EQ(with(&Shape::image, {14, int64_t{1} << 40}), nullptr);
  EXPECT_EQ(with(&Shape::dilations, {int64_t{1} << 40, 1}), nullptr);
}

}  // namespace
}  // namespace pfrt::test
