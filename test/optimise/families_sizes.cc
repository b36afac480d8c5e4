// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

// A vector of sizes, and the dimension that each element is.
struct Sizes {
  Value value;
  Dims elements;
};

// The arithmetic on the shape of one value. Equal sizes are often computed again, by nodes of their
// own, as exporters write it.
class Arithmetic {
 public:
  Arithmetic(Builder& b, const Value& x) : b_(b), x_(x) {}

  void use() {
    switch (b_.random.range(0, 6)) {
      case 0:
        return use_range();
      case 1:
        return use_constant_of_shape();
      case 2:
        return use_expand();
      case 3:
        return use_reshape();
      case 4:
        return use_slice();
      case 5:
        return use_where_expand();
      default:
        b_.cast(some_sizes().value, DType::Float32);
    }
  }

 private:
  // Reads element |axis| of the shape, as [1].
  Sizes dimension(int64_t axis) {
    const Value shape = b_.shape(x_);
    const Dims elements{x_.dim(axis)};
    if (b_.opset() >= 15 && b_.random.chance(20)) {
      const Value part = b_.add("Shape", {x_}, {"", DType::Int64, {{1, 0}}, 0, 16},
                                {{"start", axis}, {"end", axis + 1}});
      return {part, elements};
    }
    switch (b_.random.range(0, 2)) {
      case 0:
        return {b_.slice(shape, 0, axis, axis + 1), elements};
      case 1:
        return {b_.gather(shape, {axis}, {1}, 0), elements};
      default:
        return {b_.unsqueeze(b_.gather(shape, {axis}, {}, 0), {0}), elements};
    }
  }

  // Returns a computed size, as [1].
  Sizes one_size() {
    Sizes out = dimension(b_.random.range(0, x_.rank() - 1));
    for (int64_t i = b_.random.range(0, 3); i > 0; --i) step(out);
    return out;
  }

  Value with(const char* op, const Value& size, int64_t number) {
    return b_.add(op, {size, b_.ints({number})}, size);
  }

  void step(Sizes& s) {
    Dim& dim = s.elements[0];
    const bool fixed = dim.symbol == 0;
    const auto renamed = [&](int64_t n) { dim = {n, fixed ? 0 : b_.new_symbol()}; };
    switch (b_.random.range(0, 6)) {
      case 0:
        s.value = b_.cast(b_.cast(s.value, DType::Int32), DType::Int64);
        return;
      case 1:
        s.value = with("Mul", s.value, 2);
        return renamed(dim.n * 2);
      case 2:
        s.value = with("Add", s.value, 1);
        return renamed(dim.n + 1);
      case 3:
        s.value = with("Div", with("Add", s.value, 1), 2);
        return renamed((dim.n + 1) / 2);
      case 4:
        s.value = b_.unsqueeze(b_.squeeze(s.value, {0}), {0});
        return;
      case 5:  // there and back
        s.value = with("Sub", with("Add", s.value, 3), 3);
        return;
      default:
        s.value = b_.unary("Identity", s.value);
        return;
    }
  }

  Sizes some_sizes() {
    Sizes out = one_size();
    for (int64_t i = b_.random.range(0, 2); i > 0; --i) {
      const bool constant = b_.random.chance(40);
      const Sizes more = constant ? Sizes{b_.ints({2}), {{2, 0}}} : one_size();
      out.value = b_.concat({out.value, more.value}, 0);
      out.elements.insert(out.elements.end(), more.elements.begin(), more.elements.end());
    }
    return out;
  }

  static bool is_large(const Dims& dims) {
    int64_t count = 1;
    for (const Dim& dim : dims) count *= dim.n;
    return count > kMaxElements / 8;
  }

  Value numbers(const Sizes& size, DType type) {  // 0, 1, ... as a vector
    Value limit = b_.squeeze(size.value, {0});
    if (type != DType::Int64) limit = b_.cast(limit, type);
    return b_.add("Range", {b_.scalar(type, 0), limit, b_.scalar(type, 1)},
                  {"", type, size.elements, 0, 16});
  }

  void use_range() {
    const Sizes size = one_size();
    const DType type = b_.random.chance(70) ? DType::Int64 : DType::Float32;
    const Value row = numbers(size, type);
    if (b_.random.chance(50)) {  // a causal mask
      const Value column = b_.unsqueeze(b_.random.chance(50) ? row : numbers(size, type), {1});
      Value wide = row;
      wide.dims.insert(wide.dims.begin(), Dim{1, 0});
      b_.add(b_.random.of({"Less", "Greater", "Equal"}), {b_.unsqueeze(row, {0}), column},
             {"", DType::Bool, {size.elements[0], size.elements[0]}, 0, 1});
    }
  }

  void use_constant_of_shape() {
    const Sizes target = some_sizes();
    if (is_large(target.elements)) return;
    const DType type = b_.random.of({DType::Float32, DType::Int64});
    const Value filled =
        b_.add("ConstantOfShape", {target.value}, {"", type, target.elements, 1, 1},
               {{"value", make_tensor(type, {1}, {1})}});
    if (type == DType::Float32) elementwise_chain(b_, filled, 1);
  }

  void use_expand() {
    const Sizes target = some_sizes();
    if (is_large(target.elements)) return;
    Value row = b_.constant(DType::Float32, {1}, -1, 1);
    row.dims = target.elements;
    b_.add("Expand", {b_.constant(DType::Float32, {1}, -1, 1), target.value}, row);
  }

  // Exporters write expand with -1 in the target so.
  void use_where_expand() {
    const Sizes target = some_sizes();
    if (is_large(target.elements)) return;
    const Dims rank{{static_cast<int64_t>(target.elements.size()), 0}};
    const Value minus = b_.ints({-1});
    const Value mask = b_.add("Equal", {target.value, minus}, {"", DType::Bool, rank, 0, 1});
    const Value ones =
        b_.add("ConstantOfShape", {b_.shape(target.value)}, {"", DType::Int64, rank, 1, 1},
               {{"value", make_tensor(DType::Int64, {1}, {1})}});
    const Value sizes =
        b_.add("Where", {mask, ones, target.value}, {"", DType::Int64, rank, 1, 16});
    Value out = b_.constant(DType::Float32, {1}, -1, 1);
    const Value row = out;
    out.dims = target.elements;
    b_.add("Expand", {row, sizes}, out);
  }

  void use_reshape() {
    const Sizes first = dimension(0);
    const Value target = b_.concat({first.value, b_.ints({-1})}, 0);
    Dim rest{1, 0};
    for (int64_t i = 1; i < x_.rank(); ++i) {
      rest.n *= x_.dim(i).n;
      if (x_.dim(i).symbol != 0) rest.symbol = b_.new_symbol();
    }
    Value out = x_;
    out.dims = {x_.dim(0), rest};
    out = b_.add("Reshape", {x_, target}, out);
    if (!is_float(x_.type)) return;
    const Value changed = elementwise_chain(b_, out, 1);
    Value back = changed;
    back.dims = x_.dims;
    b_.add("Reshape", {changed, b_.shape(x_)}, back);
  }

  // Slices up to a computed size, which may exceed the dimension.
  void use_slice() {
    const int64_t axis = b_.random.range(0, x_.rank() - 1);
    Sizes end = dimension(axis);
    for (int64_t i = b_.random.range(0, 2); i > 0; --i) step(end);
    Value out = x_;
    Dim& dim = out.dims[static_cast<size_t>(axis)];
    dim = {std::min(dim.n, end.elements[0].n), dim.symbol ? b_.new_symbol() : 0};
    if (dim.symbol == 0 && end.elements[0].symbol != 0) dim.symbol = b_.new_symbol();
    b_.add("Slice", {x_, b_.ints({0}), end.value, b_.ints({axis})}, out);
  }

  Builder& b_;
  const Value x_;
};

void sizes_of_one(Builder& b) {
  if (b.opset() < 13) return;
  const Value x = b.want(b.random.of({DType::Float32, DType::Float32, DType::Int64}), 1, 4);
  size_arithmetic(b, x, b.random.range(1, 6));
}

void sizes_of_an_input(Builder& b) {
  if (b.opset() < 13 || b.is_body() || b.graph().inputs.size() >= 6) return;
  Dims dims = b.random_dims(b.random.range(1, 3));
  dims[0] = b.varying_size();
  const Value x = b.input(DType::Float32, dims, -2, 2);
  size_arithmetic(b, x, b.random.range(2, 8));
}

constexpr Family kSizeFamilies[] = {
    {"sizes_of_one", 5, sizes_of_one},
    {"sizes_of_an_input", 6, sizes_of_an_input},
};

}  // namespace

void size_arithmetic(Builder& b, const Value& x, int64_t count) {
  if (b.opset() < 13 || x.rank() == 0) return;
  Arithmetic arithmetic(b, x);
  while (count-- > 0) arithmetic.use();
}

std::span<const Family> size_families() { return kSizeFamilies; }

}  // namespace pfrt_optimise
