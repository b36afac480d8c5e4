// SPDX-License-Identifier: Apache-2.0
//
// Kernels that sample images: Resize, GridSample and RoiAlign by vectors beside the same operators
// in float64, over sizes that leave vectors partly filled, with NaN and infinities, on any number
// of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/vision/roi_taps.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test::sampling {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const cpu::KernelRow& row_named(std::string_view name) {
  for (const auto family : cpu::kernels())
    for (const cpu::KernelRow& row : family)
      if (row.name == name) return row;
  throw std::runtime_error(std::string(name));
}

Case with_type(Case c, pfrt_dtype dtype) {
  c.inputs[0].dtype = c.outputs[0].dtype = dtype;
  return c;
}

double largest(const Values& values) {
  double most = 0;
  for (const double v : values)
    if (std::isfinite(v)) most = std::max(most, std::fabs(v));
  return most;
}

// The row's results are those of |reference| in float64, and are NaN or infinite where those are.
void expect_same(std::string_view name, std::string_view reference, const Case& c, double steps,
                 const RunForm& form = {}) {
  const size_t n = static_cast<size_t>(count(c.outputs[0].dims));
  const Outcome got = run(row_named(name), c, form);
  const Outcome want = run(row_named(reference), with_type(c, PFRT_DTYPE_FLOAT64));
  ASSERT_EQ(got.refused + got.fault + want.refused + want.fault, "") << c.text();
  const Values y = load(c.outputs[0].dtype, got.outputs[0].data(), n),
               exact = load(PFRT_DTYPE_FLOAT64, want.outputs[0].data(), n);
  const double allowed = steps * epsilon(PFRT_DTYPE_FLOAT32) * largest(c.inputs[0].values);
  for (size_t i = 0; i < n; ++i) {
    if (y[i] == exact[i] || (std::isnan(y[i]) && std::isnan(exact[i]))) continue;
    ASSERT_LE(std::fabs(y[i] - exact[i]), allowed)
        << name << " " << c.text() << ", element " << i << " is " << y[i] << ", not " << exact[i];
  }
}

void expect_bits_of_threads(std::string_view name, const Case& c) {
  const Outcome one = run(row_named(name), c);
  ASSERT_EQ(one.fault, "") << c.text();
  for (const uint32_t workers : {2u, 5u}) {
    const Outcome more = run(row_named(name), c, {.workers = workers});
    ASSERT_EQ(more.fault, "") << c.text();
    ASSERT_EQ(std::memcmp(one.outputs[0].data(), more.outputs[0].data(), one.outputs[0].size()), 0)
        << c.text() << " on " << workers << " threads";
  }
}

bool has_avx2() { return cpu::isa() >= cpu::Isa::kAvx2; }

// ------------------------------------------------------------------ RoiAlign

struct Rois {
  int64_t regions, channels, height, width, rows, columns, sampling;
  bool maximum, half_pixel;
  double most;  // pixels of a region
};

Case roi_align(Random& r, const Rois& s) {
  const int64_t batch = 2;
  Data rois{PFRT_DTYPE_FLOAT32, {s.regions, 4}, {}};
  Dims images;
  for (int64_t i = 0; i < s.regions; ++i) {
    const double left = r.uniform(-3, static_cast<double>(s.width)),
                 top = r.uniform(-3, static_cast<double>(s.height));
    const double least = s.half_pixel ? -4 : 0;  // some are turned around
    for (const double v :
         {left, top, left + r.uniform(least, s.most), top + r.uniform(least, s.most)})
      rois.values.push_back(v);
    images.push_back(r.below(batch));
  }
  rois.values = rounded(PFRT_DTYPE_FLOAT32, rois.values);
  Case c;
  c.inputs = {r.data(PFRT_DTYPE_FLOAT32, {batch, s.channels, s.height, s.width}), rois,
              integers({s.regions}, images, false)};
  const Dims out{s.regions, s.channels, s.rows, s.columns};
  c.outputs = {{PFRT_DTYPE_FLOAT32, out, Values(static_cast<size_t>(count(out)))}};
  c.attrs = {{"output_height", s.rows},
             {"output_width", s.columns},
             {"sampling_ratio", s.sampling},
             {"spatial_scale", 0.5f},
             {"mode", std::string(s.maximum ? "max" : "avg")},
             {"coordinate_transformation_mode",
              std::string(s.half_pixel ? "half_pixel" : "output_half_pixel")}};
  return c;
}

Rois some_rois(Random& r) {
  constexpr int64_t kSizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 60};
  const auto size = [&] { return kSizes[r.below(std::size(kSizes))]; };
  return {r.once_in(4) ? r.from_to(60, 70) : r.from_to(0, 5),
          r.once_in(4) ? r.from_to(30, 34) : r.from_to(1, 3),
          size(),
          size(),
          r.from_to(1, 8),
          r.from_to(1, 18),
          r.below(5),
          r.once_in(4),
          r.once_in(2),
          r.once_in(2) ? 10.0 : 150.0};
}

TEST(RoiAlign, regions_of_every_size) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Case c = roi_align(random, some_rois(random));
    RunForm form;
    form.placed = seed % 2 == 0 ? Placed::kAtEnd : Placed::kAtStart;
    expect_same("roi_align_bins", "roi_align_bins", c, 64, form);
    if (HasFatalFailure()) return;
  }
}

// Regions may be turned around, samples may stand still, and bins may be far outside.
TEST(RoiAlign, taps_fit_into_their_memory_and_have_all_the_weight) {
  for (uint64_t seed = 1; seed <= 20000; ++seed) {
    Random random(seed);
    const int64_t length = random.from_to(1, 40), bins = random.from_to(1, 12);
    const double bins_wide = random.once_in(5)   ? 0
                             : random.once_in(3) ? random.uniform(-0.5, 0.5)
                             : random.once_in(2) ? std::floor(random.uniform(-4, 4)) / 2
                                                 : random.uniform(-9, 9);
    const cpu::RoiSamples samples{
        random.once_in(2) ? std::floor(random.uniform(-4, 40)) : random.uniform(-60, 80), bins_wide,
        random.once_in(9) ? 700 : random.from_to(1, 9)};
    for (const bool maximum : {false, true}) {
      const size_t most = static_cast<size_t>(cpu::RoiTaps<double>::most(length, bins));
      std::vector<double> exact(most), memory(cpu::RoiTaps<double>::bytes(length, bins) / 8);
      cpu::RoiTaps<double> taps;
      taps.place(reinterpret_cast<char*>(memory.data()), length, bins);
      cpu::StopPoll pace;
      ASSERT_TRUE(taps.find(samples, maximum, exact.data(), pace));
      ASSERT_LE(static_cast<size_t>(taps.taps), most) << seed;
      for (int64_t i = 0; i < bins && !maximum; ++i) {
        double all = 0;
        for (int64_t k = taps.first[i]; k < taps.first[i + 1]; ++k) all += taps.weight[k];
        ASSERT_LE(all, 1 + 1e-12) << seed;
        ASSERT_GE(all, taps.outside[i] != 0 ? 0 : 1 - 1e-12) << seed;
      }
    }
  }
}

TEST(RoiAlign, nan_and_infinities_reach_the_bins_that_read_them) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Rois form = some_rois(random);
    form.regions = 5;
    Case c = roi_align(random, form);
    Values& x = c.inputs[0].values;
    for (const double special : {kNaN, kInfinity, -kInfinity})
      x[static_cast<size_t>(random.below(static_cast<int64_t>(x.size())))] = special;
    // Whole coordinates give weights of 0.
    if (random.once_in(2))
      for (double& v : c.inputs[1].values) v = std::floor(v / 4) * 4 + (form.half_pixel ? 1 : 0);
    expect_same("roi_align_bins", "roi_align_bins", c, 64);
    if (HasFatalFailure()) return;
  }
}

TEST(RoiAlign, bits_do_not_depend_on_threads) {
  Random random(3);
  for (const bool maximum : {false, true}) {
    expect_bits_of_threads("roi_align_bins",
                           roi_align(random, {150, 70, 20, 30, 7, 7, 2, maximum, false, 40}));
    if (HasFatalFailure()) return;
  }
}

TEST(RoiAlign, regions_that_cannot_be_sampled_are_errors) {
  Random random(4);
  for (const double bad : {kNaN, kInfinity, -kInfinity, 1e30}) {
    Case c = roi_align(random, {3, 2, 9, 9, 2, 2, 0, false, true, 5});
    c.inputs[1].values[6] = bad;
    const Outcome got = run(row_named("roi_align_bins"), c);
    EXPECT_NE(got.fault.find("region 1 is not finite or too large"), got.fault.npos) << got.fault;
  }
  for (const double image : {-1.0, 2.0, 1e18}) {
    Case c = roi_align(random, {3, 2, 9, 9, 2, 2, 2, false, true, 5});
    c.inputs[2].values[2] = image;
    const Outcome got = run(row_named("roi_align_bins"), c);
    EXPECT_NE(got.fault.find("region 2 is of no image of 2"), got.fault.npos) << got.fault;
  }
}

TEST(RoiAlign, many_samples_and_regions_far_outside) {
  Random random(5);
  for (const int64_t sampling : {0, 1, 5000}) {
    Case c = roi_align(random, {4, 3, 12, 40, 3, 5, sampling, false, true, 30});
    c.inputs[1].values = {0, 0, 3000, 2000, 20, 20, 5, 5, -1e6, -1e6, 1e5, -9e5, 7, 7, 7, 7};
    expect_same("roi_align_bins", "roi_align_bins", c, 64);
    if (HasFatalFailure()) return;
  }
}

// ------------------------------------------------------------------ Resize

Case resize(Random& r, const Dims& in, const Dims& out, const std::string& mode, bool antialias) {
  const char* const coordinates[] = {"half_pixel",    "pytorch_half_pixel", "half_pixel_symmetric",
                                     "align_corners", "asymmetric",         "tf_crop_and_resize"};
  const std::string chosen = coordinates[r.below(antialias ? 3 : 6)];
  const int64_t n = static_cast<int64_t>(in.size());
  Case c;
  Data roi{PFRT_DTYPE_FLOAT32, {2 * n}, {}};
  for (int64_t i = 0; i < 2 * n; ++i) roi.values.push_back(i < n ? -0.125 : 1.25);
  c.inputs = {r.data(PFRT_DTYPE_FLOAT32, in), chosen == "tf_crop_and_resize" ? roi : Data{}, Data{},
              integers({n}, out)};
  c.inputs[3].constant = r.once_in(2);
  c.outputs = {{PFRT_DTYPE_FLOAT32, out, Values(static_cast<size_t>(count(out)))}};
  c.attrs = {{"mode", mode},
             {"coordinate_transformation_mode", chosen},
             {"antialias", int64_t{antialias}},
             {"exclude_outside", int64_t{mode == "cubic" && r.once_in(2)}},
             {"extrapolation_value", 2.5f}};
  return c;
}

// Sizes of two images: |pixels| dimensions of them between channels before and behind.
std::pair<Dims, Dims> some_images(Random& r, bool antialias) {
  constexpr int64_t kInner[] = {1, 1, 1, 1, 2, 3, 5, 7, 8, 9, 17, 33, 1100};
  const int64_t inner = kInner[r.below(std::size(kInner))];
  const int64_t pixels = inner > 1000 ? 1 : r.from_to(1, 3), most = pixels == 1   ? 90
                                                                    : pixels == 2 ? 40
                                                                                  : 12;
  Dims in{r.from_to(1, 3)}, out = in;
  for (int64_t d = 0; d < pixels; ++d) {
    in.push_back(r.from_to(1, most));
    out.push_back(r.once_in(4) ? in.back() : r.from_to(1, antialias ? in.back() : most));
    if (r.once_in(4)) out.back() = 2 * in.back();
  }
  in.push_back(inner);
  out.push_back(in.back());
  return {in, out};
}

TEST(ResizeVectors, images_of_every_size) {
  if (!has_avx2()) GTEST_SKIP() << "vectors need avx2";
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Random random(seed);
    const bool antialias = random.once_in(4);
    const auto [in, out] = some_images(random, antialias);
    const Case c = resize(random, in, out, random.once_in(2) ? "cubic" : "linear", antialias);
    RunForm form;
    form.placed = seed % 2 == 0 ? Placed::kAtEnd : Placed::kAtStart;
    expect_same("resize_vectors", "resize_weighted_ref", c, 256, form);
    if (HasFatalFailure()) return;
  }
}

TEST(ResizeVectors, nan_and_infinities_stay_where_their_weights_are) {
  if (!has_avx2()) GTEST_SKIP() << "vectors need avx2";
  for (const bool up : {true, false})
    for (const int64_t inner : {1, 3, 12}) {
      Random random(7);
      const Dims in{2, 9, 21, inner}, out{2, up ? 30 : 5, up ? 50 : 11, inner};
      Case c = resize(random, in, out, "linear", false);
      c.attrs[1].value = std::string("half_pixel");
      c.inputs[1] = Data{};
      Values& x = c.inputs[0].values;
      x[static_cast<size_t>(4 * 21 * inner + 10 * inner)] = kNaN;
      x[static_cast<size_t>(7 * 21 * inner + 20 * inner)] = kInfinity;
      x[static_cast<size_t>(12 * 21 * inner)] = -kInfinity;
      expect_same("resize_vectors", "resize_weighted_ref", c, 64);
      if (HasFatalFailure()) return;
    }
}

TEST(ResizeVectors, bits_do_not_depend_on_threads) {
  if (!has_avx2()) GTEST_SKIP() << "vectors need avx2";
  Random random(8);
  for (const auto& [in, out] : {std::pair<Dims, Dims>{{3, 40, 50}, {3, 230, 240}},
                                {{2, 100, 200}, {2, 60, 130}},
                                {{1, 50, 60, 24}, {1, 90, 70, 24}},
                                {{4, 9, 20, 30}, {4, 19, 41, 52}}}) {
    expect_bits_of_threads("resize_vectors", resize(random, in, out, "cubic", false));
    if (HasFatalFailure()) return;
  }
}

TEST(ResizeVectors, other_types_with_float32_sums) {
  if (!has_avx2()) GTEST_SKIP() << "vectors need avx2";
  for (const pfrt_dtype dtype : {PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16, PFRT_DTYPE_UINT8})
    for (const int64_t inner : {1, 3, 20}) {
      Random random(9);
      Case c = resize(random, {2, 11, 23, inner}, {2, 25, 40, inner}, "linear", false);
      c.inputs[0] = random.data(dtype, {2, 11, 23, inner}, 0, 200);
      c.outputs[0].dtype = dtype;
      const Outcome got = run(row_named("resize_vectors"), c),
                    want = run(row_named("resize_weighted_ref"), c);
      ASSERT_EQ(got.refused + got.fault + want.refused + want.fault, "") << c.text();
      const size_t n = static_cast<size_t>(count(c.outputs[0].dims));
      const Values y = load(dtype, got.outputs[0].data(), n),
                   exact = load(dtype, want.outputs[0].data(), n);
      for (size_t i = 0; i < n; ++i)
        ASSERT_LE(std::fabs(y[i] - exact[i]), dtype == PFRT_DTYPE_UINT8 ? 1 : 400 * epsilon(dtype))
            << c.text() << " element " << i;
    }
}

// ------------------------------------------------------------------ GridSample

Case grid_sample(Random& r, const std::string& mode, size_t dims, double reach) {
  const int64_t batch = r.from_to(1, 2), channels = r.from_to(1, 5);
  const char* const paddings[] = {"zeros", "border", "reflection"};
  Dims in{batch, channels}, grid{batch}, out{batch, channels};
  for (size_t d = 0; d < dims; ++d) {
    in.push_back(r.from_to(1, 12));
    grid.push_back(r.from_to(1, dims == 2 ? 15 : 5));
    out.push_back(grid.back());
  }
  grid.push_back(static_cast<int64_t>(dims));
  Case c;
  c.inputs = {r.data(PFRT_DTYPE_FLOAT32, in), r.data(PFRT_DTYPE_FLOAT32, grid, -reach, reach)};
  c.outputs = {{PFRT_DTYPE_FLOAT32, out, Values(static_cast<size_t>(count(out)))}};
  c.attrs = {{"mode", mode},
             {"padding_mode", std::string(paddings[r.below(3)])},
             {"align_corners", r.below(2)}};
  return c;
}

TEST(GridSampleVectors, grids_of_every_size) {
  if (!has_avx2()) GTEST_SKIP() << "vectors need avx2";
  const char* const modes[] = {"nearest", "linear", "cubic"};
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const char* const mode = modes[random.below(3)];
    const Case c = grid_sample(random, mode, random.once_in(4) ? 3 : 2,
                               random.once_in(2)   ? 1.2
                               : random.once_in(2) ? 7
                                                   : 1);
    RunForm form;
    form.placed = seed % 2 == 0 ? Placed::kAtEnd : Placed::kAtStart;
    expect_same("grid_sample_vectors", "grid_sample_ref", c, 64, form);
    if (HasFatalFailure()) return;
  }
}

TEST(GridSampleVectors, places_that_are_no_numbers_and_pixels_that_are_none) {
  if (!has_avx2()) GTEST_SKIP() << "vectors need avx2";
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    Case c = grid_sample(random, seed % 2 == 0 ? "linear" : "nearest", 2, 1.2);
    for (const double place : {kNaN, kInfinity, -kInfinity, 1e30, -1e30, 1.0, -1.0})
      c.inputs[1].values[static_cast<size_t>(
          random.below(static_cast<int64_t>(c.inputs[1].values.size())))] = place;
    c.inputs[1].values = rounded(PFRT_DTYPE_FLOAT32, c.inputs[1].values);
    for (const double pixel : {kNaN, kInfinity})
      c.inputs[0].values[static_cast<size_t>(
          random.below(static_cast<int64_t>(c.inputs[0].values.size())))] = pixel;
    expect_same("grid_sample_vectors", "grid_sample_ref", c, 64);
    if (HasFatalFailure()) return;
  }
}

TEST(GridSampleVectors, bits_do_not_depend_on_threads) {
  if (!has_avx2()) GTEST_SKIP() << "vectors need avx2";
  Random random(10);
  Case c = grid_sample(random, "linear", 2, 1.2);
  c.inputs = {random.data(PFRT_DTYPE_FLOAT32, {3, 20, 30, 40}),
              random.data(PFRT_DTYPE_FLOAT32, {3, 50, 33, 2}, -1.2, 1.2)};
  c.outputs = {{PFRT_DTYPE_FLOAT32, {3, 20, 50, 33}, Values(3 * 20 * 50 * 33)}};
  expect_bits_of_threads("grid_sample_vectors", c);
}

}  // namespace
}  // namespace pfrt::test::sampling
