// SPDX-License-Identifier: Apache-2.0
//
// Grids, unpooling and normalisation across channels, point by point in double.
#include <algorithm>
#include <array>
#include <cmath>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

Case lrn(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = r.data(dtype, r.dims_without_0(static_cast<size_t>(r.from_to(3, 4)), size));
  const int64_t n = r.from_to(1, 6);
  const float alpha = 0.5f, beta = 0.75f, bias = 1.5f;
  Values y;
  for_each_index(x.dims, [&](const Dims& at) {
    double sum = 0;
    const int64_t first = std::max<int64_t>(0, at[1] - (n - 1) / 2);
    const int64_t last = std::min(x.dims[1] - 1, at[1] + n / 2);
    Dims other = at;
    for (other[1] = first; other[1] <= last; ++other[1]) {
      const double v = x.values[position(other, x.dims)];
      sum += v * v;
    }
    y.push_back(x.values[position(at, x.dims)] /
                std::pow(double{bias} + double{alpha} / static_cast<double>(n) * sum, beta));
  });
  Case c;
  c.inputs = {x};
  c.outputs = {expected(dtype, x.dims, y)};
  c.attrs = {{"size", n}, {"alpha", alpha}, {"beta", beta}, {"bias", bias}};
  c.relative = 32;
  return c;
}

Case affine_grid(Random& r, pfrt_dtype dtype, int64_t size) {
  const size_t rank = static_cast<size_t>(r.from_to(2, 3));
  const auto n = static_cast<int64_t>(rank);
  const bool corners = r.once_in(2);
  const Dims spatial = r.dims_without_0(rank, size / 3);
  const int64_t batch = r.from_to(1, 3);
  const Data theta = r.data(dtype, {batch, n, n + 1}, -1, 1);
  Dims dims{batch}, asked{batch, 1};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  asked.insert(asked.end(), spatial.begin(), spatial.end());
  dims.push_back(n);
  Values y;
  for_each_index(dims, [&](const Dims& at) {
    double sum = theta.values[position({at[0], at.back(), n}, theta.dims)];
    for (int64_t k = 0; k < n; ++k) {  // x is the last spatial dimension
      const auto d = static_cast<size_t>(n - 1 - k);
      const double i = static_cast<double>(at[d + 1]), length = static_cast<double>(spatial[d]);
      const double place =
          corners ? (spatial[d] > 1 ? -1 + 2 * i / (length - 1) : 0) : -1 + (2 * i + 1) / length;
      sum += theta.values[position({at[0], at.back(), k}, theta.dims)] * place;
    }
    y.push_back(sum);
  });
  Case c;
  c.inputs = {theta, integers({n + 2}, asked)};
  c.outputs = {expected(dtype, dims, y)};
  c.attrs = {{"align_corners", int64_t{corners}}};
  c.relative = 4;
  c.absolute = 8 * step_error(dtype);
  return c;
}

// Weights of the four pixels around a place that is |f| beyond the second of them.
std::array<double, 4> cubic(double f) {
  constexpr double a = -0.75;
  const auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(1 + f), near(f), near(1 - f), far(2 - f)};
}

struct Sampling {
  std::string mode, padding;
  bool corners;

  double mirrored(double x, int64_t length) const {
    const double low = corners ? 0 : -0.5;
    const double high = static_cast<double>(length) - (corners ? 1 : 0.5);
    if (high <= low) return 0;
    while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
    return x;
  }
  // Returns the pixel that stands for |i|, or -1 where there is none.
  int64_t pixel(int64_t i, int64_t length) const {
    if (i >= 0 && i < length) return i;
    if (padding == "zeros") return -1;
    if (padding == "reflection") i = static_cast<int64_t>(mirrored(static_cast<double>(i), length));
    return std::clamp<int64_t>(i, 0, length - 1);
  }
  // Returns the pixels of place |g| in [-1, 1], and their weights.
  std::vector<std::pair<int64_t, double>> taps(double g, int64_t length) const {
    const double n = static_cast<double>(length);
    double x = corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
    if (mode == "nearest") x = std::nearbyint(x);
    // A place in the outer half of a border pixel stays, as in the standard's reference. With cubic
    // all places stay and only their pixels are moved, as in PyTorch.
    const double edge = corners ? 0 : 0.5;
    if (padding == "border" && mode != "cubic" && (x < -edge || x > n - 1 + edge))
      x = std::clamp(x, 0.0, n - 1);
    if (padding == "reflection") x = mirrored(x, length);
    const auto below = static_cast<int64_t>(std::floor(x));
    const double f = x - std::floor(x);
    if (mode == "nearest") return {{pixel(below, length), 1}};
    if (mode == "linear") return {{pixel(below, length), 1 - f}, {pixel(below + 1, length), f}};
    std::vector<std::pair<int64_t, double>> out;
    for (int64_t k = 0; k < 4; ++k)
      out.emplace_back(pixel(below - 1 + k, length), cubic(f)[static_cast<size_t>(k)]);
    return out;
  }
};

Case grid_sample(Random& r, pfrt_dtype dtype, int64_t size) {
  const char* const modes[] = {"nearest", "linear", "cubic"};
  const char* const paddings[] = {"zeros", "border", "reflection"};
  const Sampling s{modes[is_float(dtype) ? r.below(3) : 0], paddings[r.below(3)], r.once_in(2)};
  const size_t rank = s.mode == "cubic" ? 2 : static_cast<size_t>(r.from_to(2, 3));
  const int64_t batch = r.from_to(1, 2), channels = r.from_to(1, 3);
  Dims in{batch, channels}, grid_dims{batch}, out{batch, channels};
  for (size_t d = 0; d < rank; ++d) {
    in.push_back(r.from_to(2, 6));
    out.push_back(r.from_to(1, size >= kLarge ? 30 : 5));
    grid_dims.push_back(out.back());
  }
  grid_dims.push_back(static_cast<int64_t>(rank));
  const Data x = r.data(dtype, in);
  Data grid = r.data(PFRT_DTYPE_FLOAT32, grid_dims, -1.4, 1.4);
  // No place falls on the border of two pixels, where rounding would decide.
  for (double& g : grid.values) g = (std::floor(g * 64) + 0.37) / 64;
  grid.values = rounded(PFRT_DTYPE_FLOAT32, grid.values);
  Values y;
  for_each_index(out, [&](const Dims& at) {
    std::vector<std::vector<std::pair<int64_t, double>>> along;
    for (size_t d = 0; d < rank; ++d) {
      Dims place{at[0]};
      place.insert(place.end(), at.begin() + 2, at.end());
      place.push_back(static_cast<int64_t>(rank - 1 - d));
      along.push_back(s.taps(grid.values[position(place, grid.dims)], in[d + 2]));
    }
    Dims counts;
    for (const auto& taps : along) counts.push_back(static_cast<int64_t>(taps.size()));
    double sum = 0;
    for_each_index(counts, [&](const Dims& which) {
      Dims from{at[0], at[1]};
      double weight = 1;
      for (size_t d = 0; d < rank; ++d) {
        const auto& [pixel, share] = along[d][static_cast<size_t>(which[d])];
        from.push_back(pixel);
        weight *= share;
      }
      if (*std::min_element(from.begin(), from.end()) >= 0)
        sum += weight * x.values[position(from, x.dims)];
    });
    y.push_back(sum);
  });
  Case c;
  c.inputs = {x, grid};
  c.outputs = {expected(dtype, out, y)};
  c.attrs = {{"mode", s.mode}, {"padding_mode", s.padding}, {"align_corners", int64_t{s.corners}}};
  c.relative = 8;
  c.absolute = s.mode == "nearest" ? 0 : 64 * step_error(dtype);
  return c;
}

// Moves each value of a small image to a place of its own in a larger one.
Case max_unpool(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t kernel = r.from_to(1, 3);
  const Dims in = r.dims_without_0(static_cast<size_t>(r.from_to(3, 4)), size / 9 + 1);
  Dims out = in;
  for (size_t d = 2; d < out.size(); ++d) out[d] *= kernel;
  const Data x = r.data(dtype, in, -9, 9);
  Data indices = r.data(PFRT_DTYPE_INT64, in, 0, 0);
  Values y(static_cast<size_t>(count(out)), 0);
  for_each_index(in, [&](Dims at) {
    const size_t from = position(at, in);
    for (size_t d = 2; d < at.size(); ++d) at[d] = at[d] * kernel + r.below(kernel);
    const size_t to = position(at, out);
    indices.values[from] = static_cast<double>(to);
    y[to] = x.values[from];
  });
  Case c;
  c.inputs = {x, indices};
  c.outputs = {expected(dtype, out, y)};
  const size_t rank = in.size() - 2;
  c.attrs = {{"kernel_shape", Dims(rank, kernel)},
             {"strides", Dims(rank, kernel)},
             {"pads", Dims(2 * rank, 0)}};
  return c;
}

// An axis of a Resize, by the standard's text.
struct Resized {
  std::string mode, coordinates, nearest;
  bool exclude = false;
  double scale = 1, start = 0, end = 1;
  int64_t in = 1, out = 1;

  double place(int64_t i) const {
    const double x = static_cast<double>(i), n = static_cast<double>(in);
    const double m = static_cast<double>(out);
    if (coordinates == "align_corners") return out == 1 ? 0 : x * (n - 1) / (m - 1);
    if (coordinates == "asymmetric") return x / scale;
    if (coordinates == "pytorch_half_pixel" && out == 1) return 0;
    if (coordinates == "tf_crop_and_resize")
      return out == 1 ? (start + end) / 2 * (n - 1)
                      : start * (n - 1) + x * (end - start) * (n - 1) / (m - 1);
    if (coordinates == "half_pixel_symmetric") {
      const double whole = m / (scale * n);
      return n / 2 * (1 - whole) + (x + 0.5) / scale - 0.5;
    }
    return (x + 0.5) / scale - 0.5;
  }
  bool outside(int64_t i) const {
    const double x = place(i);
    return coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(in - 1));
  }
  std::vector<std::pair<int64_t, double>> taps(int64_t i) const {
    const double x = place(i);
    const auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at, 0, in - 1); };
    if (mode == "nearest") {
      const double at = nearest == "floor"                ? std::floor(x)
                        : nearest == "ceil"               ? std::ceil(x)
                        : nearest == "round_prefer_floor" ? std::ceil(x - 0.5)
                                                          : std::floor(x + 0.5);
      return {{clamped(static_cast<int64_t>(at)), 1}};
    }
    const auto below = static_cast<int64_t>(std::floor(x));
    const double f = x - std::floor(x);
    std::vector<std::pair<int64_t, double>> out_taps;
    if (mode == "linear") {
      out_taps = {{below, 1 - f}, {below + 1, f}};
    } else {
      for (int64_t k = 0; k < 4; ++k)
        out_taps.emplace_back(below - 1 + k, cubic(f)[static_cast<size_t>(k)]);
    }
    double sum = 0;
    for (auto& [at, weight] : out_taps) {
      if (exclude && (at < 0 || at >= in)) weight = 0;
      sum += weight;
      at = clamped(at);
    }
    if (exclude)
      for (auto& tap : out_taps) tap.second /= sum;
    return out_taps;
  }
};

Case resize(Random& r, pfrt_dtype dtype, int64_t size) {
  const char* const modes[] = {"nearest", "linear", "cubic"};
  const char* const coordinates[] = {"half_pixel",    "pytorch_half_pixel", "half_pixel_symmetric",
                                     "align_corners", "asymmetric",         "tf_crop_and_resize"};
  const char* const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const double scales[] = {0.5, 0.75, 1, 1, 1.5, 2, 3};
  const size_t rank = static_cast<size_t>(r.from_to(1, 4));
  Resized form;
  form.mode = modes[is_float(dtype) ? r.below(3) : 0];
  form.coordinates = coordinates[r.below(dtype == PFRT_DTYPE_FLOAT8E5M2 ? 5 : 6)];
  form.nearest = roundings[r.below(4)];
  form.exclude = form.mode == "cubic" && r.once_in(3);
  const bool crop = form.coordinates == "tf_crop_and_resize";
  // Scales are given only where rounding the length in * scale down changes nothing.
  const bool by_scales = form.coordinates != "align_corners" &&
                         form.coordinates != "pytorch_half_pixel" && !crop && r.once_in(2);
  const float extrapolation = 2.5f;
  std::vector<Resized> axes(rank, form);
  Dims in, out;
  Values scale_list, roi(2 * rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    Resized& a = axes[d];
    a.in = r.from_to(1, size >= kLarge ? 20 : 5);
    a.out = r.from_to(1, size >= kLarge ? 30 : 7);
    if (d + 1 == rank && !by_scales && r.once_in(2)) {  // long enough for vectors
      a.in = 2 * r.from_to(8, 30);                      // and coordinates are exact
      a.out = r.once_in(2) ? 2 * a.in : a.in / 2;
    }
    if (r.once_in(3)) a.out = a.in;
    a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
    if (by_scales) {
      a.scale = scales[r.below(7)];
      a.out = static_cast<int64_t>(std::floor(a.scale * static_cast<double>(a.in)));
      if (a.out == 0) a.out = 1, a.scale = 1 / static_cast<double>(a.in = 1);
    }
    // The last place of a crop may round to either side of the last pixel.
    a.start = roi[d] = r.once_in(2) ? -0.125 : 0.25;
    a.end = roi[rank + d] = r.once_in(2) ? 1.125 : 0.75;
    in.push_back(a.in);
    out.push_back(a.out);
    scale_list.push_back(a.scale);
  }
  const Data x = r.data(dtype, in);
  Values y;
  for_each_index(out, [&](const Dims& at) {
    std::vector<std::vector<std::pair<int64_t, double>>> along;
    Dims counts;
    bool outside = false;
    for (size_t d = 0; d < rank; ++d) {
      along.push_back(axes[d].taps(at[d]));
      counts.push_back(static_cast<int64_t>(along.back().size()));
      outside = outside || axes[d].outside(at[d]);
    }
    double sum = 0;
    for_each_index(counts, [&](const Dims& which) {
      Dims from;
      double weight = 1;
      for (size_t d = 0; d < rank; ++d) {
        from.push_back(along[d][static_cast<size_t>(which[d])].first);
        weight *= along[d][static_cast<size_t>(which[d])].second;
      }
      sum += weight * x.values[position(from, x.dims)];
    });
    y.push_back(outside ? double{extrapolation} : sum);
  });
  const auto n = static_cast<int64_t>(rank);
  Case c;
  c.inputs = {x, crop ? expected(PFRT_DTYPE_FLOAT32, {2 * n}, roi) : Data{}};
  c.inputs.push_back(by_scales ? expected(PFRT_DTYPE_FLOAT32, {n}, scale_list) : Data{});
  c.inputs.push_back(by_scales ? Data{} : integers({n}, out));
  c.outputs = {expected(dtype, out, y)};
  c.attrs = {{"mode", form.mode},
             {"coordinate_transformation_mode", form.coordinates},
             {"nearest_mode", form.nearest},
             {"exclude_outside", int64_t{form.exclude}},
             {"cubic_coeff_a", -0.75f},
             {"extrapolation_value", extrapolation},
             {"keep_aspect_ratio_policy", std::string("stretch")}};
  c.relative = 16;
  c.absolute = form.mode == "nearest" ? 0 : 256 * step_error(dtype);
  return c;
}

}  // namespace

const Generators& image_cases() {
  static const Generators generators = {
      {"LRN", lrn},
      {"AffineGrid", affine_grid},
      {"GridSample", grid_sample},
      {"MaxUnpool", max_unpool},
      {"Resize", resize},
  };
  return generators;
}

}  // namespace pfrt::test
