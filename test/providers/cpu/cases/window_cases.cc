// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

// ------------------------------------------------------------------ pools
// fn(values in the window, number of its taps on image and padding)
using Pool = std::function<double(const Values&, int64_t)>;

Case pool(Random& r, pfrt_dtype dtype, int64_t size, const Pool& fn, double low = -3,
          double high = 3) {
  const bool large = size >= kLarge;
  const auto rank = static_cast<size_t>(large ? 2 : r.from_to(1, 3));
  Dims x_dims{r.from_to(1, 2), r.from_to(1, 5)}, y_dims = x_dims;
  Dims kernel, strides, dilations, pads(2 * rank);
  const bool ceil = r.once_in(2);
  for (size_t i = 0; i < rank; ++i) {
    kernel.push_back(r.from_to(2, 3));
    strides.push_back(r.from_to(1, large ? 1 : 3));
    dilations.push_back(r.from_to(1, 2));
    pads[i] = r.below(2), pads[i + rank] = r.below(2);
    const int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
    const int64_t most = rank == 3 ? 5 : i + 1 < rank ? 15 : r.once_in(4) ? 70 : 32;
    int64_t image = large ? 65 : extent + r.below(most);
    if (ceil && dilations[i] == 1 && strides[i] > 1 && r.once_in(4)) {  // a window beyond the end
      const int64_t short_of = 1 + r.below(strides[i] - 1);
      image = std::max<int64_t>(1, extent - pads[i] - pads[i + rank] - short_of);
    }
    const int64_t left = image + pads[i] + pads[i + rank] - extent;
    int64_t positions = (left + (ceil ? strides[i] - 1 : 0)) / strides[i] + 1;
    if (ceil && (positions - 1) * strides[i] >= image + pads[i]) --positions;
    x_dims.push_back(image);
    y_dims.push_back(positions);
  }
  const Data x = r.data(dtype, x_dims, low, high);
  Values y;
  for_each_index(y_dims, [&](const Dims& index) {
    Values values;
    int64_t taps = 0;
    for_each_index(kernel, [&](const Dims& tap) {
      Dims pixel = index;
      bool inside = true, padded = true;
      for (size_t i = 0; i < rank; ++i) {
        int64_t& p = pixel[i + 2];
        p = index[i + 2] * strides[i] + tap[i] * dilations[i] - pads[i];
        inside = inside && p >= 0 && p < x_dims[i + 2];
        padded = padded && p < x_dims[i + 2] + pads[i + rank];
      }
      taps += padded;
      if (inside) values.push_back(x.values[position(pixel, x_dims)]);
    });
    y.push_back(fn(values, taps));
  });
  Case c;
  c.inputs = {x};
  c.outputs = {expected(dtype, y_dims, y)};
  c.attrs = {{"kernel_shape", kernel},
             {"strides", strides},
             {"dilations", dilations},
             {"pads", pads},
             {"ceil_mode", int64_t{ceil}}};
  c.relative = is_float(dtype) ? 4 : 0;
  c.absolute = 100 * step_error(dtype);
  return c;
}

double largest(const Values& v) { return greatest(v); }
double sum(const Values& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double norm(const Values& v) {
  double s = 0;
  for (double x : v) s += x * x;
  return std::sqrt(s);
}

Case max_pool(Random& r, pfrt_dtype dtype, int64_t size) {
  Case c;
  bool some_empty = true;
  while (some_empty) {  // windows that see padding alone have no defined greatest element
    some_empty = false;
    c = pool(r, dtype, size, [&](const Values& v, int64_t) {
      some_empty = some_empty || v.empty();
      return v.empty() ? 0 : largest(v);
    });
  }
  return c;
}

Case average_pool(Random& r, pfrt_dtype dtype, int64_t size) {
  const bool with_pads = r.once_in(2);
  Case c = pool(r, dtype, size, [&](const Values& v, int64_t taps) {
    const auto n = with_pads ? static_cast<double>(taps) : static_cast<double>(v.size());
    return v.empty() ? 0 : sum(v) / n;
  });
  c.attrs.push_back({"count_include_pad", int64_t{with_pads}});
  return c;
}

Case lp_pool(Random& r, pfrt_dtype dtype, int64_t size) {
  return pool(r, dtype, size, [](const Values& v, int64_t) { return norm(v); });
}

Generator global(const std::function<double(const Values&)>& fn, double low = -3, double high = 3) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    const Dims dims = r.dims_without_0(static_cast<size_t>(r.from_to(3, 5)), size);
    const Data x = r.data(dtype, dims, low, high);
    const auto planes = static_cast<size_t>(dims[0] * dims[1]);
    const auto each = x.values.size() / planes;
    Dims out(dims.size(), 1);
    out[0] = dims[0], out[1] = dims[1];
    Values y;
    for (size_t p = 0; p < planes; ++p) {
      const auto begin = x.values.begin() + static_cast<int64_t>(p * each);
      y.push_back(fn(Values(begin, begin + static_cast<int64_t>(each))));
    }
    Case c;
    c.inputs = {x};
    c.outputs = {expected(dtype, out, y)};
    c.relative = 4;
    c.absolute = 3 * step_error(dtype) * static_cast<double>(each);
    return c;
  };
}

// Turns a case of sums, |c|, into one of averages in bytes; |counts| are the divisors. Scales are
// powers of two, so the numbers to round are nearly exact.
Case of_bytes(Random& r, pfrt_dtype dtype, Case c, const Values& sums, const Values& counts,
              double x_zero) {
  const pfrt_dtype to = r.once_in(2) ? PFRT_DTYPE_INT8 : PFRT_DTYPE_UINT8;
  const auto one = [](pfrt_dtype type, double value) { return Data{type, {}, {value}}; };
  const double x_scale = std::exp2(static_cast<double>(r.from_to(-4, -2))),
               y_scale = std::exp2(static_cast<double>(r.from_to(-3, 0))),
               y_zero = static_cast<double>(r.from_to(0, 99));
  Values y;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double steps = std::nearbyint(sums[i] * x_scale / y_scale / std::max(counts[i], 1.0));
    y.push_back(std::clamp<double>(steps + y_zero, to == PFRT_DTYPE_INT8 ? -128 : 0,
                                   to == PFRT_DTYPE_INT8 ? 127 : 255));
  }
  c.inputs.insert(c.inputs.end(), {one(PFRT_DTYPE_FLOAT32, x_scale), one(dtype, x_zero),
                                   one(PFRT_DTYPE_FLOAT32, y_scale), one(to, y_zero)});
  c.outputs = {expected(to, Dims(c.outputs[0].dims), std::move(y))};
  c.relative = c.absolute = 0;
  return c;
}

Case byte_average_pool(Random& r, pfrt_dtype dtype, int64_t size) {
  const bool with_pads = r.once_in(2);
  const double zero = static_cast<double>(r.from_to(0, 99));
  Values sums, counts;
  Case c = pool(
      r, dtype, size,
      [&](const Values& v, int64_t taps) {
        sums.push_back(sum(v) - zero * static_cast<double>(v.size()));
        counts.push_back(with_pads ? static_cast<double>(taps) : static_cast<double>(v.size()));
        return 0.0;
      },
      -128, 255);
  c.attrs.push_back({"count_include_pad", int64_t{with_pads}});
  return of_bytes(r, dtype, std::move(c), sums, counts, zero);
}

Case byte_global_average_pool(Random& r, pfrt_dtype dtype, int64_t size) {
  const double zero = static_cast<double>(r.from_to(0, 99));
  Values sums, counts;
  Case c = global(
      [&](const Values& v) {
        const auto n = static_cast<double>(v.size());
        sums.push_back(sum(v) - zero * n);
        counts.push_back(n);
        return 0.0;
      },
      -128, 255)(r, dtype, size);
  return of_bytes(r, dtype, std::move(c), sums, counts, zero);
}

// ------------------------------------------------------------------ normalisations
constexpr double kEpsilon = 0.01f;

// (x - mean) / sqrt(variance + epsilon); the mean is 0 unless |centred|.
void normalise(Values& x, const std::vector<size_t>& at, bool centred) {
  double mean = 0, square = 0;
  for (size_t i : at) mean += centred ? x[i] / static_cast<double>(at.size()) : 0;
  for (size_t i : at) square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(at.size());
  for (size_t i : at) x[i] = (x[i] - mean) / std::sqrt(square + kEpsilon);
}

// Normalises blocks of |each| elements, one after another.
void normalise_blocks(Values& x, size_t each, bool centred) {
  for (size_t first = 0; first < x.size(); first += each) {
    std::vector<size_t> at(each);
    std::iota(at.begin(), at.end(), first);
    normalise(x, at, centred);
  }
}

void set_tolerance(Case& c, pfrt_dtype dtype) {
  c.attrs.push_back({"epsilon", static_cast<float>(kEpsilon)});
  c.relative = 4;
  c.absolute = 4e3 * step_error(dtype);
}

// Multiplies elements by the scale of their channel (dimension 1) and adds its bias.
void scale_channels(Values& y, const Dims& dims, const Data& scale, const Data& bias) {
  for_each_index(dims, [&](const Dims& index) {
    const auto channel = static_cast<size_t>(index[1]);
    double& v = y[position(index, dims)];
    v = v * scale.values[channel] + bias.values[channel];
  });
}

// Uses the given statistics or, in training, those of the batch.
Case batch_norm(Random& r, pfrt_dtype dtype, int64_t size) {
  const bool trains = r.once_in(2);
  const size_t rank = static_cast<size_t>(r.from_to(2, 5));
  const Dims dims = trains ? r.dims_without_0(rank, size) : r.dims(rank, size);
  const Data x = r.data(dtype, dims);
  const Data scale = r.data(dtype, {dims[1]}), bias = r.data(dtype, {dims[1]}),
             mean = r.data(dtype, {dims[1]}), variance = r.data(dtype, {dims[1]}, 0.25, 3);
  Values means = mean.values, variances = variance.values;
  if (trains) {
    const double n = static_cast<double>(count(dims)) / static_cast<double>(dims[1]);
    for (Values* sums : {&means, &variances}) {
      std::fill(sums->begin(), sums->end(), 0);
      for_each_index(dims, [&](const Dims& index) {
        const auto channel = static_cast<size_t>(index[1]);
        const double v = x.values[position(index, dims)];
        (*sums)[channel] += (sums == &means ? v : (v - means[channel]) * (v - means[channel])) / n;
      });
    }
  }
  Values y = x.values;
  for_each_index(dims, [&](const Dims& index) {
    const auto channel = static_cast<size_t>(index[1]);
    double& v = y[position(index, dims)];
    v = (v - means[channel]) / std::sqrt(variances[channel] + kEpsilon);
  });
  scale_channels(y, dims, scale, bias);
  Case c;
  c.inputs = {x, scale, bias, mean, variance};
  c.outputs = {expected(dtype, dims, y)};
  set_tolerance(c, dtype);
  if (!trains) return c;
  c.attrs.push_back({"training_mode", int64_t{1}});
  c.attrs.push_back({"momentum", 0.75f});
  Values running[2] = {mean.values, variance.values};
  for (size_t i = 0; i < means.size(); ++i) {
    running[0][i] = running[0][i] * 0.75 + means[i] * 0.25;
    running[1][i] = running[1][i] * 0.75 + variances[i] * 0.25;
  }
  for (const Values& v : running) c.outputs.push_back(expected(dtype, {dims[1]}, v));
  if (r.once_in(2))
    for (const Values& v : {means, variances}) c.outputs.push_back(expected(dtype, {dims[1]}, v));
  return c;
}

Case channel_norm(Random& r, pfrt_dtype dtype, int64_t size, bool grouped) {
  Dims dims = r.dims_without_0(static_cast<size_t>(r.from_to(3, 5)), size);
  const int64_t groups = grouped ? r.from_to(1, 3) : dims[1];
  if (grouped) dims[1] = groups * r.from_to(1, 3);
  const Data x = r.data(dtype, dims);
  const Data scale = r.data(dtype, {dims[1]}), bias = r.data(dtype, {dims[1]});
  Values y = x.values;
  normalise_blocks(y, y.size() / static_cast<size_t>(dims[0] * groups), true);
  scale_channels(y, dims, scale, bias);
  Case c;
  c.inputs = {x, scale, bias};
  c.outputs = {expected(dtype, dims, y)};
  if (grouped) c.attrs.push_back({"num_groups", groups});
  set_tolerance(c, dtype);
  return c;
}

Case row_norm(Random& r, pfrt_dtype dtype, int64_t size, bool centred) {
  const Dims dims = r.dims_without_0(static_cast<size_t>(r.from_to(1, 4)), size);
  const int64_t axis = r.below(static_cast<int64_t>(dims.size()));
  const Dims row(dims.begin() + axis, dims.end());
  // Scale and bias belong to a row, or are broadcast along any dimensions.
  const bool any = r.once_in(2);
  const Data x = r.data(dtype, dims), scale = r.data(dtype, any ? r.broadcast_to(dims) : row);
  const Data bias =
      centred && r.once_in(2) ? r.data(dtype, any ? r.broadcast_to(dims) : row) : Data{};
  Values y = x.values;
  normalise_blocks(y, static_cast<size_t>(count(row)), centred);
  for_each_index(dims, [&](const Dims& at) {
    double& v = y[position(at, dims)];
    v *= scale.values[position(at, scale.dims)];
    if (bias.dtype != 0) v += bias.values[position(at, bias.dims)];
  });
  Case c;
  c.inputs = {x, scale};
  if (bias.dtype != 0) c.inputs.push_back(bias);
  c.outputs = {expected(dtype, dims, y)};
  c.attrs = {{"axis", axis}};
  set_tolerance(c, dtype);
  return c;
}

Case lp_norm(Random& r, pfrt_dtype dtype, int64_t size) {
  const Dims dims = r.dims_without_0(static_cast<size_t>(r.from_to(1, 4)), size);
  const auto axis = static_cast<size_t>(r.below(static_cast<int64_t>(dims.size())));
  const int64_t p = r.from_to(1, 2);
  const Data x = r.data(dtype, dims, 1, 3);
  Dims kept = dims;
  kept[axis] = 1;
  Values norms(static_cast<size_t>(count(kept)), 0), y = x.values;
  for_each_index(dims, [&](const Dims& index) {
    const double v = x.values[position(index, dims)];
    norms[position(index, kept)] += p == 1 ? std::fabs(v) : v * v;
  });
  for_each_index(dims, [&](const Dims& index) {
    const double n = norms[position(index, kept)];
    y[position(index, dims)] /= p == 1 ? n : std::sqrt(n);
  });
  Case c;
  c.inputs = {x};
  c.outputs = {expected(dtype, dims, y)};
  c.attrs = {{"axis", static_cast<int64_t>(axis)}, {"p", p}};
  c.relative = 64;
  return c;
}

Case mean_variance_norm(Random& r, pfrt_dtype dtype, int64_t size) {
  Dims dims = r.dims_without_0(4, size);
  dims[0] += 7;  // enough elements that the variance is not small
  const Data x = r.data(dtype, dims);
  Dims kept{1, dims[1], 1, 1};
  std::vector<std::vector<size_t>> at(static_cast<size_t>(dims[1]));
  for_each_index(
      dims, [&](const Dims& index) { at[position(index, kept)].push_back(position(index, dims)); });
  Values y = x.values;
  for (const std::vector<size_t>& channel : at) {
    double mean = 0, square = 0;
    const auto n = static_cast<double>(channel.size());
    for (size_t i : channel) mean += y[i] / n;
    for (size_t i : channel) square += (y[i] - mean) * (y[i] - mean) / n;
    for (size_t i : channel) y[i] = (y[i] - mean) / (std::sqrt(square) + 1e-9);
  }
  Case c;
  c.inputs = {x};
  c.outputs = {expected(dtype, dims, y)};
  c.attrs = {{"axes", Dims{0, 2, 3}}};
  c.relative = 4;
  c.absolute = 4e3 * step_error(dtype);
  return c;
}

}  // namespace

const Generators& window_cases() {
  static const Generators generators = {
      {"MaxPool", max_pool},
      {"AveragePool", average_pool},
      {"LpPool", lp_pool},
      {"GlobalMaxPool", global(largest)},
      {"GlobalAveragePool",
       global([](const Values& v) { return sum(v) / static_cast<double>(v.size()); })},
      {"GlobalLpPool", global(norm)},
      {"BatchNormalization", batch_norm},
      {"InstanceNormalization",
       [](Random& r, pfrt_dtype d, int64_t size) { return channel_norm(r, d, size, false); }},
      {"GroupNormalization",
       [](Random& r, pfrt_dtype d, int64_t size) { return channel_norm(r, d, size, true); }},
      {"LayerNormalization",
       [](Random& r, pfrt_dtype d, int64_t size) { return row_norm(r, d, size, true); }},
      {"RMSNormalization",
       [](Random& r, pfrt_dtype d, int64_t size) { return row_norm(r, d, size, false); }},
      {"LpNormalization", lp_norm},
      {"MeanVarianceNormalization", mean_variance_norm},
  };
  return generators;
}

const Generators& byte_pool_cases() {
  static const Generators generators = {
      {"QLinearAveragePool", byte_average_pool},
      {"QLinearGlobalAveragePool", byte_global_average_pool},
  };
  return generators;
}

}  // namespace pfrt::test
