// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

// Applies |op| to the operands in either order, since exporters differ.
Value swapped(Builder& b, const std::string& op, const Value& x, const Value& y) {
  return b.random.chance(50) ? b.binary(op, x, y) : b.binary(op, y, x);
}

Value power(Builder& b, const Value& x, double exponent) {
  if (b.random.chance(25) && exponent == 2) return b.binary("Mul", x, x);
  Value out = x;
  const double top = std::pow(x.magnitude(), exponent);
  out.high = top;
  out.low = exponent == 2 || x.low >= 0 ? 0 : -top;
  return b.add("Pow", {x, b.like(x, exponent)}, out);
}

Value gelu_erf(Builder& b, const Value& x) {
  if (b.opset() < 9) return b.unary("Sigmoid", x);
  const bool divides = b.random.chance(60);
  Value y = divides ? b.binary("Div", x, b.like(x, std::sqrt(2.0)))
                    : b.binary("Mul", x, b.like(x, std::sqrt(0.5)));
  y = swapped(b, "Add", b.unary("Erf", y), b.like(x, 1));
  if (b.random.chance(50)) return swapped(b, "Mul", swapped(b, "Mul", x, y), b.like(x, 0.5));
  return swapped(b, "Mul", swapped(b, "Mul", x, b.like(x, 0.5)), y);
}

Value gelu_tanh(Builder& b, const Value& value) {
  const Value x = b.bounded(value, 8);
  Value y = b.random.chance(50) ? power(b, x, 3) : b.binary("Mul", b.binary("Mul", x, x), x);
  y = swapped(b, "Add", x, swapped(b, "Mul", y, b.like(x, 0.044715)));
  y = b.unary("Tanh", swapped(b, "Mul", y, b.like(x, std::sqrt(2 / 3.14159265358979))));
  y = swapped(b, "Add", y, b.like(x, 1));
  if (b.random.chance(50)) return swapped(b, "Mul", swapped(b, "Mul", x, b.like(x, 0.5)), y);
  return swapped(b, "Mul", x, swapped(b, "Mul", y, b.like(x, 0.5)));
}

Value silu(Builder& b, const Value& x) { return swapped(b, "Mul", b.unary("Sigmoid", x), x); }

Value hard_swish(Builder& b, const Value& x) {
  if (b.random.chance(30)) {
    const Value gate = b.unary("HardSigmoid", x, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
    return swapped(b, "Mul", x, gate);
  }
  const Value gate = b.clip(swapped(b, "Add", x, b.like(x, 3)), 0, 6);
  if (b.random.chance(50)) return swapped(b, "Mul", x, b.binary("Div", gate, b.like(x, 6)));
  return b.binary("Div", swapped(b, "Mul", x, gate), b.like(x, 6));
}

Value mish(Builder& b, const Value& value) {
  const Value x = b.bounded(value, 15);
  return swapped(b, "Mul", x, b.unary("Tanh", b.unary("Softplus", x)));
}

void activations(Builder& b) {
  Value x = b.want_float(1, 4);
  switch (b.random.range(0, 5)) {
    case 0:
      gelu_erf(b, x);
      return;
    case 1:
      gelu_tanh(b, x);
      return;
    case 2:
      silu(b, x);
      return;
    case 3:
      hard_swish(b, x);
      return;
    case 4:
      mish(b, x);
      return;
    default:
      b.clip(b.unary("Relu", x), b.random.of({-1.0, 0.0, 0.5}), b.random.of({1.0, 6.0}));
      return;
  }
}

Axes last_axes(const Value& x, int64_t count) {
  Axes axes;
  for (int64_t i = x.rank() - count; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

// (x - mean) / sqrt(variance + epsilon), scaled and shifted, in the variants that exporters write.
void layer_norm(Builder& b) {
  const Value x = b.want_float(2, 4);
  const int64_t over = x.rank() > 2 && b.random.chance(20) ? 2 : 1;
  const Axes axes = last_axes(x, over);
  for (int64_t axis : axes)
    if (x.dim(axis).symbol != 0) return;
  const Value start = b.bounded(x, 10);
  const Value centred = b.binary("Sub", start, b.reduce("ReduceMean", start, axes, true));
  const Value again = b.random.chance(15)
                          ? b.binary("Sub", start, b.reduce("ReduceMean", start, axes, true))
                          : centred;
  Value variance = b.reduce("ReduceMean", power(b, again, 2), axes, true);
  variance.low = 0;
  const Value spread =
      b.unary("Sqrt", b.binary("Add", variance, b.like(x, b.random.of({1e-5, 1e-3, 1e-2}))));
  Value y = centred;
  y.low = -4;
  y.high = 4;
  y = b.random.chance(75) ? b.add("Div", {centred, spread}, y)
                          : b.add("Mul", {centred, b.add("Reciprocal", {spread}, spread)}, y);
  Axes dims;
  for (int64_t axis : axes) dims.push_back(x.dim(axis).n);
  if (b.random.chance(85)) y = swapped(b, "Mul", y, b.constant(x.type, dims, 0.5, 1.5));
  if (b.random.chance(75)) swapped(b, "Add", y, b.constant(x.type, dims, -1, 1));
}

void rms_norm(Builder& b) {
  const Value x = b.want_float(2, 4);
  const Dim last = x.dim(x.rank() - 1);
  if (last.symbol != 0) return;
  const Value start = b.bounded(x, 10);
  Value mean = b.reduce("ReduceMean", power(b, start, 2), {x.rank() - 1}, true);
  mean.low = 0;
  const Value spread = b.unary("Sqrt", b.binary("Add", mean, b.like(x, 1e-3)));
  Value y = start;
  y.low = -4;
  y.high = 4;
  y = b.random.chance(50) ? b.add("Div", {start, spread}, y)
                          : b.add("Mul", {start, b.add("Reciprocal", {spread}, spread)}, y);
  swapped(b, "Mul", y, b.constant(x.type, {last.n}, 0.5, 1.5));
}

// GroupNormalization, with groups of channels as the rows of an InstanceNormalization.
void group_norm(Builder& b) {
  const auto found = b.pick([](const Value& value) {
    return value.type == DType::Float32 && value.rank() == 4 && value.fixed() &&
           value.dim(1).n % 2 == 0 && value.count() > 0 && value.count() <= kMaxElements;
  });
  if (!found) return;
  const Value& x = *found;
  const int64_t rest = x.count() / x.dim(0).n / 2;
  Value y = b.reshape(x, {0, 2, -1}, {x.dim(0), {2, 0}, {rest, 0}});
  y = b.bounded(y, 10);
  y.low = -4;
  y.high = 4;
  y = b.add("InstanceNormalization",
            {y, b.constant(x.type, {2}, 1, 1), b.constant(x.type, {2}, 0, 0)}, y,
            {{"epsilon", 1e-3f}});
  y = b.reshape(y, sizes(x.dims), x.dims);
  y = swapped(b, "Mul", y, b.constant(x.type, {x.dim(1).n, 1, 1}, 0.5, 1.5));
  swapped(b, "Add", y, b.constant(x.type, {x.dim(1).n, 1, 1}, -1, 1));
}

void own_norm(Builder& b) {
  if (b.opset() < 17) return layer_norm(b);
  const Value start = b.want_float(2, 4);
  const Dim last = start.dim(start.rank() - 1);
  if (last.symbol != 0) return;
  Value x = b.bounded(start, 10);
  if (b.random.chance(50)) x = b.binary("Add", x, b.partner(x));
  normalised_rows(b, x);
}

constexpr Family kActivationFamilies[] = {
    {"activations", 8, activations}, {"layer_norm", 6, layer_norm}, {"rms_norm", 3, rms_norm},
    {"group_norm", 2, group_norm},   {"own_norm", 2, own_norm},
};

}  // namespace

Value normalised_rows(Builder& b, const Value& x) {
  const Axes row = {x.dim(x.rank() - 1).n};
  const Value in = b.bounded(x, 10);
  Value out = in;
  out.low = -6;
  out.high = 6;
  return b.add("LayerNormalization",
               {in, b.constant(x.type, row, 0.5, 1.5), b.constant(x.type, row, -1, 1)}, out,
               {{"epsilon", 1e-3f}});
}

Value activation(Builder& b, const Value& x) {
  if (!is_float(x.type)) return b.unary("Abs", x);
  switch (b.random.range(0, 11)) {
    case 0:
      return gelu_erf(b, x);
    case 1:
      return gelu_tanh(b, x);
    case 2:
      return silu(b, x);
    case 3:
      return hard_swish(b, x);
    case 4:
      return b.clip(x, 0, 6);
    case 5:
      return b.unary("Sigmoid", x);
    case 6:
      return b.unary("Tanh", x);
    case 7:
      return b.unary("LeakyRelu", x, {{"alpha", 0.1f}});
    default:
      return b.unary("Relu", x);
  }
}

std::span<const Family> activation_families() { return kActivationFamilies; }

}  // namespace pfrt_optimise
