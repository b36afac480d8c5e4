// SPDX-License-Identifier: Apache-2.0
//
// Layers of random models: reductions, products, convolutions, poolings, quantization. Each bounds
// the values of its output, so that none overflows.
#include <algorithm>
#include <cmath>

#include "test/optimise/builder.h"

namespace pfrt_optimise {
namespace {

// Number of windows along axis |i|; 0 where none fits.
int64_t windows(int64_t n, const Builder::Window& w, size_t i) {
  const size_t rank = w.kernel.size();
  const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
  const int64_t room = n + w.pads[i] + w.pads[i + rank] - reach;
  return room < 0 ? 0 : room / w.strides[i] + 1;
}

Dims windowed(const Value& x, int64_t channels, const Builder::Window& window) {
  Dims dims = {x.dim(0), {channels, 0}};
  for (size_t i = 0; i < window.kernel.size(); ++i)
    dims.push_back({windows(x.dims[i + 2].n, window, i), 0});
  return dims;
}

}  // namespace

Value Builder::reduce(const std::string& op, const Value& value, Axes axes, bool keep) {
  Value x = value;
  if (op == "ReduceLogSumExp" || op == "ReduceSumSquare") x = bounded(x, 4);
  if (op == "ReduceProd") x = bounded(x, 1);
  int64_t count = 1;
  for (int64_t axis : axes) count *= x.dim(axis).n;
  Value out = x;
  const double total = static_cast<double>(count) * x.magnitude();
  if (op == "ReduceSum") out.low = x.low >= 0 ? 0 : -total, out.high = total;
  if (op == "ReduceL1" || op == "ReduceL2") out.low = 0, out.high = total;
  if (op == "ReduceSumSquare") out.low = 0, out.high = total * x.magnitude();
  if (op == "ReduceLogSumExp") out.low = x.low, out.high = x.high + 8;
  if (op == "ReduceProd") out.low = -x.magnitude(), out.high = x.magnitude();
  std::sort(axes.begin(), axes.end());
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    out.dims.erase(out.dims.begin() + *axis);
    if (keep) out.dims.insert(out.dims.begin() + *axis, Dim{1, 0});
  }
  Attributes attributes;
  if (!keep || random.chance(50)) attributes["keepdims"] = int64_t{keep};
  if (static_cast<int64_t>(axes.size()) == x.rank() && random.chance(40))
    return add(op, {x}, out, attributes);
  axes = spell_all(std::move(axes), x.rank());
  if (opset() >= (op == "ReduceSum" ? 13 : 18)) return add(op, {x, ints(axes)}, out, attributes);
  attributes["axes"] = axes;
  return add(op, {x}, out, attributes);
}

Value Builder::softmax(const Value& x, int64_t axis, bool log) {
  Value out = x;
  out.low = log ? -2 * x.magnitude() - 8 : 0;
  out.high = log ? 0 : 1;
  return add(log ? "LogSoftmax" : "Softmax", {x}, out, {{"axis", spell(axis, x.rank())}});
}

Value Builder::matmul(const Value& left, const Value& right) {
  const Value a = bounded(left, 20), b = bounded(right, 20);
  Dims rows(a.dims.begin(), a.dims.end() - 2), columns(b.dims.begin(), b.dims.end() - 2);
  Value out = a;
  out.dims = *broadcast(rows, columns);
  out.dims.push_back(a.dim(a.rank() - 2));
  out.dims.push_back(b.dim(b.rank() - 1));
  const auto depth = static_cast<double>(a.dim(a.rank() - 1).n);
  out.high = a.magnitude() * b.magnitude() * std::sqrt(depth) * 1.5;
  out.low = a.low >= 0 && b.low >= 0 ? 0 : -out.high;
  return add("MatMul", {a, b}, out);
}

Value Builder::gemm(const Value& left, const Value& right, const std::optional<Value>& c,
                    Attributes attributes) {
  const Value a = bounded(left, 20), b = bounded(right, 20);
  const auto flag = [&](const char* name) {
    const auto found = attributes.find(name);
    return found != attributes.end() && std::get<int64_t>(found->second) != 0;
  };
  Value out = a;
  out.dims = {a.dim(flag("transA") ? 1 : 0), b.dim(flag("transB") ? 0 : 1)};
  const auto depth = static_cast<double>(a.dim(flag("transA") ? 0 : 1).n);
  out.high = a.magnitude() * b.magnitude() * std::sqrt(depth) * 1.5 + (c ? 2 * c->magnitude() : 0);
  out.low = -out.high;
  Values in = {a, b};
  if (c) in.push_back(*c);
  return add("Gemm", in, out, std::move(attributes));
}

Value Builder::conv(const Value& value, int64_t channels, const Window& w, bool bias) {
  const Value x = bounded(value, 20);
  const int64_t depth = x.dim(1).n / w.group;
  std::vector<int64_t> weight = {channels, depth};
  int64_t reach = depth;
  for (int64_t k : w.kernel) {
    weight.push_back(k);
    reach *= k;
  }
  const double size = 1.7 / std::sqrt(static_cast<double>(reach));
  const bool fed = !is_body() && random.chance(6);
  Dims weight_dims;
  for (int64_t n : weight) weight_dims.push_back({n, 0});
  Values in = {
      x, fed ? input(x.type, weight_dims, -size, size) : constant(x.type, weight, -size, size)};
  if (bias) in.push_back(constant(x.type, {channels}, -0.5, 0.5));
  Value out = x;
  out.dims = windowed(x, channels, w);
  out.high = 2 * x.magnitude() + 0.5;
  out.low = -out.high;
  Attributes attributes;
  if (random.chance(60)) attributes["kernel_shape"] = w.kernel;
  const auto needed = [&](const Axes& values, int64_t plain) {
    return random.chance(40) || values != Axes(values.size(), plain);
  };
  if (needed(w.strides, 1)) attributes["strides"] = w.strides;
  if (needed(w.dilations, 1)) attributes["dilations"] = w.dilations;
  if (needed(w.pads, 0)) attributes["pads"] = w.pads;
  if (needed({w.group}, 1)) attributes["group"] = w.group;
  const bool same =
      std::all_of(w.strides.begin(), w.strides.end(), [](int64_t s) { return s == 1; }) &&
      out.dims[2] == x.dims[2] && out.dims.back() == x.dims.back() && w.kernel.back() == 3;
  if (same && random.chance(30) && w.pads == Axes(w.pads.size(), 1)) {
    attributes.erase("pads");
    attributes["auto_pad"] = std::string(random.chance(50) ? "SAME_UPPER" : "SAME_LOWER");
  }
  return add("Conv", in, out, attributes);
}

Value Builder::batch_norm(const Value& value) {
  const Value x = bounded(value, 50);
  const std::vector<int64_t> channels = {x.dim(1).n};
  const Values in = {x, constant(x.type, channels, 0.5, 1.5), constant(x.type, channels, -0.5, 0.5),
                     constant(x.type, channels, -0.5, 0.5), constant(x.type, channels, 0.6, 2.0)};
  Value out = x;
  out.high = 2 * x.magnitude() + 2;
  out.low = -out.high;
  Attributes attributes;
  if (random.chance(50)) attributes["epsilon"] = random.of({1e-5f, 1e-3f});
  if (random.chance(20)) attributes["momentum"] = 0.8f;
  return add("BatchNormalization", in, out, attributes);
}

Value Builder::pool(const std::string& op, const Value& x, const Window& w) {
  Value out = x;
  out.dims = windowed(x, x.dim(1).n, w);
  Attributes attributes = {{"kernel_shape", w.kernel}};
  if (random.chance(40) || w.strides != Axes(w.strides.size(), 1))
    attributes["strides"] = w.strides;
  if (random.chance(40) || w.pads != Axes(w.pads.size(), 0)) attributes["pads"] = w.pads;
  if (op == "AveragePool") {
    out.low = std::min(out.low, 0.0);
    out.high = std::max(out.high, 0.0);
    if (random.chance(30)) attributes["count_include_pad"] = int64_t{1};
  }
  return add(op, {x}, out, attributes);
}

Value Builder::quantize(const Value& value, double scale, double zero_point, DType to) {
  const Value x = bounded(value, 50);
  Values in = {x, constant_of(make_tensor(DType::Float32, {}, {scale}), scale, scale)};
  if (to != DType::UInt8 || zero_point != 0 || random.chance(50))
    in.push_back(constant_of(make_tensor(to, {}, {zero_point}), 0, 0));
  const bool is_signed = to == DType::Int8;
  return add("QuantizeLinear", in,
             {"", to, x.dims, is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0});
}

Value Builder::dequantize(const Value& x, double scale, double zero_point) {
  Values in = {x, constant_of(make_tensor(DType::Float32, {}, {scale}), scale, scale)};
  if (zero_point != 0 || random.chance(70))
    in.push_back(constant_of(make_tensor(x.type, {}, {zero_point}), 0, 0));
  return add(
      "DequantizeLinear", in,
      {"", DType::Float32, x.dims, (x.low - zero_point) * scale, (x.high - zero_point) * scale});
}

}  // namespace pfrt_optimise
