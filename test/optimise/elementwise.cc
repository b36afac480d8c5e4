// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "test/optimise/builder.h"

namespace pfrt_optimise {
namespace {

double cap(DType type) { return type == DType::Float16 ? 30 : 1000; }

struct Bounds {
  double low, high;
};

Bounds product(const Value& a, const Value& b) {
  const auto [low, high] =
      std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return {low, high};
}

Bounds unary_bounds(const std::string& op, double low, double high) {
  const double magnitude = std::max(std::abs(low), std::abs(high));
  if (op == "Relu") return {std::max(low, 0.0), std::max(high, 0.0)};
  if (op == "Sigmoid" || op == "HardSigmoid") return {0, 1};
  if (op == "Tanh" || op == "Erf" || op == "Sin" || op == "Cos" || op == "Softsign" || op == "Sign")
    return {-1, 1};
  if (op == "Abs") return {low >= 0 ? low : 0, magnitude};
  if (op == "Neg") return {-high, -low};
  if (op == "Exp") return {std::exp(low), std::exp(high)};
  if (op == "Sqrt") return {std::sqrt(low), std::sqrt(high)};
  if (op == "Log") return {std::log(low), std::log(high)};
  if (op == "Reciprocal") return {std::min(1 / low, 1 / high), std::max(1 / low, 1 / high)};
  if (op == "Identity" || op == "Dropout" || op == "Not") return {low, high};
  if (op == "Floor" || op == "Ceil" || op == "Round") return {std::floor(low), std::ceil(high)};
  if (op == "Softplus") return {0, magnitude + 1};
  return {-magnitude - 2, 1.1 * magnitude + 1};
}

}  // namespace

Value Builder::unary(const std::string& op, const Value& value, Attributes attributes) {
  Value x = value;
  if (op == "Exp") x = bounded(x, 3);
  if (op == "Softplus") x = bounded(x, 15);
  if (op == "Sqrt" && x.low < 0) x = unary("Abs", x);
  const bool near_zero = x.low < 0.05 && x.high > -0.05;
  if ((op == "Log" && x.low < 0.05) || (op == "Reciprocal" && near_zero))
    x = binary("Add", unary("Abs", x), scalar(x.type, 0.3));
  Value out = x;
  const Bounds bounds = unary_bounds(op, x.low, x.high);
  out.low = bounds.low;
  out.high = bounds.high;
  return add(op, {x}, out, std::move(attributes));
}

Value Builder::binary(const std::string& op, const Value& left, const Value& right) {
  Value a = bounded(left, cap(left.type)), b = bounded(right, cap(right.type));
  if (op == "Div" && b.low < 0.1 && b.high > -0.1)
    b = scalar(b.type, is_float(b.type) ? random.uniform(0.5, 3) : 3);
  Value out = a;
  out.dims = *broadcast(a.dims, b.dims);
  Bounds bounds{std::min(a.low, b.low), std::max(a.high, b.high)};
  if (op == "Add") bounds = {a.low + b.low, a.high + b.high};
  if (op == "Sub") bounds = {a.low - b.high, a.high - b.low};
  if (op == "Mul") bounds = product(a, b);
  if (op == "Div") {
    Value inverse = b;
    inverse.low = 1 / b.high;
    inverse.high = 1 / b.low;
    bounds = product(a, inverse);
  }
  out.low = bounds.low;
  out.high = bounds.high;
  return add(op, {a, b}, out);
}

Value Builder::compare(const std::string& op, const Value& a, const Value& b) {
  return add(op, {a, b}, {"", DType::Bool, *broadcast(a.dims, b.dims), 0, 1});
}

Value Builder::where(const Value& condition, const Value& a, const Value& b) {
  const Dims dims = *broadcast(condition.dims, *broadcast(a.dims, b.dims));
  return add("Where", {condition, a, b},
             {"", a.type, dims, std::min(a.low, b.low), std::max(a.high, b.high)});
}

Value Builder::cast(const Value& value, DType to) {
  Value x = value;
  const bool small = to == DType::Int8 || to == DType::UInt8;
  if (x.type != DType::Bool && to != DType::Bool) {
    x = bounded(x, small ? 100 : to == DType::Float16 ? 1000 : 1e5);
    if (to == DType::UInt8 && x.low < 0) x = unary("Abs", x);
  }
  // ONNX's numbers for element types.
  const std::map<DType, int64_t> numbers = {
      {DType::Float32, 1}, {DType::UInt8, 2}, {DType::Int8, 3},    {DType::Int32, 6},
      {DType::Int64, 7},   {DType::Bool, 9},  {DType::Float16, 10}};
  Value out = x;
  out.type = to;
  if (to == DType::Bool) out.low = 0, out.high = 1;
  return add("Cast", {x}, out, {{"to", numbers.at(to)}});
}

Value Builder::clip(const Value& x, double low, double high) {
  Value out = x;
  out.low = std::clamp(x.low, low, high);
  out.high = std::clamp(x.high, low, high);
  if (opset() < 11) {
    return add("Clip", {x}, out,
               {{"min", static_cast<float>(low)}, {"max", static_cast<float>(high)}});
  }
  const auto bound = [&](double value) {
    return constant_of(make_tensor(x.type, {}, {value}), value, value);
  };
  const Value least = bound(low);
  return add("Clip", {x, least, bound(high)}, out);
}

Value Builder::dropout(const Value& x) {
  const bool mask = opset() >= 10 && random.chance(20);
  Values outs = {x};
  if (mask) outs.push_back({"", DType::Bool, x.dims, 0, 1});
  if (opset() < 12) return add_all("Dropout", {x}, outs, {{"ratio", 0.3f}})[0];
  Values in = {x};
  if (random.chance(60)) in.push_back(constant_of(make_tensor(DType::Float32, {}, {0.3}), 0, 1));
  if (in.size() == 2 && random.chance(30))
    in.push_back(constant_of(make_tensor(DType::Bool, {}, {0}), 0, 0));
  return add_all("Dropout", in, outs)[0];
}

}  // namespace pfrt_optimise
