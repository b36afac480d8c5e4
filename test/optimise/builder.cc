// SPDX-License-Identifier: Apache-2.0
#include "test/optimise/builder.h"

#include <algorithm>
#include <cmath>

namespace pfrt_optimise {
namespace {

constexpr size_t kMaxInputs = 5;

Dims fixed_dims(const std::vector<int64_t>& sizes) {
  Dims out;
  for (int64_t n : sizes) out.push_back({n, 0});
  return out;
}

}  // namespace

int64_t Value::count() const {
  int64_t out = 1;
  for (const Dim& dim : dims) out *= dim.n;
  return out;
}

double Value::magnitude() const { return std::max(std::abs(low), std::abs(high)); }

bool Value::fixed() const {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.symbol == 0; });
}

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  const Dim one{1, 0};
  for (size_t i = 0; i < out.size(); ++i) {
    const Dim& x = i < a.size() ? a[a.size() - 1 - i] : one;
    const Dim& y = i < b.size() ? b[b.size() - 1 - i] : one;
    if (!(x == y) && !(x == one) && !(y == one)) return std::nullopt;
    out[out.size() - 1 - i] = x == one ? y : x;
  }
  return out;
}

Builder::Builder(Random& random_, ModelSpec& model, GraphSpec& graph, Builder* outer)
    : random(random_),
      model_(model),
      graph_(graph),
      outer_(outer),
      shared_(outer == nullptr ? own_ : outer->shared_) {}

std::string Builder::new_name(const std::string& stem) {
  return stem + std::to_string(++shared_.last_name);
}

Value Builder::add(const std::string& op, const Values& in, Value out, Attributes attributes) {
  return add_all(op, in, {std::move(out)}, std::move(attributes))[0];
}

Values Builder::add_all(const std::string& op, const Values& in, Values outs, Attributes attributes,
                        std::vector<BodySpec> bodies) {
  NodeSpec node{op, {}, {}, std::move(attributes), std::move(bodies)};
  for (const Value& value : in) node.inputs.push_back(value.name);
  for (Value& value : outs) {
    value.name = new_name("v");
    node.outputs.push_back(value.name);
    model_.types[value.name] = {value.type, value.dims};
    publish(value);
  }
  graph_.nodes.push_back(std::move(node));
  return outs;
}

Value Builder::input(DType type, const Dims& dims, double low, double high) {
  const Value value{new_name("x"), type, dims, low, high};
  graph_.inputs.push_back(value.name);
  model_.types[value.name] = {type, dims};
  if (outer_ == nullptr) shared_.inputs[value.name] = value;
  publish(value);
  return value;
}

Tensor Builder::random_tensor(DType type, const std::vector<int64_t>& dims, double low,
                              double high) {
  int64_t count = 1;
  for (int64_t n : dims) count *= n;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const double value = random.uniform(low, high);
    values.push_back(is_float(type) ? value : std::clamp(std::round(value), std::ceil(low), high));
  }
  return make_tensor(type, dims, values);
}

Value Builder::typed(const Tensor& tensor, double low, double high) const {
  return {"", tensor.dtype(), fixed_dims(tensor.shape()), low, high};
}

Value Builder::initializer(const Tensor& tensor, double low, double high) {
  Value value = typed(tensor, low, high);
  value.name = new_name("w");
  graph_.initializers[value.name] = tensor;
  model_.types[value.name] = {value.type, value.dims};
  if (!is_body()) shared_.weights.push_back(value);
  return value;
}

Value Builder::constant_of(const Tensor& tensor, double low, double high) {
  if (random.chance(75) || (opset() < 9 && !is_float(tensor.dtype())))
    return initializer(tensor, low, high);
  const Value made = add("Constant", {}, typed(tensor, low, high), {{"value", tensor}});
  return random.chance(85) ? made : add("Identity", {made}, made);
}

Value Builder::constant(DType type, const std::vector<int64_t>& dims, double low, double high) {
  if (random.chance(12)) return folded(type, dims, low, high);
  if (random.chance(15)) {  // an initializer that others use too, or a copy of it
    for (const Value& weight : shared_.weights) {
      if (weight.type != type || sizes(weight.dims) != dims || weight.low < low ||
          weight.high > high)
        continue;
      if (is_body() || random.chance(50)) return weight;
      return initializer(graph_.initializers.at(weight.name), weight.low, weight.high);
    }
  }
  return constant_of(random_tensor(type, dims, low, high), low, high);
}

Value Builder::folded(DType type, const std::vector<int64_t>& dims, double low, double high) {
  const auto plain = [&](const std::vector<int64_t>& shape) {
    return initializer(random_tensor(type, shape, low, high), low, high);
  };
  switch (random.range(0, 4)) {
    case 0: {  // a transposed matrix
      if (dims.size() != 2) break;
      return transpose(plain({dims[1], dims[0]}), {1, 0});
    }
    case 1: {
      int64_t count = 1;
      for (int64_t n : dims) count *= n;
      return reshape(plain({count}), dims, fixed_dims(dims));
    }
    case 2: {
      if (opset() < 9 || !is_float(type)) break;
      const Value filled = add("ConstantOfShape", {ints(dims)}, typed(Tensor(dims, type), 0, 0),
                               {{"value", make_tensor(type, {1}, {0.0})}});
      return binary("Add", filled, plain(dims));
    }
    case 3: {
      if (dims.empty() || dims[0] < 2) break;
      std::vector<int64_t> first = dims, rest = dims;
      first[0] = 1;
      rest[0] = dims[0] - 1;
      return concat({plain(first), plain(rest)}, 0);
    }
    default:
      break;
  }
  if (is_float(type)) return binary("Mul", plain(dims), scalar(type, 1));
  return add("Identity", {plain(dims)}, typed(Tensor(dims, type), low, high));
}

Value Builder::scalar(DType type, double value) {
  return constant_of(make_tensor(type, {}, {value}), value, value);
}

Value Builder::like(const Value& x, double value) {
  if (x.rank() == 0 || random.chance(75)) return scalar(x.type, value);
  return constant_of(make_tensor(x.type, {1}, {value}), value, value);
}

Value Builder::ints(const Axes& values) {
  return constant_of(Tensor::from_vector(values, {static_cast<int64_t>(values.size())}), 0, 0);
}

std::optional<Value> Builder::find(const std::function<bool(const Value&)>& fits,
                                   int percent) const {
  for (auto value = pool_.rbegin(); value != pool_.rend(); ++value)
    if (fits(*value) && random.chance(percent)) return *value;
  return outer_ == nullptr ? std::nullopt : outer_->find(fits, percent);
}

std::optional<Value> Builder::pick(const std::function<bool(const Value&)>& fits) {
  const std::optional<Value> found = find(fits, 40);
  return found ? found : find(fits, 100);
}

Value Builder::want(DType type, int64_t min_rank, int64_t max_rank) {
  const auto fits = [&](const Value& value) {
    return value.type == type && value.rank() >= min_rank && value.rank() <= max_rank &&
           (takes_empty || value.count() > 0) && value.count() <= kMaxElements;
  };
  if (random.chance(85)) {
    if (const auto found = pick(fits)) return *found;
  }
  const Dims dims = random_dims(random.range(min_rank, max_rank), !is_body());
  const double high = type == DType::Bool ? 1 : is_float(type) ? 2 : 8;
  const double low = type == DType::Bool || type == DType::UInt8 ? 0 : -high;
  if (!is_body() && graph_.inputs.size() < kMaxInputs) return input(type, dims, low, high);
  return constant(type, sizes(dims), low, high);
}

Value Builder::want_float(int64_t min_rank, int64_t max_rank) {
  return want(random.chance(93) ? DType::Float32 : DType::Float16, min_rank, max_rank);
}

Dim Builder::any_size() { return {random.of<int64_t>({1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 16}), 0}; }

Dim Builder::varying_size() {
  if (shared_.varying.size() < 2) shared_.varying.push_back({random.range(2, 4), new_symbol()});
  return random.of(shared_.varying);
}

Dims Builder::random_dims(int64_t rank, bool may_vary) {
  Dims out;
  int64_t count = 1;
  for (int64_t i = 0; i < rank; ++i) {
    Dim dim = any_size();
    while (count * dim.n > kMaxElements / 4) dim.n = (dim.n + 1) / 2;
    if (may_vary && i < 2 && count <= 64 && random.chance(15)) {
      dim = varying_size();
    }
    count *= dim.n;
    out.push_back(dim);
  }
  return out;
}

Value Builder::partner(const Value& value) {
  if (random.chance(12)) return value;
  if (random.chance(50)) {
    const auto found = pick([&](const Value& other) {
      return other.type == value.type && broadcast(value.dims, other.dims) == value.dims;
    });
    if (found) return *found;
  }
  std::vector<int64_t> dims;
  const auto skipped = random.range(0, value.rank());
  const bool whole = random.chance(40);
  for (int64_t i = skipped; i < value.rank(); ++i) {
    const Dim& dim = value.dim(i);
    dims.push_back(dim.symbol == 0 && (whole || random.chance(60)) ? dim.n : 1);
  }
  if (value.type == DType::Bool) return constant(value.type, dims, 0, 1);
  if (!is_float(value.type)) return constant(value.type, dims, 1, 5);
  const bool positive = random.chance(30);
  return constant(value.type, dims, positive ? 0.2 : -1.5, 1.5);
}

Value Builder::bounded(const Value& value, double limit) {
  const double magnitude = value.magnitude();
  if (magnitude <= limit) return value;
  Value out = value;
  if (is_float(value.type)) {
    const double factor = limit / magnitude;
    out.low *= factor;
    out.high *= factor;
    return add("Mul", {value, scalar(value.type, factor)}, out);
  }
  out.low = -limit;
  out.high = limit;
  return add("Div", {value, scalar(value.type, std::ceil(magnitude / limit))}, out);
}

int64_t Builder::spell(int64_t axis, int64_t rank, int64_t negative_since) {
  return opset() >= negative_since && random.chance(30) ? axis - rank : axis;
}

Axes Builder::spell_all(Axes axes, int64_t rank) {
  for (int64_t& axis : axes) axis = spell(axis, rank);
  return axes;
}

}  // namespace pfrt_optimise
