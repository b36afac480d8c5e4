// SPDX-License-Identifier: Apache-2.0
//
// Regions of interest, moving taps, columns and determinants pixel by pixel; losses label by label.
#include <algorithm>
#include <cmath>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

// ------------------------------------------------------------------ losses

Generator loss(bool softmax) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    Dims dims = r.dims_without_0(static_cast<size_t>(r.from_to(2, 5)), size);
    const int64_t classes = dims[1];
    Dims label_dims = dims;
    label_dims.erase(label_dims.begin() + 1);
    const Data x = r.data(dtype, dims), weights = r.data(dtype, {classes}, 0.25, 2);
    const bool weighted = r.once_in(2), ignores = r.once_in(2), logs = softmax && r.once_in(2);
    const int64_t ignored = r.once_in(2) ? -1 : r.below(classes);
    Dims labels;
    for (int64_t i = 0; i < count(label_dims); ++i)
      labels.push_back(ignores && r.once_in(3) ? ignored : r.below(classes));
    if (ignores) labels[0] = (ignored + 1) % classes;  // so that a mean exists
    if (ignores && classes == 1) labels[0] = 0;
    const std::string reductions[] = {"none", "sum", "mean"}, reduction = reductions[r.below(3)];
    Values log_prob = x.values, y;
    if (softmax)
      for_each_index(label_dims, [&](const Dims& at) {
        Dims full = at;
        full.insert(full.begin() + 1, 0);
        double sum = 0;
        for (full[1] = 0; full[1] < classes; ++full[1])
          sum += std::exp(x.values[position(full, dims)]);
        for (full[1] = 0; full[1] < classes; ++full[1])
          log_prob[position(full, dims)] -= std::log(sum);
      });
    double total = 0, weight_total = 0;
    for_each_index(label_dims, [&](const Dims& at) {
      const int64_t label = labels[position(at, label_dims)];
      Dims full = at;
      full.insert(full.begin() + 1, label);
      double weight = weighted && label >= 0 ? weights.values[static_cast<size_t>(label)] : 1;
      if (ignores && label == ignored) weight = 0;
      y.push_back(weight == 0 ? 0 : -log_prob[position(full, dims)] * weight);
      total += y.back();
      weight_total += weight;
    });
    Case c;
    c.inputs = {x, integers(label_dims, labels, false), weighted ? weights : Data{}};
    if (r.once_in(2)) c.inputs[1].dtype = PFRT_DTYPE_INT32;
    if (reduction == "none") {
      c.outputs = {expected(dtype, label_dims, y)};
    } else {
      c.outputs = {expected(dtype, {}, {reduction == "sum" ? total : total / weight_total})};
    }
    if (logs) c.outputs.push_back(expected(dtype, dims, log_prob));
    c.attrs = {{"reduction", reduction}};
    if (ignores) c.attrs.push_back({"ignore_index", ignored});
    c.relative = 4;
    c.absolute = 1e-11;
    return c;
  };
}

// ------------------------------------------------------------------ regions

// Interpolates linearly between pixels of a plane; pixels outside are zero.
double bilinear(const double* plane, int64_t h, int64_t w, double y, double x) {
  double sum = 0;
  for (int64_t i = 0; i < h; ++i)
    for (int64_t j = 0; j < w; ++j)
      sum += plane[i * w + j] * std::max(0.0, 1 - std::fabs(y - static_cast<double>(i))) *
             std::max(0.0, 1 - std::fabs(x - static_cast<double>(j)));
  return sum;
}

// The greatest of the four weighted pixels about a place that bilinear adds up. Beyond the last row
// or column there is the last one, without weight.
double most_weighted(const double* plane, int64_t h, int64_t w, double y, double x) {
  const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  const double v = y - static_cast<double>(top), u = x - static_cast<double>(left);
  double most = -INFINITY;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 2; ++j)
      most = std::max(most, plane[std::min(top + i, h - 1) * w + std::min(left + j, w - 1)] *
                                (i == 0 ? 1 - v : v) * (j == 0 ? 1 - u : u));
  return most;
}

Case roi_align(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t batch = r.from_to(1, 3), channels = size > 2000 ? 40 : r.from_to(1, 4),
                h = r.from_to(2, 9), w = r.from_to(2, size > 2000 ? 40 : 9);
  const int64_t regions = r.from_to(0, 4), rows = r.from_to(1, 4), columns = r.from_to(1, 9),
                sampling = r.below(4);
  const bool half = r.once_in(2), maximum = r.once_in(3);
  const Data x = r.data(dtype, {batch, channels, h, w});
  Data rois = r.data(dtype, {regions, 4}, 0, 4);
  const double wider = r.once_in(3) ? static_cast<double>(w) + 0.3 : 2;
  for (size_t i = 0; i < rois.values.size(); i += 4) {
    rois.values[i + 2] = rois.values[i] + wider;
    rois.values[i + 3] = rois.values[i + 1] + 2;
  }
  rois.values = rounded(dtype, rois.values);
  Dims images;
  for (int64_t i = 0; i < regions; ++i) images.push_back(r.below(batch));
  Values y;
  const float scale = 0.75f;
  for (int64_t n = 0; n < regions; ++n) {
    const double* roi = rois.values.data() + n * 4;
    const double shift = half ? 0.5 : 0;
    const double top = roi[1] * 0.75 - shift, left = roi[0] * 0.75 - shift;
    double tall = (roi[3] - roi[1]) * 0.75, wide = (roi[2] - roi[0]) * 0.75;
    if (!half) {
      tall = std::max(tall, 1.0);
      wide = std::max(wide, 1.0);
    }
    const double bin_h = tall / static_cast<double>(rows),
                 bin_w = wide / static_cast<double>(columns);
    const int64_t down = sampling ? sampling : static_cast<int64_t>(std::ceil(bin_h)),
                  across = sampling ? sampling : static_cast<int64_t>(std::ceil(bin_w));
    for (int64_t k = 0; k < channels; ++k)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          double sum = maximum && down * across > 0 ? -INFINITY : 0;
          for (int64_t a = 0; a < down; ++a)
            for (int64_t b = 0; b < across; ++b) {
              const double v = top +
                               bin_h * (static_cast<double>(i) +
                                        (static_cast<double>(a) + 0.5) / static_cast<double>(down)),
                           u = left +
                               bin_w * (static_cast<double>(j) + (static_cast<double>(b) + 0.5) /
                                                                     static_cast<double>(across));
              const double most_v = static_cast<double>(h), most_u = static_cast<double>(w);
              if (v < -1 || v > most_v || u < -1 || u > most_u) {
                if (maximum) sum = std::max(sum, 0.0);
                continue;
              }
              const double* const plane =
                  x.values.data() + (images[static_cast<size_t>(n)] * channels + k) * h * w;
              const double down_to = std::clamp(v, 0.0, most_v - 1),
                           across_to = std::clamp(u, 0.0, most_u - 1);
              if (!maximum)
                sum += bilinear(plane, h, w, down_to, across_to);
              else
                sum = std::max(sum, most_weighted(plane, h, w, down_to, across_to));
            }
          if (!maximum) sum /= static_cast<double>(std::max<int64_t>(1, down * across));
          y.push_back(sum);
        }
  }
  Case c;
  c.inputs = {x, rois, integers({regions}, images, false)};
  c.outputs = {expected(dtype, {regions, channels, rows, columns}, y)};
  c.attrs = {
      {"output_height", rows},
      {"output_width", columns},
      {"sampling_ratio", sampling},
      {"spatial_scale", scale},
      {"mode", std::string(maximum ? "max" : "avg")},
      {"coordinate_transformation_mode", std::string(half ? "half_pixel" : "output_half_pixel")}};
  c.relative = 8;
  c.absolute = std::max(1e-12, 64 * step_error(dtype));
  return c;
}

Case max_roi_pool(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t batch = r.from_to(1, 3), channels = size > 2000 ? 40 : r.from_to(1, 4),
                h = r.from_to(2, 9), w = r.from_to(2, 9);
  const int64_t regions = r.from_to(0, 4), rows = r.from_to(1, 4), columns = r.from_to(1, 4);
  const Data x = r.data(dtype, {batch, channels, h, w});
  Data rois{dtype, {regions, 5}, {}};
  Values y;
  for (int64_t n = 0; n < regions; ++n) {
    const int64_t image = r.below(batch), left = r.from_to(-2, w), top = r.from_to(-2, h);
    const int64_t right = left + r.from_to(0, 8), bottom = top + r.from_to(0, 8);
    for (int64_t v : {image, left, top, right, bottom})
      rois.values.push_back(static_cast<double>(v));
    const int64_t tall = bottom - top + 1, wide = right - left + 1;
    for (int64_t k = 0; k < channels; ++k)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          bool any = false;
          double most = 0;
          for (int64_t v = std::max<int64_t>(0, top + i * tall / rows);
               v < std::min(h, top + ((i + 1) * tall + rows - 1) / rows); ++v)
            for (int64_t u = std::max<int64_t>(0, left + j * wide / columns);
                 u < std::min(w, left + ((j + 1) * wide + columns - 1) / columns); ++u) {
              const double p =
                  x.values[static_cast<size_t>(((image * channels + k) * h + v) * w + u)];
              most = any ? std::max(most, p) : p;
              any = true;
            }
          y.push_back(most);
        }
  }
  Case c;
  c.inputs = {x, rois};
  c.outputs = {expected(dtype, {regions, channels, rows, columns}, y)};
  c.attrs = {{"pooled_shape", Dims{rows, columns}}};
  return c;
}

// ------------------------------------------------------------------ convolution

Case deform(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t groups = r.from_to(1, 2), offset_groups = r.from_to(1, 3), kh = r.from_to(1, 3),
                kw = r.from_to(1, 3);
  const int64_t channels = groups * offset_groups * r.from_to(1, 2),
                outputs = groups * r.from_to(1, 3);
  const int64_t extra = size > 2000 ? 10 : 0;
  const int64_t batch = r.from_to(1, 2), h = r.from_to(5, 8) + extra, w = r.from_to(5, 8) + extra;
  const int64_t stride = r.from_to(1, 2), dilation = r.from_to(1, 2), pad = r.from_to(0, 2);
  const int64_t oh = (h + 2 * pad - (kh - 1) * dilation - 1) / stride + 1,
                ow = (w + 2 * pad - (kw - 1) * dilation - 1) / stride + 1;
  const bool biased = r.once_in(2), masked = r.once_in(2);
  const Data x = r.data(dtype, {batch, channels, h, w}),
             weights = r.data(dtype, {outputs, channels / groups, kh, kw});
  const Data moved = r.data(dtype, {batch, offset_groups * kh * kw * 2, oh, ow}),
             bias = r.data(dtype, {outputs}),
             mask = r.data(dtype, {batch, offset_groups * kh * kw, oh, ow}, 0, 1);
  Values y;
  const auto d = [](int64_t v) { return static_cast<double>(v); };
  for_each_index({batch, outputs, oh, ow}, [&](const Dims& at) {
    double sum = biased ? bias.values[static_cast<size_t>(at[1])] : 0;
    const int64_t group = at[1] / (outputs / groups);
    for (int64_t c = 0; c < channels / groups; ++c)
      for (int64_t i = 0; i < kh; ++i)
        for (int64_t j = 0; j < kw; ++j) {
          const int64_t channel = group * (channels / groups) + c,
                        og = channel / (channels / offset_groups);
          const int64_t tap = (og * kh + i) * kw + j;
          const double v = d(at[2] * stride - pad + i * dilation) +
                           moved.values[position({at[0], 2 * tap, at[2], at[3]}, moved.dims)],
                       u = d(at[3] * stride - pad + j * dilation) +
                           moved.values[position({at[0], 2 * tap + 1, at[2], at[3]}, moved.dims)];
          sum += weights.values[position({at[1], c, i, j}, weights.dims)] *
                 (masked ? mask.values[position({at[0], tap, at[2], at[3]}, mask.dims)] : 1) *
                 bilinear(x.values.data() + (at[0] * channels + channel) * h * w, h, w, v, u);
        }
    y.push_back(sum);
  });
  Case c;
  c.inputs = {x, weights, moved, biased ? bias : Data{}, masked ? mask : Data{}};
  c.outputs = {expected(dtype, {batch, outputs, oh, ow}, y)};
  c.attrs = {{"group", groups},
             {"offset_group", offset_groups},
             {"strides", Dims{stride, stride}},
             {"dilations", Dims{dilation, dilation}},
             {"pads", Dims{pad, pad, pad, pad}}};
  c.relative = 32;
  c.absolute = 400 * step_error(dtype);
  return c;
}

Case col2im(Random& r, pfrt_dtype dtype, int64_t size) {
  const size_t rank = static_cast<size_t>(r.from_to(1, 3));
  const int64_t batch = r.from_to(1, 2), channels = r.from_to(1, size > 2000 ? 20 : 3);
  Dims image, block, strides, dilations, pads(2 * rank), grid;
  for (size_t k = 0; k < rank; ++k) {
    image.push_back(r.from_to(5, 8));
    block.push_back(r.from_to(1, 3));
    strides.push_back(r.from_to(1, 3));
    dilations.push_back(r.from_to(1, 2));
    pads[k] = r.from_to(0, 1);
    pads[k + rank] = r.from_to(0, 1);
    grid.push_back(
        (image[k] + pads[k] + pads[k + rank] - dilations[k] * (block[k] - 1) - 1) / strides[k] + 1);
  }
  const int64_t taps = count(block);
  const Data x = r.data(dtype, {batch, channels * taps, count(grid)}, 0, 3);
  Dims out{batch, channels};
  out.insert(out.end(), image.begin(), image.end());
  Values y(static_cast<size_t>(count(out)), 0);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t k = 0; k < channels; ++k)
      for_each_index(block, [&](const Dims& tap) {
        for_each_index(grid, [&](const Dims& at) {
          Dims to{n, k};
          for (size_t i = 0; i < rank; ++i) {
            to.push_back(at[i] * strides[i] + tap[i] * dilations[i] - pads[i]);
            if (to.back() < 0 || to.back() >= image[i]) return;
          }
          y[position(to, out)] +=
              x.values[position({n, k * taps + static_cast<int64_t>(position(tap, block)),
                                 static_cast<int64_t>(position(at, grid))},
                                x.dims)];
        });
      });
  Case c;
  const auto n = static_cast<int64_t>(rank);
  c.inputs = {x, integers({n}, image, r.once_in(2)), integers({n}, block, r.once_in(2))};
  c.outputs = {expected(dtype, out, y)};
  c.attrs = {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  if (is_float(dtype)) c.relative = 32;
  return c;
}

// Computes a determinant by cofactors.
double cofactors(const Values& a, size_t n) {
  if (n == 0) return 1;
  double sum = 0;
  for (size_t k = 0; k < n; ++k) {
    Values minor;
    for (size_t i = 1; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (j != k) minor.push_back(a[i * n + j]);
    sum += (k % 2 ? -1 : 1) * a[k] * cofactors(minor, n - 1);
  }
  return sum;
}

Case det(Random& r, pfrt_dtype dtype, int64_t size) {
  const auto n = static_cast<size_t>(r.from_to(0, 5));
  Dims dims = r.dims(static_cast<size_t>(r.below(3)), std::max<int64_t>(size / 25, 1)), out = dims;
  dims.insert(dims.end(), 2, static_cast<int64_t>(n));
  const Data x = r.data(dtype, dims);
  Values y;
  for (int64_t i = 0; i < count(out); ++i) {
    const auto first = x.values.begin() + i * static_cast<int64_t>(n * n);
    y.push_back(cofactors(Values(first, first + static_cast<int64_t>(n * n)), n));
  }
  Case c;
  c.inputs = {x};
  c.outputs = {expected(dtype, out, y)};
  c.relative = 2;
  c.absolute = 1e-11;
  return c;
}

}  // namespace

const Generators& vision_cases() {
  static const Generators generators = {
      {"NegativeLogLikelihoodLoss", loss(false)},
      {"SoftmaxCrossEntropyLoss", loss(true)},
      {"RoiAlign", roi_align},
      {"MaxRoiPool", max_roi_pool},
      {"DeformConv", deform},
      {"Col2Im", col2im},
      {"Det", det},
  };
  return generators;
}

}  // namespace pfrt::test
