// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

Value any_value(Builder& b, int64_t min_rank, int64_t max_rank) {
  const DType type =
      b.random.of({DType::Float32, DType::Float32, DType::Float32, DType::Float32, DType::Float16,
                   DType::Int64, DType::Int32, DType::Bool, DType::UInt8, DType::Int8});
  return b.want(
      b.opset() < 13 && type != DType::Float32 && b.random.chance(60) ? DType::Float32 : type,
      min_rank, max_rank);
}

Axes shuffled(Builder& b, int64_t rank) {
  Axes perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = perm.size(); i > 1; --i)
    std::swap(perm[i - 1],
              perm[static_cast<size_t>(b.random.range(0, static_cast<int64_t>(i) - 1))]);
  return perm;
}

std::optional<int64_t> fixed_axis(Builder& b, const Value& x, int64_t at_least) {
  for (int tries = 0; tries < 4 && x.rank() > 0; ++tries) {
    const int64_t axis = b.random.range(0, x.rank() - 1);
    if (x.dim(axis).symbol == 0 && x.dim(axis).n >= at_least) return axis;
  }
  return std::nullopt;
}

void transposes(Builder& b) {
  Value x = any_value(b, 2, 4);
  const Axes perm = shuffled(b, x.rank());
  x = b.transpose(x, perm);
  if (b.random.chance(50) && is_float(x.type)) x = elementwise_chain(b, x, b.random.range(1, 2));
  if (b.random.chance(50)) {
    Axes back(perm.size());
    for (size_t i = 0; i < perm.size(); ++i)
      back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    b.transpose(x, b.random.chance(70) ? back : shuffled(b, x.rank()));
  }
}

// Adds a reshape. Varying sizes are kept, or joined with a fixed neighbour, by -1.
Value some_reshape(Builder& b, const Value& x) {
  Axes shape;
  Dims dims;
  if (x.rank() >= 2 && b.random.chance(50)) {  // joins two neighbours
    const int64_t at = b.random.range(0, x.rank() - 2);
    for (int64_t i = 0; i < x.rank(); ++i) {
      const Dim& dim = x.dim(i);
      if (i == at) {
        const Dim& next = x.dim(++i);
        const bool varies = dim.symbol != 0 || next.symbol != 0;
        dims.push_back({dim.n * next.n, varies ? b.new_symbol() : 0});
        shape.push_back(-1);
      } else {
        dims.push_back(dim);
        shape.push_back(dim.symbol != 0 ? (i < at ? 0 : -2) : dim.n);
      }
    }
  } else {
    const auto axis = fixed_axis(b, x, 2);
    for (int64_t i = 0; i < x.rank(); ++i) {
      const Dim& dim = x.dim(i);
      if (axis == i) {  // splits it
        const int64_t part = dim.n % 2 == 0 ? 2 : dim.n;
        dims.insert(dims.end(), {{part, 0}, {dim.n / part, 0}});
        shape.insert(shape.end(), {part, dim.n / part});
      } else {
        dims.push_back(dim);
        shape.push_back(dim.symbol == 0 ? dim.n : axis && i > *axis ? -2 : 0);
      }
    }
  }
  // Behind a change of rank 0 cannot keep a varying size, so at most one can be written, as -1.
  if (std::count(shape.begin(), shape.end(), -2) != 0) {
    const auto open = std::count_if(shape.begin(), shape.end(), [](int64_t n) { return n < 0; });
    if (open != 1) return b.unary("Identity", x);
    std::replace(shape.begin(), shape.end(), int64_t{-2}, int64_t{-1});
  }
  return b.reshape(x, shape, dims);
}

void reshapes(Builder& b) {
  Value x = any_value(b, 1, 4);
  for (int64_t i = b.random.range(1, 3); i > 0; --i) x = some_reshape(b, x);
}

void squeezes(Builder& b) {
  Value x = any_value(b, 0, 3);
  x = b.unsqueeze(x, {b.random.range(0, x.rank())});
  if (b.random.chance(50)) x = b.unsqueeze(x, {b.random.range(0, x.rank())});
  Axes ones;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (x.dim(i) == Dim{1, 0} && b.random.chance(70)) ones.push_back(i);
  if (!ones.empty()) x = b.squeeze(x, ones);
  if (b.random.chance(30) && (is_float(x.type) || b.opset() >= 9))
    b.flatten(x, b.random.range(0, x.rank()));
}

void slices(Builder& b) {
  Value x = any_value(b, 1, 4);
  for (int64_t i = b.random.range(1, 2); i > 0; --i) {
    const auto axis = fixed_axis(b, x, 2);
    if (!axis) return;
    const int64_t n = x.dim(*axis).n;
    if (b.opset() >= 10 && b.random.chance(20)) {
      x = b.slice(x, *axis, n - 1, 0, b.random.of<int64_t>({-1, -2}));
    } else {
      const int64_t start = b.random.range(0, n / 2);
      const int64_t end = b.random.chance(30)
                              ? INT64_MAX
                              : b.random.range(b.random.chance(4) ? start : start + 1, n);
      x = b.slice(x, *axis, start, end,
                  b.opset() >= 10 && b.random.chance(25) ? b.random.range(2, 3) : 1);
    }
  }
}

void splits(Builder& b) {
  const Value x = any_value(b, 1, 4);
  const auto axis = fixed_axis(b, x, 2);
  if (!axis) return;
  const int64_t n = x.dim(*axis).n;
  const int64_t first = n % 2 == 0 && b.random.chance(60) ? n / 2 : b.random.range(1, n - 1);
  Values parts = b.split(x, *axis, {first, n - first});
  if (b.random.chance(50)) return;
  if (b.random.chance(50)) std::swap(parts[0], parts[1]);
  if (is_float(x.type) && b.random.chance(50)) parts[0] = elementwise_chain(b, parts[0], 1);
  b.concat(parts, *axis);
}

void concats(Builder& b) {
  const Value x = any_value(b, 1, 4);
  const int64_t axis = b.random.range(0, x.rank() - 1);
  Values parts = {x};
  for (int64_t i = b.random.range(1, 3); i > 0; --i) {
    const auto other = b.pick([&](const Value& value) {
      if (value.type != x.type || value.rank() != x.rank()) return false;
      for (int64_t d = 0; d < x.rank(); ++d)
        if (d != axis && !(value.dim(d) == x.dim(d))) return false;
      return true;
    });
    if (other && other->count() * 4 < kMaxElements) parts.push_back(*other);
  }
  if (x.count() * 4 > kMaxElements) return;
  const Value joined = b.concat(parts, axis);
  if (b.random.chance(40) && joined.dim(axis).symbol == 0) b.slice(joined, axis, 0, x.dim(axis).n);
}

void pads(Builder& b) {
  const Value x = b.opset() >= 11
                      ? b.want(b.random.of({DType::Float32, DType::Float32, DType::Int64}), 1, 4)
                      : b.want_float(1, 4);
  if (x.count() * 4 > kMaxElements) return;
  Axes amounts(2 * x.dims.size(), 0);
  const std::string mode = b.random.of({"constant", "constant", "reflect", "edge"});
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (x.dim(i).symbol != 0 || !b.random.chance(60)) continue;
    const int64_t most = mode == "reflect" ? std::min<int64_t>(x.dim(i).n - 1, 2) : 2;
    amounts[static_cast<size_t>(i)] = b.random.range(0, most);
    amounts[static_cast<size_t>(i + x.rank())] = b.random.range(0, most);
  }
  b.pad(x, amounts, mode, mode == "constant" && b.random.chance(40) ? 2 : 0);
}

void gathers(Builder& b) {
  const Value x = any_value(b, 1, 4);
  const auto axis = fixed_axis(b, x, 1);
  if (!axis) return;
  const int64_t n = x.dim(*axis).n;
  const Axes dims = b.random.of<Axes>({{}, {1}, {2}, {3}, {2, 2}});
  Axes indices;
  for (int64_t i = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
       i > 0; --i)
    indices.push_back(b.random.range(b.opset() >= 11 ? -n : 0, n - 1));
  if (x.count() / n * static_cast<int64_t>(indices.size()) <= kMaxElements)
    b.gather(x, indices, dims, *axis);
}

void expands(Builder& b) {
  Value x = any_value(b, 0, 3);
  Axes shape;
  Dims dims;
  for (const Dim& dim : x.dims) {
    const bool grows = dim == Dim{1, 0} && b.random.chance(60);
    dims.push_back(grows ? Dim{b.random.range(2, 4), 0} : dim);
    shape.push_back(grows ? dims.back().n : 1);
  }
  if (b.random.chance(30)) {
    dims.insert(dims.begin(), Dim{2, 0});
    shape.insert(shape.begin(), 2);
  }
  if (x.count() * 16 > kMaxElements) return;
  if (b.opset() < 8 || b.random.chance(30)) {
    Axes repeats(x.dims.size(), 1);
    for (int64_t& n : repeats) n = b.random.range(1, 2);
    if (x.rank() > 0) b.tile(x, repeats);
  } else {
    b.expand(x, shape, dims);
  }
}

// Sizes are computed at run time from a value's shape, and then used.
void shape_arithmetic(Builder& b) {
  const Value x = b.want_float(2, 4);
  const Value shape = b.shape(x);
  switch (b.random.range(0, 3)) {
    case 0: {  // Reshape to {N, -1}
      Value n = b.gather(shape, {0}, b.random.chance(50) ? Axes{} : Axes{1}, 0);
      if (n.rank() == 0) n = b.unsqueeze(n, {0});
      const Value target = b.concat({n, b.ints({-1})}, 0);
      int64_t rest = 1;
      bool varies = false;
      for (int64_t i = 1; i < x.rank(); ++i) {
        rest *= x.dim(i).n;
        varies |= x.dim(i).symbol != 0;
      }
      Value out = x;
      out.dims = {x.dim(0), {rest, varies ? b.new_symbol() : 0}};
      b.add("Reshape", {x, target}, out);
      return;
    }
    case 1: {  // there and back
      const Value flat = b.flatten(x, 1);
      Value out = flat;
      out.dims = x.dims;
      b.add("Reshape", {elementwise_chain(b, flat, 1), shape}, out);
      return;
    }
    case 2: {
      if (b.opset() < 9) return;
      Value out = x;
      out.low = out.high = 1;
      const Value ones =
          b.add("ConstantOfShape", {shape}, out, {{"value", make_tensor(x.type, {1}, {1.0})}});
      b.binary(b.random.of({"Add", "Mul"}), x, ones);
      return;
    }
    default: {
      if (b.opset() < 8) return;
      const Value row = b.constant(x.type, {1}, -1, 1);
      Value out = row;
      out.dims = x.dims;
      b.binary("Add", b.add("Expand", {row, shape}, out), x);
      return;
    }
  }
}

void masks(Builder& b) {
  if (b.opset() < 9) return;
  const Value x = b.want_float(2, 4);
  const Dim& rows = x.dim(x.rank() - 2);
  const Dim& columns = x.dim(x.rank() - 1);
  if (rows.symbol != 0 || columns.symbol != 0) return;
  Value mask = b.constant(DType::Bool, {rows.n, columns.n}, 0, 1);
  if (b.random.chance(40)) mask = b.expand(mask, {1, rows.n, columns.n}, {{1, 0}, rows, columns});
  if (x.rank() < mask.rank()) return;
  b.where(mask, x, b.like(x, b.random.of({-100.0, 0.0})));
}

void resizes(Builder& b) {
  const Value x = b.want(DType::Float32, 4, 4);
  if (x.dim(2).symbol != 0 || x.dim(3).symbol != 0 || x.count() * 4 > kMaxElements) return;
  Value out = x;
  out.dims[2].n *= 2;
  out.dims[3].n *= 2;
  const Tensor scales = make_tensor(DType::Float32, {4}, {1, 1, 2, 2});
  const Attributes mode = {{"mode", std::string("nearest")}};
  if (b.opset() < 9) {
    b.add("Upsample", {x}, out,
          {{"mode", mode.at("mode")}, {"scales", std::vector<float>{1, 1, 2, 2}}});
  } else if (b.opset() == 9) {
    b.add("Upsample", {x, b.initializer(scales, 1, 2)}, out, mode);
  } else if (b.opset() == 10) {
    b.add("Resize", {x, b.initializer(scales, 1, 2)}, out, mode);
  } else {
    Value roi;
    if (b.opset() < 13) roi = b.initializer(make_tensor(DType::Float32, {0}, {}), 0, 0);
    b.add("Resize", {x, roi, b.initializer(scales, 1, 2)}, out,
          {{"mode", mode.at("mode")},
           {"coordinate_transformation_mode", std::string("asymmetric")},
           {"nearest_mode", std::string("floor")}});
  }
}

// Writes parts along an axis one after another, as x[:, 2:5] = y is exported: with an index for
// every element, or for every row inside the axis.
void assigned_slices(Builder& b) {
  Value x = any_value(b, 1, 3);
  const auto axis = fixed_axis(b, x, 2);
  for (const Dim& dim : x.dims)
    if (dim.symbol != 0) return;
  if (!axis || b.opset() < 11) return;
  const Value from = is_float(x.type) ? elementwise_chain(b, x, 1) : x;
  const int64_t depth = b.random.chance(50) ? x.rank() : *axis + 1, size = x.dim(*axis).n;
  for (int64_t begin = b.random.range(0, 1); begin < size && b.random.chance(85);) {
    const int64_t end = b.random.range(begin + 1, size);
    Axes box = sizes(x.dims);
    box[static_cast<size_t>(*axis)] = end - begin;
    box.resize(static_cast<size_t>(depth));
    const int64_t count = std::accumulate(box.begin(), box.end(), int64_t{1}, std::multiplies<>());
    std::vector<double> indices;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<double> tuple;
      int64_t left = i;
      for (size_t d = box.size(); d-- > 0; left /= box[d])
        tuple.insert(
            tuple.begin(),
            static_cast<double>(left % box[d] + (static_cast<int64_t>(d) == *axis ? begin : 0)));
      indices.insert(indices.end(), tuple.begin(), tuple.end());
    }
    Axes dims = box;
    dims.push_back(depth);
    const Value update = b.slice(from, *axis, begin, end);
    x = b.add("ScatterND",
              {x, b.initializer(make_tensor(DType::Int64, dims, indices), 0, 0), update}, x);
    begin = b.random.chance(80) ? end : end + 1;
  }
}

constexpr Family kMovementFamilies[] = {
    {"transposes", 8, transposes, true},
    {"reshapes", 7, reshapes},
    {"squeezes", 5, squeezes, true},
    {"slices", 5, slices},
    {"splits", 4, splits},
    {"concats", 4, concats, true},
    {"pads", 3, pads},
    {"gathers", 3, gathers},
    {"expands", 4, expands, true},
    {"shape_arithmetic", 5, shape_arithmetic},
    {"masks", 3, masks},
    {"resizes", 3, resizes},
    {"assigned_slices", 2, assigned_slices},
};

}  // namespace

std::span<const Family> movement_families() { return kMovementFamilies; }

}  // namespace pfrt_optimise
