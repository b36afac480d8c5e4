// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

// Returns a batch of sequences, whose batch and length may vary.
Value want_sequences(Builder& b) {
  if (b.random.chance(50)) {
    const auto found = b.pick([](const Value& value) {
      return value.type == DType::Float32 && value.rank() == 3 && value.count() > 0 &&
             value.count() <= 512 && value.dim(2).symbol == 0 && value.dim(2).n % 2 == 0;
    });
    if (found) return *found;
  }
  Dims dims = b.random_dims(2, !b.is_body());
  for (Dim& dim : dims)
    if (dim.symbol == 0) dim.n = b.random.range(1, 5);
  dims.push_back({b.random.of<int64_t>({4, 6, 8, 12}), 0});
  if (!b.is_body() && b.graph().inputs.size() < 5) return b.input(DType::Float32, dims, -1, 1);
  return b.constant(DType::Float32, sizes(dims), -1, 1);
}

Value project(Builder& b, const Value& x, int64_t width, bool bias) {
  const int64_t depth = x.dim(x.rank() - 1).n;
  const double size = 1.7 / std::sqrt(static_cast<double>(depth));
  const Value y = b.matmul(x, b.constant(x.type, {depth, width}, -size, size));
  if (!bias) return y;
  const Value c = b.constant(x.type, {width}, -0.5, 0.5);
  return b.random.chance(50) ? b.binary("Add", y, c) : b.binary("Add", c, y);
}

// Turns {B, S, H * D} into {B, H, S, D}, or {B, H, D, S}.
Value heads_of(Builder& b, const Value& x, int64_t heads, bool turned) {
  const int64_t depth = x.dim(2).n / heads;
  const Dims dims = {x.dim(0), x.dim(1), {heads, 0}, {depth, 0}};
  const Value split = b.reshape(x, {0, 0, heads, b.random.chance(50) ? depth : -1}, dims);
  if (!turned) return b.transpose(split, {0, 2, 1, 3});
  if (b.random.chance(50)) return b.transpose(split, {0, 2, 3, 1});
  return b.transpose(b.transpose(split, {0, 2, 1, 3}), {0, 1, 3, 2});
}

void attention(Builder& b) {
  const Value x = want_sequences(b);
  const int64_t width = x.dim(2).n;
  const int64_t heads = width % 4 == 0 && b.random.chance(50) ? 4 : 2;
  const bool bias = b.random.chance(70);
  Value q, k, v;
  if (b.random.chance(30)) {  // one product for queries, keys and values
    const Value all = project(b, x, 3 * width, bias);
    const Values parts = b.split(all, 2, {width, width, width});
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    q = project(b, x, width, bias);
    k = project(b, x, width, bias);
    v = project(b, x, width, bias);
  }
  q = heads_of(b, q, heads, false);
  k = heads_of(b, k, heads, true);
  v = heads_of(b, v, heads, false);
  const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  const int64_t where = b.random.range(0, 3);
  if (where == 1) q = b.binary("Mul", q, b.like(q, scale));
  Value scores = b.matmul(q, k);
  if (where == 0) scores = b.binary("Div", scores, b.like(scores, 1 / scale));
  if (where == 2) scores = b.binary("Mul", scores, b.like(scores, scale));
  const Dim length = x.dim(1);
  if (b.random.chance(50)) {
    if (length.symbol == 0 && b.opset() >= 9 && b.random.chance(40)) {
      std::vector<double> lower;
      for (int64_t i = 0; i < length.n; ++i)
        for (int64_t j = 0; j < length.n; ++j) lower.push_back(j <= i ? 1 : 0);
      const Value causal =
          b.constant_of(make_tensor(DType::Bool, {length.n, length.n}, lower), 0, 1);
      scores = b.where(causal, scores, b.like(scores, -1000));
    } else if (!b.is_body()) {
      const Value mask = b.input(DType::Float32, {x.dim(0), {1, 0}, {1, 0}, length}, -3, 0);
      scores = b.binary("Add", scores, mask);
    }
  }
  const Value weights = b.softmax(scores, b.opset() >= 13 ? 3 : scores.rank() - 1);
  Value y = b.matmul(b.random.chance(20) ? b.dropout(weights) : weights, v);
  y = b.transpose(y, {0, 2, 1, 3});
  y = b.reshape(y, {0, 0, b.random.chance(50) ? width : -1}, x.dims);
  if (b.random.chance(70)) y = project(b, y, width, bias);
  if (b.random.chance(60)) b.binary("Add", y, x);
}

// Products of one input with several weights.
void siblings(Builder& b) {
  const Value x = want_sequences(b);
  const bool bias = b.random.chance(50);
  Value gate;
  for (int64_t i = b.random.range(2, 3); i > 0; --i) {
    const int64_t width = b.random.of<int64_t>({4, 4, 6});
    const Value y = project(b, x, width, bias);
    if (!gate.name.empty() && gate.dims == y.dims) b.binary("Mul", activation(b, gate), y);
    gate = y;
  }
}

// Rotates halves of the last dimension by tables of sines and cosines.
void rotary(Builder& b) {
  const Value x = want_sequences(b);
  const int64_t width = x.dim(2).n, half = width / 2;
  const int64_t length = x.dim(1).symbol == 0 ? x.dim(1).n : 1;
  const Value first = b.slice(x, 2, 0, half), second = b.slice(x, 2, half, INT64_MAX);
  const Value turned = b.concat({b.unary("Neg", second), first}, 2);
  const Value cosines = b.constant(x.type, {length, width}, -1, 1);
  const Value sines = b.constant(x.type, {length, width}, -1, 1);
  b.binary("Add", b.binary("Mul", x, cosines), b.binary("Mul", turned, sines));
}

constexpr Family kAttentionFamilies[] = {
    {"attention", 5, attention},
    {"siblings", 3, siblings},
    {"rotary", 2, rotary},
};

}  // namespace

std::span<const Family> attention_families() { return kAttentionFamilies; }

}  // namespace pfrt_optimise
