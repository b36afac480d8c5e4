// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

// Sets the tolerance for sums of |terms| products of numbers up to 9.
void set_tolerance(Case& c, pfrt_dtype dtype, int64_t terms) {
  c.relative = is_float(dtype) ? 2 : 0;
  c.absolute = 100 * step_error(dtype) * static_cast<double>(terms);
}

int64_t of(Random& r, int64_t low, int64_t high) {
  static constexpr int64_t kOdd[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 64, 65, 97, 129};
  int64_t out;
  do out = kOdd[r.below(std::size(kOdd))];
  while (out < low || out > high);
  return out;
}

// Multiplies matrices with broadcast leading dimensions; a vector is a row on the left and a column
// on the right.
Values matmul(const Data& a, const Data& b, double zero_a, double zero_b, const Dims& batch,
              int64_t m, int64_t k, int64_t n) {
  const Dims a_batch(a.dims.begin(),
                     a.dims.end() - std::min<int64_t>(2, static_cast<int64_t>(a.dims.size())));
  const Dims b_batch(b.dims.begin(),
                     b.dims.end() - std::min<int64_t>(2, static_cast<int64_t>(b.dims.size())));
  Values y;
  for_each_index(batch, [&](const Dims& index) {
    const double* p = a.values.data() + static_cast<int64_t>(position(index, a_batch)) * m * k;
    const double* q = b.values.data() + static_cast<int64_t>(position(index, b_batch)) * k * n;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double s = 0;
        for (int64_t l = 0; l < k; ++l) s += (p[i * k + l] - zero_a) * (q[l * n + j] - zero_b);
        y.push_back(s);
      }
  });
  return y;
}

Case matmul_of(Random& r, pfrt_dtype a_type, pfrt_dtype b_type, pfrt_dtype y_type, int64_t size,
               double zero_a, double zero_b, double low = -3, double high = 3) {
  const bool large = size >= kLarge;
  const bool row = !large && r.once_in(8), column = !large && r.once_in(8);
  const int64_t most = large ? 129 : size > 1000 ? 65 : 33;
  const int64_t m = row ? 1 : of(r, large ? 64 : 1, most),
                n = column ? 1 : of(r, large ? 64 : 1, most);
  const int64_t k = !large && r.once_in(15) ? 0 : of(r, 1, most);
  Dims batch, a_dims, b_dims;
  for (int64_t i = r.below(3); i > 0; --i) batch.push_back(r.from_to(1, 3));
  for (int64_t d : batch) {
    const bool a_one = r.once_in(4), b_one = !a_one && r.once_in(4);
    if (!row) a_dims.push_back(a_one && !column ? 1 : d);
    if (!column) b_dims.push_back(b_one && !row ? 1 : d);
  }
  if (row && column) batch.clear();
  Dims y_dims = batch;
  if (!row) a_dims.push_back(m), y_dims.push_back(m);
  a_dims.push_back(k);
  b_dims.push_back(k);
  if (!column) b_dims.push_back(n), y_dims.push_back(n);
  Case c;
  const Data a = r.data(a_type, a_dims, low, high);
  Data b = r.data(b_type, b_dims, low, high);
  b.constant = r.once_in(2);
  c.outputs = {expected(y_type, y_dims, matmul(a, b, zero_a, zero_b, batch, m, k, n))};
  c.inputs = {a, b};
  set_tolerance(c, y_type, k);
  return c;
}

Case matmul_case(Random& r, pfrt_dtype dtype, int64_t size) {
  return matmul_of(r, dtype, dtype, dtype, size, 0, 0);
}

Case matmul_integer_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const pfrt_dtype other = r.once_in(2) ? PFRT_DTYPE_INT8 : PFRT_DTYPE_UINT8;
  const bool whole = r.once_in(2);  // range; what is beyond int8's wraps around
  const double zero_a = r.once_in(2) ? (whole ? 127 : 3) : 0, zero_b = r.once_in(2) ? 2 : 0;
  Case c = matmul_of(r, dtype, other, PFRT_DTYPE_INT32, size, zero_a, zero_b, whole ? -128 : -3,
                     whole ? 255 : 3);
  if (zero_a != 0 || zero_b != 0)
    c.inputs.push_back(zero_a != 0 ? Data{dtype, {}, {zero_a}, true} : Data{});
  if (zero_b != 0) c.inputs.push_back({other, {}, {zero_b}, true});
  return c;
}

Case gemm_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const bool large = size >= kLarge;
  const int64_t most = large ? 129 : size > 1000 ? 65 : 33;
  const int64_t m = of(r, large ? 64 : 1, most), n = of(r, large ? 64 : 1, most);
  const int64_t k = of(r, 1, most);
  const bool t_a = r.once_in(2), t_b = r.once_in(2), has_c = r.once_in(2);
  const double alpha = is_float(dtype) ? 0.5 : 1, beta = is_float(dtype) ? 2 : 1;
  const Data a = r.data(dtype, t_a ? Dims{k, m} : Dims{m, k});
  Data b = r.data(dtype, t_b ? Dims{n, k} : Dims{k, n});
  b.constant = r.once_in(2);
  const Data added = has_c ? r.data(dtype, r.broadcast_to({m, n})) : Data{};
  Values y;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double s = 0;
      for (int64_t l = 0; l < k; ++l)
        s += a.values[static_cast<size_t>(t_a ? l * m + i : i * k + l)] *
             b.values[static_cast<size_t>(t_b ? j * k + l : l * n + j)];
      y.push_back(alpha * s + (has_c ? beta * added.values[position({i, j}, added.dims)] : 0));
    }
  Case c;
  c.inputs = {a, b, added};
  c.outputs = {expected(dtype, {m, n}, y)};
  c.attrs = {{"transA", int64_t{t_a}},
             {"transB", int64_t{t_b}},
             {"alpha", static_cast<float>(alpha)},
             {"beta", static_cast<float>(beta)}};
  set_tolerance(c, dtype, k + 2);
  return c;
}

// The form of a convolution: images of |image|, |group| groups of channels, windows.
struct Form {
  int64_t batch, group, in, out;                        // channels in each group
  Dims image, kernel, strides, dilations, pads, extra;  // extra: output_padding
  size_t rank() const { return image.size(); }
};

Form random_form(Random& r, int64_t size, bool volumes = false) {
  Form f;
  const bool large = size >= kLarge, deep = r.once_in(2), depthwise = !deep && r.once_in(2);
  f.batch = r.from_to(1, 2);
  f.group = depthwise ? of(r, 2, 9) : r.from_to(1, 3);
  f.in = depthwise ? 1 : r.from_to(1, 5);
  f.out = depthwise ? r.from_to(1, 2) : r.from_to(1, 9);
  if (deep) {
    f.batch = 1;
    f.group = r.from_to(1, 2);
    f.in = of(r, 20, 65);
    f.out = of(r, 12, 33);
  }
  const bool few = !deep && !depthwise && !large && r.below(4) > 0;  // channels of several groups
  const bool pointwise = !depthwise && !few && !large && r.once_in(3);
  const auto rank = static_cast<size_t>(large || deep || few || pointwise ? 2 : r.from_to(1, 3));
  for (size_t i = 0; i < 2 * rank; ++i) f.pads.push_back(r.below(3));
  for (size_t i = 0; i < rank; ++i) {
    f.kernel.push_back(r.from_to(1, 3));
    f.strides.push_back(r.from_to(1, large ? 1 : 3));
    f.dilations.push_back(r.from_to(1, 2));
    f.extra.push_back(r.below(f.strides[i]));
    const int64_t least = (f.kernel[i] - 1) * f.dilations[i] + 1;
    f.image.push_back(large && !deep ? 65
                                     : std::max(least, of(r, 1,
                                                          deep && !large ? 7
                                                          : rank == 3    ? 9
                                                                         : 17)));
  }
  if (few) {
    f.group = r.from_to(2, 4);
    f.in = r.from_to(2, 5);
    f.strides[1] = std::min<int64_t>(f.strides[1], 2);
  }
  if (pointwise) {
    f.kernel = f.strides = f.dilations = {1, 1};
    f.extra = {0, 0};
    f.pads = {0, 0, 0, 0};
    if (r.once_in(2)) f.in = of(r, 1, 170);
    f.image = r.once_in(4) ? Dims{32, 32} : Dims{of(r, 1, 9), of(r, 1, 40)};
    if (f.in > 100) f.in += 256;  // more than a chunk holds
  }
  if (depthwise && rank == 2 && !large) {  // rows of several vectors
    f.image[1] = std::max(f.image[1], of(r, 1, 71));
    if (r.once_in(3)) f.kernel[1] = std::clamp<int64_t>(f.image[1] / f.dilations[1], 1, 5);
    if (f.kernel[1] > 3)
      f.kernel[0] = std::clamp<int64_t>((f.image[0] - 1) / f.dilations[0] + 1, 1, 6);
  }
  if (deep && r.once_in(3)) {  // shapes that Winograd takes
    f.in = of(r, 32, 73);
    f.out = of(r, 24, 41);
    const int64_t taps = r.once_in(3) ? 5 : 3;
    f.kernel = {taps, taps};
    f.strides = f.dilations = {1, 1};
    f.extra = {0, 0};
    for (int64_t& side : f.image) side = taps == 5 ? 9 : std::clamp<int64_t>(side, 3, 7);
    if (taps == 3 && r.once_in(2)) f.image = {7, of(r, 14, 35)};  // more than are written at once
    if (taps == 3 && f.in == 47 && f.image[1] < 8) f.in += 240;   // more than a chunk holds
  } else if (volumes && deep && r.once_in(2)) {
    if (r.once_in(2)) {
      f.in = of(r, 32, 49);
      f.out = of(r, 24, 33);
      f.kernel = {3, 3};
      f.strides = f.dilations = {1, 1};
      f.image = r.once_in(2) ? Dims{3, 7} : Dims{12, 12};
    }
    const int64_t taps = r.from_to(1, 3), pad = r.below(2);
    for (Dims* const list : {&f.strides, &f.dilations})
      list->insert(list->begin(), r.from_to(1, 2));
    f.kernel.insert(f.kernel.begin(), taps);
    f.image.insert(f.image.begin(), (taps - 1) * f.dilations[0] + r.from_to(1, 2));
    f.extra.insert(f.extra.begin(), 0);
    f.pads.insert(f.pads.begin(), pad);
    f.pads.insert(f.pads.begin() + 3, 1 - pad);
  }
  if (!deep && !depthwise && !few && !large && f.batch == 2 &&
      f.out % 2 == 0) {  // the window is the image
    f.group = 1;
    f.image = f.kernel;
    f.dilations.assign(f.rank(), 1);
    f.pads.assign(2 * f.rank(), 0);
  }
  return f;
}

std::vector<Attr> attrs_of(const Form& f) {
  return {{"strides", f.strides},
          {"dilations", f.dilations},
          {"pads", f.pads},
          {"group", f.group},
          {"kernel_shape", f.kernel}};
}

Dims joined(int64_t a, int64_t b, const Dims& rest) {
  Dims out{a, b};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

// Elements of one place in planes of |dims| that follow each other, from (a, b) on. The loops over
// them are the innermost ones here.
struct Through {
  Through(int64_t a, int64_t b, const Dims& place, const Dims& dims)
      : first(position(joined(a, b, place), dims)),
        plane(static_cast<size_t>(count(Dims(dims.begin() + 2, dims.end())))) {}
  size_t operator[](int64_t i) const { return first + static_cast<size_t>(i) * plane; }
  const size_t first, plane;
};

// Calls fn(batch, group, position, tap, pixel) for every tap of a window that falls on a pixel.
using Tap = std::function<void(int64_t, int64_t, const Dims&, const Dims&, const Dims&)>;
void for_each_tap(const Form& f, const Dims& positions, const Tap& fn) {
  for (int64_t n = 0; n < f.batch; ++n)
    for (int64_t g = 0; g < f.group; ++g)
      for_each_index(positions, [&](const Dims& at) {
        for_each_index(f.kernel, [&](const Dims& tap) {
          Dims pixel(f.rank());
          for (size_t i = 0; i < f.rank(); ++i) {
            pixel[i] = at[i] * f.strides[i] + tap[i] * f.dilations[i] - f.pads[i];
            if (pixel[i] < 0 || pixel[i] >= f.image[i]) return;
          }
          fn(n, g, at, tap, pixel);
        });
      });
}

Case conv_of(Random& r, pfrt_dtype x_type, pfrt_dtype w_type, pfrt_dtype y_type, int64_t size,
             double zero_x, double zero_w, double low = -3, double high = 3) {
  const Form f = random_form(r, size, is_float(x_type));
  Dims positions;
  for (size_t i = 0; i < f.rank(); ++i)
    positions.push_back(
        (f.image[i] + f.pads[i] + f.pads[i + f.rank()] - (f.kernel[i] - 1) * f.dilations[i] - 1) /
            f.strides[i] +
        1);
  const Data x = r.data(x_type, joined(f.batch, f.group * f.in, f.image), low, high);
  Data w = r.data(w_type, joined(f.group * f.out, f.in, f.kernel), low, high);
  w.constant = f.rank() == 3 || r.once_in(2);
  const bool has_bias = is_float(y_type) && r.once_in(2);
  const Data bias = has_bias ? r.data(x_type, {f.group * f.out}) : Data{};
  const Dims y_dims = joined(f.batch, f.group * f.out, positions);
  Values y(static_cast<size_t>(count(y_dims)), 0);
  for_each_tap(f, positions,
               [&](int64_t n, int64_t g, const Dims& at, const Dims& tap, const Dims& pixel) {
                 const Through sums(n, g * f.out, at, y_dims), from(n, g * f.in, pixel, x.dims);
                 for (int64_t o = 0; o < f.out; ++o) {
                   const Through by(g * f.out + o, 0, tap, w.dims);
                   double& sum = y[sums[o]];
                   for (int64_t i = 0; i < f.in; ++i)
                     sum += (x.values[from[i]] - zero_x) * (w.values[by[i]] - zero_w);
                 }
               });
  if (has_bias)
    for_each_index(y_dims, [&](const Dims& index) {
      y[position(index, y_dims)] += bias.values[static_cast<size_t>(index[1])];
    });
  Case c;
  c.inputs = {x, w};
  if (has_bias) c.inputs.push_back(bias);
  c.outputs = {expected(y_type, y_dims, y)};
  c.attrs = attrs_of(f);
  set_tolerance(c, y_type, f.in * count(f.kernel) + 1);
  return c;
}

Case conv_case(Random& r, pfrt_dtype dtype, int64_t size) {
  return conv_of(r, dtype, dtype, dtype, size, 0, 0);
}

Case conv_integer_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const pfrt_dtype other = r.once_in(2) ? PFRT_DTYPE_INT8 : PFRT_DTYPE_UINT8;
  const bool whole = r.once_in(2);  // range; what is beyond int8's wraps around
  const double zero_x = r.once_in(2) ? 3 : 0, zero_w = r.once_in(2) ? (whole ? 127 : 2) : 0;
  Case c = conv_of(r, dtype, other, PFRT_DTYPE_INT32, size, zero_x, zero_w, whole ? -128 : -3,
                   whole ? 255 : 3);
  if (zero_x != 0 || zero_w != 0)
    c.inputs.push_back(zero_x != 0 ? Data{dtype, {}, {zero_x}, true} : Data{});
  if (zero_w != 0) c.inputs.push_back({other, {}, {zero_w}, true});
  return c;
}

// Scales are powers of two, so the numbers to round are exact.
Case qlinear_conv_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const auto byte = [&] { return r.once_in(2) ? PFRT_DTYPE_INT8 : PFRT_DTYPE_UINT8; };
  const pfrt_dtype w_type = byte(), y_type = byte();
  const auto zero = [&](int64_t most) { return static_cast<double>(r.from_to(0, most)); };
  const double zero_x = zero(5), zero_w = zero(5), zero_y = zero(99);
  const Case sums = conv_of(r, dtype, w_type, PFRT_DTYPE_INT32, size, zero_x, zero_w, -128, 255);
  const Data &x = sums.inputs[0], &w = sums.inputs[1];
  const Dims &w_dims = w.dims, &y_dims = sums.outputs[0].dims;
  const auto scale = [&] { return std::exp2(static_cast<double>(r.from_to(-4, 2))); };
  const double sx = scale(), sy = 64 * scale();
  Data sw{PFRT_DTYPE_FLOAT32, {}, {scale()}}, bias;
  if (r.once_in(2)) {
    sw.dims = {w_dims[0]};
    for (int64_t i = 1; i < w_dims[0]; ++i) sw.values.push_back(scale());
    sw.values.resize(static_cast<size_t>(w_dims[0]));
  }
  if (r.once_in(2)) bias = r.data(PFRT_DTYPE_INT32, {w_dims[0]}, -2000, 2000);
  Values y;
  for_each_index(y_dims, [&](const Dims& at) {
    const auto channel = static_cast<size_t>(at[1]);
    const double sum = sums.outputs[0].values[position(at, y_dims)] +
                       (bias.values.empty() ? 0 : bias.values[channel]);
    const double steps = std::nearbyint(sum * sx * sw.values[channel % sw.values.size()] / sy);
    y.push_back(std::clamp<double>(steps + zero_y, y_type == PFRT_DTYPE_INT8 ? -128 : 0,
                                   y_type == PFRT_DTYPE_INT8 ? 127 : 255));
  });
  const auto one = [](pfrt_dtype type, double value, bool constant = false) {
    return Data{type, {}, {value}, constant};
  };
  Case c;
  c.inputs = {x,
              one(PFRT_DTYPE_FLOAT32, sx),
              one(dtype, zero_x),
              w,
              sw,
              one(w_type, zero_w, r.once_in(4) ? false : w.constant),
              one(PFRT_DTYPE_FLOAT32, sy),
              one(y_type, zero_y),
              bias};
  c.outputs = {expected(y_type, y_dims, std::move(y))};
  c.attrs = sums.attrs;
  return c;
}

// The gradient of a convolution, whose windows have the input's pixels as positions.
Case conv_transpose_case(Random& r, pfrt_dtype dtype, int64_t size) {
  Form f = random_form(r, size);
  const int64_t kind = r.below(4);
  const bool winograd = kind == 1 && f.rank() == 2;
  if (kind > 0) f.dilations.assign(f.rank(), 1);
  if (winograd) {
    f.batch = 1;
    f.in = r.from_to(128, 140);
    f.out = of(r, 16, 33);
    for (size_t i = 0; i < 2; ++i) {
      f.image[i] = r.from_to(1, 6);
      f.strides[i] = r.from_to(1, 3);
      f.kernel[i] = 2 * f.strides[i];
      f.extra[i] = r.below(f.strides[i]);
    }
  } else if (kind == 1 || kind == 2) {
    for (size_t i = 0; i < f.rank(); ++i) {
      f.kernel[i] = r.from_to(1, size >= kLarge ? 4 : 6);
      f.strides[i] = r.from_to(1, size >= kLarge ? 2 : 4);
      f.extra[i] = r.below(f.strides[i]);
    }
  } else if (kind == 3) {  // each pixel has one tap of one position
    f.strides = f.kernel;
    f.extra.assign(f.rank(), 0);
    f.pads.assign(2 * f.rank(), 0);
  }
  const Dims positions = f.image;
  for (size_t i = 0; i < f.rank(); ++i) {
    const int64_t whole =
        (positions[i] - 1) * f.strides[i] + (f.kernel[i] - 1) * f.dilations[i] + 1 + f.extra[i];
    if (f.pads[i] + f.pads[i + f.rank()] >= whole) f.pads[i] = f.pads[i + f.rank()] = 0;
    f.image[i] = whole - f.pads[i] - f.pads[i + f.rank()];
  }
  const Data x = r.data(dtype, joined(f.batch, f.group * f.in, positions));
  Data w = r.data(dtype, joined(f.group * f.in, f.out, f.kernel));
  w.constant = winograd || r.once_in(2);
  const bool has_bias = r.once_in(2);
  const Data bias = has_bias ? r.data(dtype, {f.group * f.out}) : Data{};
  const Dims y_dims = joined(f.batch, f.group * f.out, f.image);
  Values y(static_cast<size_t>(count(y_dims)), 0);
  if (has_bias)
    for_each_index(y_dims, [&](const Dims& index) {
      y[position(index, y_dims)] = bias.values[static_cast<size_t>(index[1])];
    });
  for_each_tap(f, positions,
               [&](int64_t n, int64_t g, const Dims& at, const Dims& tap, const Dims& pixel) {
                 const Through sums(n, g * f.out, pixel, y_dims), from(n, g * f.in, at, x.dims);
                 for (int64_t i = 0; i < f.in; ++i) {
                   const Through by(g * f.in + i, 0, tap, w.dims);
                   const double factor = x.values[from[i]];
                   for (int64_t o = 0; o < f.out; ++o) y[sums[o]] += factor * w.values[by[o]];
                 }
               });
  Case c;
  c.inputs = {x, w};
  if (has_bias) c.inputs.push_back(bias);
  c.outputs = {expected(dtype, y_dims, y)};
  c.attrs = attrs_of(f);
  c.attrs.push_back({"output_padding", f.extra});
  set_tolerance(c, dtype, f.in * count(f.kernel) + 1);
  return c;
}

// Labels a to f, now and then twice in a term; an ellipsis broadcasts. The sum goes over all
// labels.
Case einsum_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const size_t labels = static_cast<size_t>(r.from_to(1, 5)),
               terms = static_cast<size_t>(r.from_to(1, size >= kLarge ? 3 : 5));
  const bool open = r.once_in(3);
  Dims lengths;
  for (size_t l = 0; l < labels; ++l) lengths.push_back(r.from_to(1, size >= kLarge ? 9 : 4));
  const Dims rest = open ? r.dims_without_0(static_cast<size_t>(r.from_to(1, 2)), 9) : Dims();
  std::vector<std::vector<size_t>> used(terms);
  std::vector<bool> seen(labels, false);
  for (auto& term : used)
    for (int64_t n = r.from_to(0, 3); n > 0 || term.empty(); --n) {
      term.push_back(static_cast<size_t>(r.below(static_cast<int64_t>(labels))));
      seen[term.back()] = true;
    }
  std::vector<size_t> kept;
  for (size_t l = 0; l < labels; ++l)
    if (seen[l] && r.once_in(2))
      kept.insert(kept.begin() + r.below(static_cast<int64_t>(kept.size()) + 1), l);

  const auto word = [&](const std::vector<size_t>& term) {
    std::string text = open ? "..." : "";
    for (size_t l : term) text += static_cast<char>('a' + l);
    return text;
  };
  // Dimensions of |term|, and the place in it of a whole index: the rest, then every label.
  const auto dims_of = [&](const std::vector<size_t>& term, const Dims& lead) {
    Dims dims = lead;
    for (size_t l : term) dims.push_back(lengths[l]);
    return dims;
  };
  Case c;
  std::string equation;
  for (size_t t = 0; t < terms; ++t) {
    const Dims lead = !open ? Dims() : t == 0 ? rest : r.broadcast_to(rest);
    c.inputs.push_back(r.data(dtype, dims_of(used[t], lead), -2, 2));
    equation += (t ? "," : "") + word(used[t]);
  }
  const Dims out = dims_of(kept, rest);
  Values y(static_cast<size_t>(count(out)), 0);
  Dims whole = rest;
  int64_t summed = 1;
  for (size_t l = 0; l < labels; ++l) {
    whole.push_back(seen[l] ? lengths[l] : 1);
    if (seen[l]) summed *= lengths[l];
  }
  const auto place = [&](const Dims& index, const std::vector<size_t>& term) {
    Dims at(index.begin(), index.begin() + static_cast<int64_t>(rest.size()));
    for (size_t l : term) at.push_back(index[rest.size() + l]);
    return at;
  };
  for_each_index(whole, [&](const Dims& index) {
    double product = 1;
    for (size_t t = 0; t < terms; ++t) {
      // The index of a label of length 1 is 0 anyway, so position() only broadcasts the rest.
      const Dims at = place(index, used[t]);
      product *= c.inputs[t].values[position(at, c.inputs[t].dims)];
    }
    y[position(place(index, kept), out)] += product;
  });
  c.outputs = {expected(dtype, out, y)};
  c.attrs = {{"equation", equation + "->" + word(kept)}};
  set_tolerance(c, dtype, summed * 8);
  return c;
}

}  // namespace

const Generators& matmul_cases() {
  static const Generators generators = {{"MatMul", matmul_case},
                                        {"Gemm", gemm_case},
                                        {"MatMulInteger", matmul_integer_case},
                                        {"Conv", conv_case},
                                        {"ConvInteger", conv_integer_case},
                                        {"QLinearConv", qlinear_conv_case},
                                        {"ConvTranspose", conv_transpose_case},
                                        {"Einsum", einsum_case}};
  return generators;
}

}  // namespace pfrt::test
