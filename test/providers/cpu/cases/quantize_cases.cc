// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear, DynamicQuantizeLinear and DequantizeLinear element by element, in float as in the
// standard, and QLinearMatMul with parameters for a tensor, for each row or column, and for each
// row or column of each matrix. Scales are powers of two where an inner rounding would hide the
// result.
#include <algorithm>
#include <cmath>

#include "core/base/dtype.h"
#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

enum class Grain : uint8_t { kTensor, kAxis, kBlock };

// The dimensions of a tensor's parameters, and the parameter of each element.
struct Granularity {
  Grain grain;
  size_t axis = 0;
  int64_t block = 0;
  Dims dims;

  Granularity(Random& r, const Dims& x) {
    const bool some = !x.empty() && count(x) > 0;
    grain = some ? static_cast<Grain>(r.below(3)) : Grain::kTensor;
    if (grain == Grain::kTensor) {
      if (r.once_in(3)) dims = {1};
      return;
    }
    axis = static_cast<size_t>(r.below(static_cast<int64_t>(x.size())));
    if (grain == Grain::kAxis) {
      dims = {x[axis]};
      return;
    }
    block = r.from_to(1, std::max<int64_t>(x[axis] + 1, 2));
    dims = x;
    dims[axis] = (x[axis] + block - 1) / block;
  }
  size_t of(const Dims& index) const {
    if (grain == Grain::kTensor) return 0;
    if (grain == Grain::kAxis) return static_cast<size_t>(dims[0] == 1 ? 0 : index[axis]);
    Dims at = index;
    at[axis] /= block;
    return position(at, dims);
  }
  std::vector<Attr> attrs() const {
    return {{"axis", static_cast<int64_t>(axis)}, {"block_size", block}};
  }
};

bool is_real(pfrt_dtype dtype) { return dtype_is_float(dtype); }

Data scales(Random& r, pfrt_dtype dtype, const Dims& dims, bool powers) {
  Data s{dtype, dims, Values(static_cast<size_t>(count(dims))), false};
  for (double& v : s.values)
    v = powers ? std::exp2(static_cast<double>(r.from_to(-3, 2))) : r.uniform(0.05, 2);
  s.values = rounded(dtype, s.values);
  return s;
}

Data zero_points(Random& r, pfrt_dtype dtype, const Dims& dims) {
  Data z{dtype, dims, Values(static_cast<size_t>(count(dims)), 0), false};
  if (is_real(dtype) || dtype == PFRT_DTYPE_INT32) return z;
  const bool has_sign = dtype_is_signed(dtype);
  const int64_t half = int64_t{1} << (std::min(dtype_bits(dtype), 8u) - 1);
  for (double& v : z.values)
    v = static_cast<double>(has_sign ? r.from_to(-half, half - 1) : r.from_to(0, 2 * half - 1));
  return z;
}

double clamped(pfrt_dtype dtype, double v) {
  if (is_real(dtype)) return v;  // rounding to the type saturates
  const double top = std::exp2(static_cast<double>(dtype_bits(dtype)));
  return dtype_is_signed(dtype) ? std::clamp(v, -top / 2, top / 2 - 1)
                                : std::clamp(v, 0.0, top - 1);
}

// Rounds |v| to float, then to |dtype|.
double through(pfrt_dtype dtype, double v) {
  return rounded(dtype, {static_cast<double>(static_cast<float>(v))})[0];
}

Case quantize(Random& r, pfrt_dtype from, int64_t size) {
  constexpr pfrt_dtype kTo[] = {
      PFRT_DTYPE_UINT8,         PFRT_DTYPE_INT8,           PFRT_DTYPE_UINT16,
      PFRT_DTYPE_INT16,         PFRT_DTYPE_UINT4,          PFRT_DTYPE_INT4,
      PFRT_DTYPE_UINT2,         PFRT_DTYPE_INT2,           PFRT_DTYPE_FLOAT4E2M1,
      PFRT_DTYPE_FLOAT8E4M3FN,  PFRT_DTYPE_FLOAT8E4M3FNUZ, PFRT_DTYPE_FLOAT8E5M2,
      PFRT_DTYPE_FLOAT8E5M2FNUZ};
  constexpr pfrt_dtype kScales[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16,
                                    PFRT_DTYPE_FLOAT8E8M0, PFRT_DTYPE_INT32};
  const pfrt_dtype to = kTo[r.below(std::size(kTo))];
  const pfrt_dtype scale_type = kScales[r.below(std::size(kScales))];
  const Data x = r.data(from, r.dims(static_cast<size_t>(r.below(5)), size), -300, 300);
  const Granularity g(r, x.dims);
  const bool powers = scale_type == PFRT_DTYPE_FLOAT8E8M0;
  Data scale = scales(r, scale_type, g.dims, powers);
  if (scale_type == PFRT_DTYPE_INT32)
    for (double& v : scale.values) v = static_cast<double>(r.from_to(1, 9));
  const bool has_zero = !r.once_in(4);
  const Data zero = zero_points(r, to, g.dims);
  const bool wide = scale_type == PFRT_DTYPE_INT32;
  const pfrt_dtype precision = powers ? pfrt_dtype{PFRT_DTYPE_FLOAT32} : scale_type;
  Values y;
  for_each_index(x.dims, [&](const Dims& index) {
    const double v = x.values[position(index, x.dims)];
    const size_t p = g.of(index);
    const double s = scale.values[p], z = has_zero ? zero.values[p] : 0;
    if (wide) {
      y.push_back(clamped(to, (is_real(to) ? v / s : std::nearbyint(v / s)) + z));
      return;
    }
    const float quotient = static_cast<float>(through(precision, v)) / static_cast<float>(s);
    const double q = through(precision, static_cast<double>(quotient));
    y.push_back(clamped(to, (is_real(to) ? q : std::nearbyint(q)) + z));
  });
  Case c;
  c.inputs = {x, scale};
  if (has_zero) c.inputs.push_back(zero);
  c.attrs = g.attrs();
  c.attrs.push_back({"saturate", int64_t{1}});
  c.outputs = {expected(to, x.dims, std::move(y))};
  return c;
}

Case dequantize(Random& r, pfrt_dtype from, int64_t size) {
  constexpr pfrt_dtype kScales[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16,
                                    PFRT_DTYPE_FLOAT8E8M0};
  constexpr pfrt_dtype kTo[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16};
  const pfrt_dtype scale_type = kScales[r.below(std::size(kScales))];
  const pfrt_dtype to = kTo[r.below(std::size(kTo))];
  const Data x = r.data(from, r.dims(static_cast<size_t>(r.below(5)), size), -120, 120);
  const Granularity g(r, x.dims);
  const Data scale = scales(r, scale_type, g.dims, true);
  const bool has_zero = !r.once_in(4);
  const Data zero = zero_points(r, from, g.dims);
  Values y;
  for_each_index(x.dims, [&](const Dims& index) {
    const size_t p = g.of(index);
    const double z = has_zero ? zero.values[p] : 0;
    y.push_back((x.values[position(index, x.dims)] - z) * scale.values[p]);
  });
  Case c;
  c.inputs = {x, scale};
  if (has_zero) c.inputs.push_back(zero);
  c.attrs = g.attrs();
  c.outputs = {expected(to, x.dims, std::move(y))};
  return c;
}

// Dimensions of the parameters of rows or, with |columns|, columns of |dims|: a single one, a list,
// or a list for each matrix.
Dims line_dims(Random& r, const Dims& dims, bool columns) {
  const size_t rank = dims.size();
  const int64_t lines = columns ? dims[rank - 1] : dims[rank - 2];
  switch (r.below(3)) {
    case 0:
      return {};
    case 1:
      return {lines};
    default:
      Dims all = dims;
      all[columns ? rank - 2 : rank - 1] = 1;
      return all;
  }
}

// Returns the parameter of |line| in the matrix at |batch|.
double line_value(const Data& p, const Dims& batch, int64_t line, bool columns) {
  if (p.values.size() == 1) return p.values[0];
  if (p.dims.size() == 1) return p.values[static_cast<size_t>(line)];
  Dims index = batch;
  index.push_back(columns ? 0 : line);
  index.push_back(columns ? line : 0);
  return p.values[position(index, p.dims)];
}

Case qlinear_matmul(Random& r, pfrt_dtype a_type, int64_t size) {
  constexpr pfrt_dtype kBytes[] = {PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
  const pfrt_dtype b_type = kBytes[r.below(2)], y_type = kBytes[r.below(2)];
  const int64_t m = r.from_to(1, 6), n = r.from_to(1, r.once_in(2) ? 6 : 70);
  const int64_t k = size >= kLarge ? 200 : r.from_to(1, 9);
  Dims batch;
  for (int64_t i = r.below(3); i > 0; --i) batch.push_back(r.from_to(1, 3));
  Dims a_dims = batch, b_dims = r.once_in(3) ? Dims() : batch;
  if (r.once_in(4) && !a_dims.empty() && b_dims.size() == batch.size()) a_dims[0] = 1;
  a_dims.insert(a_dims.end(), {size >= kLarge ? size / 100 : m, k});
  b_dims.insert(b_dims.end(), {k, n});
  const Data a = r.data(a_type, a_dims, -100, 100);
  Data b = r.data(b_type, b_dims, -100, 100);
  b.constant = r.once_in(2);
  const Dims a_lines = line_dims(r, a_dims, false), b_lines = line_dims(r, b_dims, true);
  const Data sa = scales(r, PFRT_DTYPE_FLOAT32, a_lines, true);
  const Data sb = scales(r, PFRT_DTYPE_FLOAT32, b_lines, true);
  const Data za = zero_points(r, a_type, a_lines), zb = zero_points(r, b_type, b_lines);
  const Data sy = scales(r, PFRT_DTYPE_FLOAT32, r.once_in(2) ? Dims{1} : Dims(), true);
  Data ys = sy;
  ys.values[0] *= 64 * static_cast<double>(k > 16 ? 16 : 1);
  const Data zy = zero_points(r, y_type, ys.dims);
  const int64_t rows = a_dims[a_dims.size() - 2];
  Dims out = batch;
  out.insert(out.end(), {rows, n});
  Values y;
  for_each_index(out, [&](const Dims& index) {
    const Dims at(index.begin(), index.end() - 2);
    const int64_t i = index[index.size() - 2], j = index.back();
    const auto own = [&](const Dims& dims) {  // the operand's part of the index, broadcast
      Dims part(at.end() - static_cast<std::ptrdiff_t>(dims.size() - 2), at.end());
      for (size_t d = 0; d < part.size(); ++d)
        if (dims[d] == 1) part[d] = 0;
      return part;
    };
    const Dims left = own(a_dims), right = own(b_dims);
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      Dims ia = left, ib = right;
      ia.insert(ia.end(), {i, p});
      ib.insert(ib.end(), {p, j});
      sum += (a.values[position(ia, a_dims)] - line_value(za, left, i, false)) *
             (b.values[position(ib, b_dims)] - line_value(zb, right, j, true));
    }
    const double scale =
        line_value(sa, left, i, false) * line_value(sb, right, j, true) / ys.values[0];
    y.push_back(clamped(y_type, std::nearbyint(sum * scale) + zy.values[0]));
  });
  Case c;
  c.inputs = {a, sa, za, b, sb, zb, ys, zy};
  c.outputs = {expected(y_type, out, std::move(y))};
  return c;
}

// The range includes 0 and has 255 steps; NaN is left out of it and becomes 0.
Case dynamic_quantize(Random& r, pfrt_dtype dtype, int64_t size) {
  const double low = r.once_in(4) ? 1 : -3;
  Data x = r.data(dtype, r.dims(static_cast<size_t>(r.from_to(0, 3)), size), low, low + 5);
  if (!x.values.empty() && r.once_in(4))
    x.values[static_cast<size_t>(r.below(static_cast<int64_t>(x.values.size())))] = std::nan("");
  float least = 0, most = 0;
  for (const double v : x.values) {
    least = std::fmin(least, static_cast<float>(v));
    most = std::fmax(most, static_cast<float>(v));
  }
  const float scale = least == most ? 1.0f : (most - least) / 255.0f;
  const float zero = std::clamp(std::nearbyint(-least / scale), 0.0f, 255.0f);
  Values y;
  for (const double v : x.values) {
    const float step = std::nearbyint(static_cast<float>(v) / scale) + zero;
    y.push_back(std::isnan(step) ? 0 : std::clamp<double>(step, 0, 255));
  }
  Case c;
  c.outputs = {expected(PFRT_DTYPE_UINT8, x.dims, std::move(y)),
               expected(PFRT_DTYPE_FLOAT32, {}, {scale}), expected(PFRT_DTYPE_UINT8, {}, {zero})};
  c.inputs = {std::move(x)};
  return c;
}

}  // namespace

const Generators& quantize_cases() {
  static const Generators generators = {
      {"QuantizeLinear", quantize},
      {"DequantizeLinear", dequantize},
      {"DynamicQuantizeLinear", dynamic_quantize},
      {"QLinearMatMul", qlinear_matmul},
  };
  return generators;
}

}  // namespace pfrt::test
