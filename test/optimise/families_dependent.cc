// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

// Operators whose contents decide the size of the result. These contents come from inputs without
// any rounding, so that they are equal at all levels, and never give an empty result where no input
// is empty.

Dims source_dims(Builder& b, int64_t rank) {
  Dims dims = b.random_dims(rank, false);
  dims[0] = b.is_body() || b.random.chance(15) ? Dim{b.random.range(2, 4), 0} : b.varying_size();
  return dims;
}

Value source(Builder& b, DType type, const Dims& dims, double low, double high) {
  if (!b.is_body() && b.graph().inputs.size() < 6) return b.input(type, dims, low, high);
  Dims fixed = dims;
  for (Dim& dim : fixed) dim.symbol = 0;
  return b.initializer(b.random_tensor(type, sizes(fixed), low, high), low, high);
}

Value exact(Builder& b, const Value& x) {
  Value out = x;
  for (int64_t i = b.random.range(0, 2); i > 0; --i) {
    if (is_float(x.type) && b.random.chance(50))
      out = b.unary(b.random.of({"Neg", "Relu", "Abs"}), out);
    else
      out = b.unary("Identity", out);
  }
  return out;
}

int64_t guess(const Value& x) { return std::max<int64_t>(1, x.count() / 2); }

// Uses rows whose number is unknown.
void use_rows(Builder& b, const Value& x) {
  if (x.rank() == 0) return;
  const int64_t axis = b.random.range(0, x.rank() - 1);
  switch (b.random.range(0, 7)) {
    case 0:
      size_arithmetic(b, x, b.random.range(1, 6));
      return;
    case 1:
      b.reduce(b.random.of({"ReduceSum", "ReduceMax"}), b.cast(x, DType::Float32), {axis},
               b.random.chance(50));
      return;
    case 2:
      b.concat({x, x}, axis);
      return;
    case 3:
      b.cast(x, b.random.of({DType::Float32, DType::Int32}));
      return;
    case 4:
      b.slice(x, axis, 0, 1);
      return;
    case 5:
      if (x.rank() >= 2) b.transpose(x, x.rank() == 2 ? Axes{1, 0} : Axes{0, 2, 1});
      return;
    default:
      elementwise_chain(b, b.cast(x, DType::Float32), b.random.range(1, 3));
      return;
  }
}

// Returns the positions of non-zero elements in a tensor as large as |x|; there is at least one.
Value non_zero(Builder& b, const Value& x) {
  Dims row = x.dims;
  row[0] = {1, 0};
  for (Dim& dim : row) dim.symbol = 0;
  const Value ones =
      b.initializer(b.random_tensor(x.type, sizes(row), 1, x.type == DType::Bool ? 1 : 2), 1, 2);
  const Value all = b.concat({ones, b.random.chance(50) ? exact(b, x) : x}, 0);
  return b.add("NonZero", {all},
               {"", DType::Int64, {{x.rank(), 0}, {guess(x), b.new_symbol()}}, 0, 8});
}

void non_zeros(Builder& b) {
  if (b.opset() < 13) return;
  const DType type = b.random.of({DType::Float32, DType::Int64, DType::Bool, DType::Int32});
  const Value x = source(b, type, source_dims(b, b.random.range(1, 3)), 0, 1);
  const Value found = non_zero(b, x);
  if (b.random.chance(40)) return use_rows(b, found);
  // Exporters write data[mask] so.
  const Value places = b.transpose(found, {1, 0});
  Value padded = b.concat({x, x}, 0);
  Value out = padded;
  out.dims = {found.dim(1)};
  use_rows(b, b.add("GatherND", {padded, places}, out));
}

void compresses(Builder& b) {
  if (b.opset() < 11) return;
  const Value x = source(b, b.random.of({DType::Float32, DType::Int64}),
                         source_dims(b, b.random.range(1, 3)), -2, 2);
  Value marks = source(b, DType::Float32, {x.dim(0)}, -1, 1);
  // The first row is always taken.
  marks = b.concat({b.initializer(make_tensor(DType::Float32, {1}, {1}), 1, 1), marks}, 0);
  Value condition = b.slice(b.compare("Greater", marks, b.scalar(DType::Float32, 0)), 0, 0, 1);
  condition = b.concat(
      {condition, b.slice(b.compare("Less", marks, b.scalar(DType::Float32, 0)), 0, 1, INT64_MAX)},
      0);
  Value out = x;
  const bool flat = b.random.chance(30);
  if (flat) out.dims = {Dim{}};
  out.dims[0] = {guess(x), b.new_symbol()};
  const Value whole = b.concat({x, x}, 0);
  use_rows(b, b.add("Compress", {whole, condition}, out,
                    flat ? Attributes{} : Attributes{{"axis", int64_t{0}}}));
}

void uniques(Builder& b) {
  if (b.opset() < 11) return;
  const Value x = exact(b, source(b, b.random.of({DType::Int64, DType::Float32}),
                                  source_dims(b, b.random.range(1, 2)), 0, 3));
  const bool along = b.random.chance(40);
  const Dim found{guess(x), b.new_symbol()};
  Value values = x;
  values.dims = along ? x.dims : Dims{found};
  values.dims[0] = found;
  Dim all = x.dim(0);
  if (!along && x.rank() > 1) all = {x.count(), x.fixed() ? 0 : b.new_symbol()};
  Attributes attributes = {{"sorted", b.random.range(0, 1)}};
  if (along) attributes["axis"] = int64_t{0};
  Values outs = {values,
                 {"", DType::Int64, {found}, 0, 8},
                 {"", DType::Int64, {all}, 0, 8},
                 {"", DType::Int64, {found}, 0, 8}};
  outs.resize(static_cast<size_t>(b.random.range(1, 4)));
  outs = b.add_all("Unique", {x}, outs, attributes);
  // Unique makes all its outputs, used or not.
  use_rows(b, b.random.of(outs));
  if (b.random.chance(30)) use_rows(b, b.random.of(outs));
}

void suppressions(Builder& b) {
  if (b.opset() < 13) return;
  const Dims dims = source_dims(b, 1);
  const Value boxes = source(b, DType::Float32, {{1, 0}, dims[0], {4, 0}}, 0, 1);
  const Value scores =
      source(b, DType::Float32, {{1, 0}, {b.random.range(1, 2), 0}, dims[0]}, 0, 1);
  const Value most = b.initializer(make_tensor(DType::Int64, {1}, {20}), 0, 20);
  const Value overlap = b.initializer(make_tensor(DType::Float32, {1}, {0.3}), 0, 1);
  const Value chosen = b.add("NonMaxSuppression", {boxes, scores, most, overlap},
                             {"", DType::Int64, {{guess(scores), b.new_symbol()}, {3, 0}}, 0, 8});
  if (b.random.chance(50)) return use_rows(b, chosen);
  const Value at = b.squeeze(b.slice(chosen, 1, 2, 3), {1});
  Value taken = boxes;
  taken.dims[1] = chosen.dim(0);
  use_rows(b, b.add("Gather", {boxes, at}, taken, {{"axis", int64_t{1}}}));
}

// An If whose branches find different numbers of rows.
void found_in_branches(Builder& b) {
  if (b.opset() < 13 || b.is_body()) return;
  const Value x = source(b, DType::Int64, source_dims(b, b.random.range(1, 2)), 0, 1);
  const Value condition = b.input(DType::Bool, {}, 0, 1);
  std::vector<BodySpec> bodies;
  const Dim found{guess(x), b.new_symbol()};
  for (const char* attribute : {"then_branch", "else_branch"}) {
    BodySpec body{attribute, {}};
    Builder inner(b.random, b.model(), body.graph, &b);
    const Value places = non_zero(inner, b.random.chance(50) ? x : inner.unary("Neg", x));
    body.graph.outputs.push_back(inner.unary("Identity", places).name);
    bodies.push_back(std::move(body));
  }
  const Value out{"", DType::Int64, {{x.rank(), 0}, found}, 0, 8};
  use_rows(b, b.add_all("If", {condition}, {out}, {}, std::move(bodies))[0]);
}

// A loop whose carried value grows with each iteration.
void grown_in_loops(Builder& b) {
  if (b.opset() < 13 || b.is_body()) return;
  const Value x = source(b, DType::Float32, source_dims(b, b.random.range(1, 2)), 0, 1);
  const int64_t trips = b.random.range(1, 3);
  const Value count =
      b.input(DType::Int64, {}, static_cast<double>(trips), static_cast<double>(trips + 1));
  Dim grown{x.dim(0).n * (trips + 1), b.new_symbol()};
  BodySpec body{"body", {}};
  Builder inner(b.random, b.model(), body.graph, &b);
  inner.input(DType::Int64, {}, 0, 3);
  const Value condition = inner.input(DType::Bool, {}, 1, 1);
  Dims open = x.dims;
  open[0] = {x.dim(0).n, b.new_symbol()};
  const Value carried = inner.input(DType::Float32, open, 0, 1);
  const Value joined = inner.concat({carried, x}, 0);
  Value places = inner.add("NonZero", {joined},
                           {"", DType::Int64, {{x.rank(), 0}, {x.count(), b.new_symbol()}}, 0, 8});
  const Value size = inner.shape(places);
  body.graph.outputs = {inner.unary("Identity", condition).name, joined.name, size.name};
  Value last = x;
  last.dims[0] = grown;
  const Value sizes_seen{"", DType::Int64, {{trips, b.new_symbol()}, {2, 0}}, 0, 64};
  const Values outs =
      b.add_all("Loop", {count, Value{}, x}, {last, sizes_seen}, {}, {std::move(body)});
  use_rows(b, outs[0]);
}

constexpr Family kDependentFamilies[] = {
    {"non_zeros", 6, non_zeros},
    {"compresses", 5, compresses},
    {"uniques", 5, uniques},
    {"suppressions", 4, suppressions},
    {"found_in_branches", 2, found_in_branches},
    {"grown_in_loops", 2, grown_in_loops},
};

}  // namespace

std::span<const Family> dependent_families() { return kDependentFamilies; }

}  // namespace pfrt_optimise
