// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

// The scales are no powers of two, so that few numbers lie midway between two steps.
constexpr double kScale = 0.0173, kWeightScale = 0.0071;

struct Steps {
  double scale, zero_point;
  DType type;
};

Steps some_steps(Builder& b) {
  const DType type = b.random.chance(60) ? DType::UInt8 : DType::Int8;
  return {kScale * b.random.uniform(0.8, 2.5),
          b.random.chance(30) ? 0.0 : static_cast<double>(type == DType::UInt8 ? 120 : 3), type};
}

Value quantised(Builder& b, const Value& x, const Steps& steps) {
  return b.quantize(x, steps.scale, steps.zero_point, steps.type);
}

Value there_and_back(Builder& b, const Value& x, const Steps& steps) {
  return b.dequantize(quantised(b, x, steps), steps.scale, steps.zero_point);
}

Value weights(Builder& b, const Axes& dims) {
  const Value q = b.constant_of(b.random_tensor(DType::Int8, dims, -90, 90), -90, 90);
  if (b.opset() < 13 || dims.size() < 2 || b.random.chance(50))
    return b.dequantize(q, kWeightScale, 0);
  const int64_t axis = dims.size() == 2 ? 1 : 0;
  const int64_t n = dims[static_cast<size_t>(axis)];
  const Value scale = b.initializer(b.random_tensor(DType::Float32, {n}, 0.005, 0.009), 0, 1);
  const Value zero = b.initializer(
      make_tensor(DType::Int8, {n}, std::vector<double>(static_cast<size_t>(n), 0)), 0, 0);
  return b.add("DequantizeLinear", {q, scale, zero}, {"", DType::Float32, q.dims, -0.8, 0.8},
               {{"axis", axis}});
}

void pairs(Builder& b) {
  if (b.opset() < 10) return;
  const Steps steps = some_steps(b);
  Value x = there_and_back(b, b.want(DType::Float32, 1, 4), steps);
  if (b.random.chance(40)) x = there_and_back(b, x, steps);
  if (b.random.chance(40)) there_and_back(b, b.unary("Relu", x), some_steps(b));
}

void quantised_product(Builder& b) {
  if (b.opset() < 10) return;
  const Value start = b.want(DType::Float32, 2, 3);
  const Dim depth = start.dim(start.rank() - 1);
  if (depth.symbol != 0) return;
  const int64_t width = b.random.of<int64_t>({2, 4, 8});
  if (start.count() / depth.n * width > kMaxElements) return;
  const Value x = there_and_back(b, start, some_steps(b));
  Value y = b.matmul(x, weights(b, {depth.n, width}));
  if (b.random.chance(50)) y = b.binary("Add", y, b.constant(DType::Float32, {width}, -1, 1));
  if (b.random.chance(40)) y = b.unary("Relu", y);
  there_and_back(b, y, some_steps(b));
}

void quantised_conv(Builder& b) {
  if (b.opset() < 10) return;
  const auto found = b.pick([](const Value& value) {
    return value.type == DType::Float32 && value.rank() == 4 && value.fixed() &&
           value.count() > 0 && value.dim(2).n >= 3 && value.dim(3).n >= 3 &&
           value.count() <= kMaxElements;
  });
  const Value start = found ? *found : b.constant(DType::Float32, {1, 3, 5, 5}, -2, 2);
  const Value x = there_and_back(b, start, some_steps(b));
  const int64_t channels = b.random.of<int64_t>({2, 4});
  Values in = {x, weights(b, {channels, x.dim(1).n, 3, 3})};
  if (b.random.chance(50)) in.push_back(b.constant(DType::Float32, {channels}, -0.5, 0.5));
  Value out = x;
  out.dims[1] = {channels, 0};
  out.high = x.magnitude() * 2;
  out.low = -out.high;
  Value y = b.add("Conv", in, out, {{"pads", Axes{1, 1, 1, 1}}});
  if (b.random.chance(50)) y = b.unary("Relu", y);
  there_and_back(b, y, some_steps(b));
}

void quantised_sum(Builder& b) {
  if (b.opset() < 10) return;
  const Value x = b.want(DType::Float32, 1, 4);
  const Value a = there_and_back(b, x, some_steps(b));
  const Value c = there_and_back(b, b.partner(x), some_steps(b));
  there_and_back(b, b.binary(b.random.of({"Add", "Mul"}), a, c), some_steps(b));
}

// Moves elements between two pairs of QuantizeLinear and DequantizeLinear.
void quantised_copies(Builder& b) {
  if (b.opset() < 13) return;
  const Steps steps = some_steps(b);
  Value x = there_and_back(b, b.want(DType::Float32, 2, 4), steps);
  Axes perm;
  for (int64_t i = x.rank() - 1; i >= 0; --i) perm.push_back(i);
  if (b.random.chance(70)) x = b.transpose(x, perm);
  if (b.random.chance(50)) x = b.unsqueeze(x, {0});
  there_and_back(b, x, steps);
}

constexpr Family kQuantisedFamilies[] = {
    {"pairs", 2, pairs},
    {"quantised_product", 3, quantised_product},
    {"quantised_conv", 3, quantised_conv},
    {"quantised_sum", 2, quantised_sum},
    {"quantised_copies", 1, quantised_copies},
};

}  // namespace

std::span<const Family> quantised_families() { return kQuantisedFamilies; }

}  // namespace pfrt_optimise
