// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/dtype.h"
#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);

double relu(double x) { return x < 0 ? 0 : x; }
double bounded(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(-std::fabs(x))) + (x > 0 ? x : 0); }
double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double sign(double x) { return x < 0 ? -1 : x > 0 ? 1 : x; }
double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t whole(double x) { return static_cast<int64_t>(x); }

// A case of |fn| on an input in [low, high], with a few elements that are not finite.
Generator unary(Unary fn, double low = -3, double high = 3, pfrt_dtype output = 0,
                std::vector<Attr> attrs = {}) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    Case c;
    Data x = r.data(dtype, r.dims(static_cast<size_t>(r.below(5)), size), low, high);
    constexpr double kInf = std::numeric_limits<double>::infinity();
    for (double& v : x.values)
      if (is_float(dtype) && r.once_in(50))
        v = r.once_in(3) ? std::nan("") : r.once_in(2) ? kInf : -kInf;
    Values y = x.values;
    for (double& v : y) v = fn(v);
    c.outputs = {expected(output != 0 ? output : dtype, x.dims, std::move(y))};
    c.inputs = {std::move(x)};
    c.attrs = attrs;
    c.relative = is_float(dtype) ? 12 : 0;
    c.absolute = 12 * step_error(dtype);
    return c;
  };
}

std::vector<Dims> broadcast_shapes(Random& r, size_t inputs, int64_t size) {
  const Dims whole_dims = r.dims(static_cast<size_t>(r.below(5)), size);
  std::vector<Dims> out;
  for (size_t i = 0; i < inputs; ++i)
    out.push_back(size >= kLarge && i == 0 ? whole_dims : r.broadcast_to(whole_dims));
  return out;
}

Dims broadcast(const std::vector<Dims>& shapes) {
  Dims out;
  for (const Dims& s : shapes) {
    while (out.size() < s.size()) out.insert(out.begin(), 1);
    for (size_t i = 0; i < s.size(); ++i) {
      int64_t& d = out[out.size() - s.size() + i];
      if (d == 1) d = s[i];
    }
  }
  return out;
}

// A case of |fn| on the elements of |inputs|, which are broadcast.
Case broadcast_case(std::vector<Data> inputs, pfrt_dtype output,
                    const std::function<double(const Values&)>& fn) {
  std::vector<Dims> shapes;
  for (const Data& x : inputs) shapes.push_back(x.dims);
  const Dims dims = broadcast(shapes);
  Values y, elements(inputs.size());
  for_each_index(dims, [&](const Dims& index) {
    for (size_t i = 0; i < inputs.size(); ++i)
      elements[i] = inputs[i].values[position(index, inputs[i].dims)];
    y.push_back(fn(elements));
  });
  Case c;
  c.outputs = {expected(output, dims, std::move(y))};
  c.inputs = std::move(inputs);
  return c;
}

struct BinaryForm {
  double low = -9, high = 9;  // range of both operands
  pfrt_dtype output = 0;      // 0: that of the inputs
  bool whole = false;         // only whole numbers, so that some are equal
  bool no_zero = false;       // the second operand has no 0
  double relative = 2;
};

Generator binary(Binary on_floats, Binary on_integers, BinaryForm form = {},
                 std::vector<Attr> attrs = {}) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    std::vector<Data> in;
    for (const Dims& dims : broadcast_shapes(r, 2, size))
      in.push_back(r.data(dtype, dims, form.low, form.high));
    for (Data& x : in)
      for (double& v : x.values)
        if (form.whole) v = std::round(v);
    for (double& v : in[1].values)
      if (form.no_zero && std::fabs(v) < 0.5) v = 2;
    const Binary fn = is_float(dtype) ? on_floats : on_integers;
    Case c = broadcast_case(std::move(in), form.output != 0 ? form.output : dtype,
                            [fn](const Values& v) { return fn(v[0], v[1]); });
    c.attrs = attrs;
    c.relative = is_float(dtype) ? form.relative : 0;
    c.absolute = 1e-30;
    return c;
  };
}
Generator binary(Binary fn, BinaryForm form = {}) { return binary(fn, fn, form); }

Case mod_case(Random& r, pfrt_dtype dtype, int64_t size) {
  BinaryForm form;
  form.no_zero = true;
  const Binary fmod = [](double a, double b) { return std::fmod(a, b); };
  if (r.once_in(2)) return binary(fmod, fmod, form, {{"fmod", int64_t{1}}})(r, dtype, size);
  return binary(floor_mod, floor_mod, form)(r, dtype, size);
}

Case pow_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const Binary fn = [](double a, double b) { return std::pow(a, b); };
  BinaryForm form;
  form.low = is_float(dtype) ? 0.5 : 0;
  form.high = 3;
  form.relative = 12;
  return binary(fn, form)(r, dtype, size);
}

Case bit_shift_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const bool left = r.once_in(2);
  BinaryForm form;
  form.high = 3;
  // A negative number shifts all bits away.
  const Binary to_left = [](double a, double b) { return b < 0 ? 0 : a * std::exp2(b); };
  const Binary to_right = [](double a, double b) {
    return b < 0 ? (a < 0 ? -1 : 0) : std::floor(a * std::exp2(-b));
  };
  return binary(to_left, left ? to_left : to_right, form,
                {{"direction", std::string(left ? "LEFT" : "RIGHT")}})(r, dtype, size);
}

Generator variadic(double (*fn)(const Values&)) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    std::vector<Data> in;
    for (const Dims& dims : broadcast_shapes(r, static_cast<size_t>(r.from_to(1, 4)), size))
      in.push_back(r.data(dtype, dims, -9, 9));
    Case c = broadcast_case(std::move(in), dtype, fn);
    c.relative = is_float(dtype) ? 2 : 0;
    c.absolute = 60 * step_error(dtype);
    return c;
  };
}

Case where_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const std::vector<Dims> shapes = broadcast_shapes(r, 3, size);
  return broadcast_case(
      {r.data(PFRT_DTYPE_BOOL, shapes[0]), r.data(dtype, shapes[1]), r.data(dtype, shapes[2])},
      dtype, [](const Values& v) { return v[0] != 0 ? v[1] : v[2]; });
}

Case clip_case(Random& r, pfrt_dtype dtype, int64_t size) {
  Case c;
  const Data x = r.data(dtype, r.dims(static_cast<size_t>(r.below(4)), size), -9, 9);
  const Data low = r.data(dtype, {}, -5, 2), high = r.data(dtype, {}, 0, 5);
  const bool has_low = r.once_in(2), has_high = r.once_in(2);
  Values y = x.values;
  for (double& v : y) {
    if (has_low && v < low.values[0]) v = low.values[0];
    if (has_high && v > high.values[0]) v = high.values[0];
  }
  c.inputs = {x, has_low ? low : Data{}, has_high ? high : Data{}};
  c.outputs = {expected(dtype, x.dims, y)};
  return c;
}

Case copy_case(Random& r, pfrt_dtype dtype, int64_t size) {
  Case c;
  const Data x = r.data(dtype, r.dims(static_cast<size_t>(r.below(5)), size), -9, 9);
  c.inputs = {x};
  c.outputs = {x};
  return c;
}

double cast(pfrt_dtype from, pfrt_dtype to, double v) {
  if (to == PFRT_DTYPE_BOOL) return v != 0;
  const bool whole = from == PFRT_DTYPE_BOOL || dtype_is_integer(from);
  if (dtype_is_float(to) || whole) return v;
  const double bits = dtype_bits(to);
  if (bits < 8) return std::trunc(v);  // wraps around
  const bool has_sign = dtype_is_signed(to);
  const double high = std::exp2(has_sign ? bits - 1 : bits) - 1;
  return std::clamp(std::trunc(v), has_sign ? -high - 1 : 0.0, high);
}

Case cast_to(Random& r, pfrt_dtype from, int64_t size, bool like) {
  constexpr pfrt_dtype kTo[] = {
      PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64,      PFRT_DTYPE_FLOAT16,        PFRT_DTYPE_BFLOAT16,
      PFRT_DTYPE_INT8,    PFRT_DTYPE_INT16,        PFRT_DTYPE_INT32,          PFRT_DTYPE_INT64,
      PFRT_DTYPE_UINT8,   PFRT_DTYPE_UINT16,       PFRT_DTYPE_UINT32,         PFRT_DTYPE_UINT64,
      PFRT_DTYPE_BOOL,    PFRT_DTYPE_FLOAT8E4M3FN, PFRT_DTYPE_FLOAT8E5M2FNUZ, PFRT_DTYPE_FLOAT4E2M1,
      PFRT_DTYPE_INT4,    PFRT_DTYPE_UINT2};
  const pfrt_dtype to = kTo[r.below(std::size(kTo))];
  Case c;
  const double reach = r.once_in(2) ? 9 : dtype_bits(from) == 8 ? 100 : 300;
  const Data x = r.data(from, r.dims(static_cast<size_t>(r.below(4)), size), -reach, reach);
  Values y = x.values;
  for (double& v : y) v = cast(from, to, v);
  c.inputs = {x};
  if (like) c.inputs.push_back(r.data(to, r.dims(1, 9)));
  c.attrs = {{"to", int64_t{to}}};
  c.outputs = {expected(to, x.dims, y)};
  c.relative = 1;
  return c;
}

Case bit_cast_case(Random& r, pfrt_dtype from, int64_t size) {
  const pfrt_dtype of_size[] = {PFRT_DTYPE_UINT8, PFRT_DTYPE_INT16, PFRT_DTYPE_UINT32,
                                PFRT_DTYPE_FLOAT64, PFRT_DTYPE_COMPLEX128};
  const uint32_t bits = dtype_bits(from);
  const pfrt_dtype to = of_size[bits == 8    ? 0
                                : bits == 16 ? 1
                                : bits == 32 ? 2
                                : bits == 64 ? 3
                                             : 4];
  Case c;
  const Data x = r.data(from, r.dims(static_cast<size_t>(r.below(4)), size));
  std::vector<char> bytes(x.values.size() * 16 + 1);
  store(from, x.values, bytes.data());
  c.inputs = {x};
  c.outputs = {expected(to, x.dims, load(to, bytes.data(), x.values.size()))};
  return c;
}

double minimum(const Values& v) { return least(v); }
double maximum(const Values& v) { return greatest(v); }
double sum(const Values& v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}
double mean(const Values& v) { return sum(v) / static_cast<double>(v.size()); }

Generators make() {
  constexpr BinaryForm kCompare{-3, 3, PFRT_DTYPE_BOOL, true, false, 0};
  BinaryForm divide;
  divide.no_zero = true;
  const auto b = PFRT_DTYPE_BOOL;
  return {
      {"Abs", unary([](double x) { return std::fabs(x); })},
      {"Neg", unary([](double x) { return -x; })},
      {"Sign", unary(sign)},
      {"Sqrt", unary([](double x) { return std::sqrt(x); }, 0, 9)},
      {"Reciprocal", unary([](double x) { return 1 / x; }, 0.25, 3)},
      {"Exp", unary([](double x) { return std::exp(x); })},
      {"Log", unary([](double x) { return std::log(x); }, 0.1, 9)},
      {"Erf", unary([](double x) { return std::erf(x); })},
      {"Floor", unary([](double x) { return std::floor(x); })},
      {"Ceil", unary([](double x) { return std::ceil(x); })},
      {"Round", unary([](double x) { return std::nearbyint(x); })},
      {"Sin", unary([](double x) { return std::sin(x); })},
      {"Cos", unary([](double x) { return std::cos(x); })},
      {"Tan", unary([](double x) { return std::tan(x); }, -1, 1)},
      {"Asin", unary([](double x) { return std::asin(x); }, -1, 1)},
      {"Acos", unary([](double x) { return std::acos(x); }, -1, 1)},
      {"Atan", unary([](double x) { return std::atan(x); })},
      {"Sinh", unary([](double x) { return std::sinh(x); })},
      {"Cosh", unary([](double x) { return std::cosh(x); })},
      {"Tanh", unary([](double x) { return std::tanh(x); })},
      {"Asinh", unary([](double x) { return std::asinh(x); })},
      {"Acosh", unary([](double x) { return std::acosh(x); }, 1.25, 9)},
      {"Atanh", unary([](double x) { return std::atanh(x); }, -0.9, 0.9)},
      {"Not", unary([](double x) { return static_cast<double>(x == 0); })},
      {"BitwiseNot", unary([](double x) { return -x - 1; })},
      {"IsNaN", unary([](double x) { return static_cast<double>(std::isnan(x)); }, -3, 3, b)},
      {"IsInf", unary([](double x) { return static_cast<double>(std::isinf(x)); }, -3, 3, b)},
      {"Relu", unary(relu)},
      {"Sigmoid", unary(sigmoid, -9, 9)},
      {"HardSigmoid",
       unary([](double x) { return bounded(0.25 * x + 0.5); }, -9, 9, 0, {{"alpha", 0.25f}})},
      {"HardSwish", unary([](double x) { return x * bounded(x / 6 + 0.5); }, -9, 9)},
      {"LeakyRelu",
       unary([](double x) { return x < 0 ? 0.125 * x : x; }, -9, 9, 0, {{"alpha", 0.125f}})},
      {"Elu", unary([](double x) { return x < 0 ? std::expm1(x) : x; })},
      {"Selu", unary([](double x) {
         return 1.05070102214813232421875 * (x < 0 ? 1.67326319217681884765625 * std::expm1(x) : x);
       })},
      {"Celu", unary([](double x) { return x < 0 ? 0.5 * std::expm1(x * 2) : x; }, -3, 3, 0,
                     {{"alpha", 0.5f}})},
      {"ThresholdedRelu", unary([](double x) { return x > 1 ? x : 0; })},
      {"Softplus", unary(softplus, -9, 9)},
      {"Softsign", unary([](double x) { return x / (1 + std::fabs(x)); })},
      {"Mish", unary([](double x) { return x * std::tanh(softplus(x)); }, -9, 9)},
      {"Swish", unary([](double x) { return x * sigmoid(x); }, -9, 9)},
      {"Shrink", unary([](double x) { return x < -1  ? x + 1
                                             : x > 1 ? x - 1
                                                     : 0; }, -9, 9, 0,
                       {{"lambd", 1.0f}, {"bias", 1.0f}})},
      {"Gelu",
       [](Random& r, pfrt_dtype dtype, int64_t size) {
         return r.once_in(2) ? unary(gelu)(r, dtype, size)
                             : unary(gelu_tanh, -3, 3, 0, {{"approximate", std::string("tanh")}})(
                                   r, dtype, size);
       }},
      {"Identity", copy_case},
      {"Clip", clip_case},
      {"Where", where_case},
      {"Add", binary([](double x, double y) { return x + y; })},
      {"Sub", binary([](double x, double y) { return x - y; })},
      {"Mul", binary([](double x, double y) { return x * y; })},
      {"Div", binary([](double x, double y) { return x / y; },
                     [](double x, double y) { return std::trunc(x / y); }, divide)},
      {"Pow", pow_case},
      {"Mod", mod_case},
      {"PRelu", binary([](double x, double slope) { return x < 0 ? x * slope : x; })},
      {"BitShift", bit_shift_case},
      {"And", binary([](double x, double y) { return static_cast<double>(x != 0 && y != 0); })},
      {"Or", binary([](double x, double y) { return static_cast<double>(x != 0 || y != 0); })},
      {"Xor", binary([](double x, double y) { return static_cast<double>(x != y); })},
      {"BitwiseAnd",
       binary([](double x, double y) { return static_cast<double>(whole(x) & whole(y)); })},
      {"BitwiseOr",
       binary([](double x, double y) { return static_cast<double>(whole(x) | whole(y)); })},
      {"BitwiseXor",
       binary([](double x, double y) { return static_cast<double>(whole(x) ^ whole(y)); })},
      {"Equal", binary([](double x, double y) { return static_cast<double>(x == y); }, kCompare)},
      {"Less", binary([](double x, double y) { return static_cast<double>(x < y); }, kCompare)},
      {"Greater", binary([](double x, double y) { return static_cast<double>(x > y); }, kCompare)},
      {"LessOrEqual",
       binary([](double x, double y) { return static_cast<double>(x <= y); }, kCompare)},
      {"GreaterOrEqual",
       binary([](double x, double y) { return static_cast<double>(x >= y); }, kCompare)},
      {"Max", variadic(maximum)},
      {"Min", variadic(minimum)},
      {"Sum", variadic(sum)},
      {"Mean", variadic(mean)},
      {"Cast", [](Random& r, pfrt_dtype d, int64_t size) { return cast_to(r, d, size, false); }},
      {"CastLike", [](Random& r, pfrt_dtype d, int64_t size) { return cast_to(r, d, size, true); }},
      {"BitCast", bit_cast_case},
  };
}

}  // namespace

const Generators& elementwise_cases() {
  static const Generators generators = make();
  return generators;
}

}  // namespace pfrt::test
