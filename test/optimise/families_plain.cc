// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

Value any_arithmetic(Builder& b, int64_t max_rank) {
  const int64_t kind = b.random.range(0, 9);
  if (kind == 0) return b.want(DType::Int64, 0, max_rank);
  if (kind == 1) return b.want(DType::Int32, 0, max_rank);
  return b.want_float(0, max_rank);
}

Value any_plain_value(Builder& b, int64_t min_rank, int64_t max_rank) {
  const DType type =
      b.random.of({DType::Float32, DType::Float32, DType::Float32, DType::Float16, DType::Int64,
                   DType::Int32, DType::Bool, DType::UInt8, DType::Int8});
  return b.want(type, min_rank, max_rank);
}

Value some_unary(Builder& b, const Value& x) {
  std::vector<std::string> ops = {"Abs", "Neg", "Identity"};
  if (is_float(x.type)) {
    ops = {"Relu",     "Relu",     "Sigmoid", "Tanh",       "Abs",       "Neg",         "Exp",
           "Sqrt",     "Log",      "Floor",   "Ceil",       "LeakyRelu", "Elu",         "Selu",
           "Softplus", "Softsign", "Sin",     "Reciprocal", "Identity",  "HardSigmoid", "Cos"};
    if (b.opset() >= 9) ops.insert(ops.end(), {"Erf", "Sign"});
    if (b.opset() >= 11) ops.push_back("Round");
    if (b.opset() >= 14) ops.push_back("HardSwish");
    if (b.opset() >= 18) ops.push_back("Mish");
    if (b.opset() >= 20) ops.push_back("Gelu");
  }
  const std::string op = b.random.of(ops);
  Attributes attributes;
  if (op == "LeakyRelu" && b.random.chance(50)) attributes["alpha"] = 0.2f;
  if (op == "Elu" && b.random.chance(50)) attributes["alpha"] = 0.5f;
  return b.unary(op, x, attributes);
}

Value some_binary(Builder& b, const Value& x) {
  std::vector<std::string> ops = {"Add", "Add", "Mul", "Mul", "Sub", "Div"};
  const bool real = is_float(x.type);
  if (b.opset() >= (real ? 8 : 12)) ops.insert(ops.end(), {"Min", "Max"});
  if (real && b.opset() >= 8) ops.insert(ops.end(), {"Sum", "Mean"});
  const std::string op = b.random.of(ops);
  const Value other = b.partner(x);
  if (op == "Sum") {
    Value out = x;
    out.low = x.low + other.low;
    out.high = x.high + other.high;
    return b.add("Sum", {x, other}, out);
  }
  return b.random.chance(30) && op != "Div" ? b.binary(op, other, x) : b.binary(op, x, other);
}

void chain(Builder& b) { elementwise_chain(b, any_arithmetic(b, 4), b.random.range(1, 4)); }

// Scales and shifts a value by constants several times, as exporters leave it.
void scales(Builder& b) {
  Value x = b.want_float(0, 4);
  for (int64_t i = b.random.range(1, 3); i > 0; --i) {
    const std::string op = b.random.of({"Mul", "Add", "Div", "Sub", "Mul"});
    x = b.binary(op, x, b.like(x, b.random.of({1.0, 0.0, 0.5, -1.0, 2.0, 1.5})));
  }
}

void compares(Builder& b) {
  const Value x = any_arithmetic(b, 4);
  const Value y = b.partner(x);
  std::string op = b.random.of({"Greater", "Less"});
  if (b.opset() >= (is_float(x.type) ? 11 : 7) && b.random.chance(40)) op = "Equal";
  if (b.opset() < 9 && !is_float(x.type)) op = "Equal";
  if (b.opset() >= 12 && b.random.chance(30)) op = b.random.of({"GreaterOrEqual", "LessOrEqual"});
  Value test = b.compare(op, x, y);
  if (b.random.chance(30)) test = b.unary("Not", test);
  if (b.random.chance(25))
    test = b.compare(b.random.of({"And", "Or", "Xor"}), test, b.partner(test));
  if (b.opset() >= 9 && b.random.chance(60)) {
    b.where(test, x, b.random.chance(50) ? y : b.like(x, 2));
  } else {
    b.binary("Mul", b.cast(test, x.type), x);
  }
}

void casts(Builder& b) {
  Value x = any_arithmetic(b, 4);
  const DType first = x.type;
  for (int64_t i = b.random.range(1, 3); i > 0; --i) {
    x = b.cast(x, b.random.of({DType::Float32, DType::Float16, DType::Float32, DType::Int32,
                               DType::Int64, DType::Bool, DType::UInt8, DType::Int8, first}));
  }
  if (b.random.chance(60)) b.cast(x, first);
}

void does_nothing(Builder& b) {
  Value x = any_plain_value(b, 0, 4);
  const bool newer = b.opset() >= 9 || is_float(x.type);
  switch (b.random.range(0, 9)) {
    case 0:
      b.unary("Identity", b.unary("Identity", x));
      return;
    case 1:
      if (is_float(x.type)) b.dropout(x);
      return;
    case 2:
      b.cast(x, x.type);
      return;
    case 3: {
      Axes perm(static_cast<size_t>(x.rank()));
      std::iota(perm.begin(), perm.end(), 0);
      b.transpose(x, perm);
      return;
    }
    case 4:
      if (x.rank() > 0 && newer) b.slice(x, b.random.range(0, x.rank() - 1), 0, INT64_MAX);
      return;
    case 5:
      if (is_float(x.type)) b.pad(x, Axes(2 * x.dims.size(), 0), "constant", 0);
      return;
    case 6:
      if (x.rank() > 0) b.concat({x}, b.random.range(0, x.rank() - 1));
      return;
    case 7:
      if (x.rank() > 0) b.reshape(x, Axes(x.dims.size(), 0), x.dims);
      return;
    case 8:
      if (b.opset() >= 8) b.expand(x, Axes(x.dims.size(), 1), x.dims);
      return;
    default: {
      const Axes axis = {b.random.range(0, x.rank())};
      b.squeeze(b.unsqueeze(x, axis), axis);
      return;
    }
  }
}

// Repeats an earlier node and combines the two results.
void repeats(Builder& b) {
  if (b.graph().nodes.empty()) return;
  const NodeSpec node = b.random.of(b.graph().nodes);
  if (!node.bodies.empty()) return;
  Values in, out;
  for (const std::string& name : node.inputs) in.push_back({name, DType::Float32, {}, 0, 0});
  for (const std::string& name : node.outputs) {
    const auto made = b.pick([&](const Value& value) { return value.name == name; });
    if (!made) return;
    out.push_back(*made);
  }
  const Value& first = out[0];
  const Value second = b.add_all(node.op, in, out, node.attributes)[0];
  if (first.type == DType::Bool) {
    b.compare("And", first, second);
  } else if (first.type != DType::UInt8 && first.type != DType::Int8) {
    b.binary(b.random.of({"Add", "Mul", "Sub"}), first, second);
  }
}

constexpr Family kPlainFamilies[] = {
    {"chain", 14, chain, true}, {"scales", 5, scales, true},       {"compares", 4, compares, true},
    {"casts", 5, casts, true},  {"does_nothing", 9, does_nothing}, {"repeats", 6, repeats},
};

}  // namespace

Value elementwise_chain(Builder& b, Value x, int64_t steps) {
  for (; steps > 0; --steps) {
    const Dims dims = x.dims;
    Value next = b.random.chance(50) ? some_unary(b, x) : some_binary(b, x);
    if (next.dims == dims) x = next;
  }
  return x;
}

std::span<const Family> plain_families() { return kPlainFamilies; }

}  // namespace pfrt_optimise
