// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

// Makes |value|, which may come from around the body, an output of it.
void give(Builder& b, const Value& value) {
  const bool made_here =
      std::any_of(b.graph().nodes.begin(), b.graph().nodes.end(), [&](const NodeSpec& node) {
        return std::find(node.outputs.begin(), node.outputs.end(), value.name) !=
               node.outputs.end();
      });
  const bool given = std::find(b.graph().outputs.begin(), b.graph().outputs.end(), value.name) !=
                     b.graph().outputs.end();
  b.graph().outputs.push_back(made_here && !given ? value.name : b.unary("Identity", value).name);
}

void branches(Builder& b);

// Adds nodes that mostly nobody uses.
void idle_branch(Builder& b) {
  if (b.random.chance(8)) branches(b);
  if (b.random.chance(25)) elementwise_chain(b, b.want(DType::Float32, 0, 3), 1);
}

Value some_condition(Builder& b) {
  switch (b.random.range(0, 3)) {
    case 0:
      return b.constant_of(make_tensor(DType::Bool, {}, {b.random.chance(50) ? 1.0 : 0.0}), 0, 1);
    case 1:
      if (!b.is_body()) return b.input(DType::Bool, {}, 0, 1);
      [[fallthrough]];
    case 2: {
      const Value x = b.want(DType::Float32, 0, 3);
      Axes axes;
      for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
      const Value total = x.rank() == 0 ? x : b.reduce("ReduceSum", x, axes, false);
      return b.compare("Greater", total, b.scalar(x.type, 0.3));
    }
    default:
      return b.unary("Not", b.constant_of(make_tensor(DType::Bool, {}, {0.0}), 0, 1));
  }
}

void branches(Builder& b) {
  const Value x = b.want_float(0, 3);
  const Value condition = some_condition(b);
  const bool second = b.random.chance(30);
  Value out = x;
  std::vector<BodySpec> bodies;
  for (const char* attribute : {"then_branch", "else_branch"}) {
    BodySpec body{attribute, {}};
    Builder inner(b.random, b.model(), body.graph, &b);
    const Value y = elementwise_chain(inner, x, inner.random.range(0, 3));
    idle_branch(inner);
    give(inner, y);
    if (second) give(inner, inner.reduce("ReduceMax", inner.unsqueeze(y, {0}), {0}, false));
    out.low = std::min(out.low, y.low);
    out.high = std::max(out.high, y.high);
    bodies.push_back(std::move(body));
  }
  b.add_all("If", {condition}, Values(second ? 2 : 1, out), {}, std::move(bodies));
}

void loops(Builder& b) {
  const Value x = b.want(DType::Float32, 0, 3);
  const int64_t trips = b.random.range(1, 3);
  const auto count = static_cast<double>(trips);
  const bool fed = !b.is_body() && b.random.chance(25);
  const Value trip_count =
      fed ? b.input(DType::Int64, {}, count, count)
          : b.constant_of(make_tensor(DType::Int64, {}, {count}), count, count);
  Value start;  // absent
  if (b.random.chance(50)) start = b.constant_of(make_tensor(DType::Bool, {}, {1.0}), 1, 1);

  BodySpec body{"body", {}};
  Builder inner(b.random, b.model(), body.graph, &b);
  const Value step = inner.input(DType::Int64, {}, 0, count);
  const Value go_on = inner.input(DType::Bool, {}, 0, 1);
  const double high = std::max(1.0, x.magnitude());
  const Value carried = inner.input(x.type, x.dims, -high, high);
  Value y = elementwise_chain(inner, carried, inner.random.range(1, 3));
  if (inner.random.chance(30)) y = inner.binary("Add", y, inner.cast(step, x.type));
  idle_branch(inner);
  const Value next = inner.unary("Tanh", y);
  give(inner, inner.unary("Identity", go_on));
  give(inner, next);
  Value last = carried;
  Values outs = {last};
  if (b.random.chance(40)) {
    give(inner, y);
    Value all = y;
    all.dims.insert(all.dims.begin(), Dim{trips, fed ? b.new_symbol() : 0});
    outs.push_back(all);
  }
  std::vector<BodySpec> bodies;
  bodies.push_back(std::move(body));
  b.add_all("Loop", {trip_count, start, x}, outs, {}, std::move(bodies));
}

void scans(Builder& b) {
  if (b.opset() < 9) return loops(b);
  const Value x = b.want(DType::Float32, 1, 3);
  const Dims dims(x.dims.begin() + 1, x.dims.end());
  if (std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.symbol != 0; })) return;
  const Value first = b.constant(x.type, sizes(dims), -1, 1);
  BodySpec body{"body", {}};
  Builder inner(b.random, b.model(), body.graph, &b);
  const double high = std::max(1.0, x.magnitude());
  const Value state = inner.input(x.type, dims, -1, 1);
  const Value row = inner.input(x.type, dims, -high, high);
  Value y = inner.binary(inner.random.of({"Add", "Mul", "Sub"}), state, row);
  y = elementwise_chain(inner, y, inner.random.range(0, 2));
  give(inner, inner.unary("Tanh", y));
  give(inner, y);
  Value rows = y;
  rows.dims = x.dims;
  std::vector<BodySpec> bodies;
  bodies.push_back(std::move(body));
  b.add_all("Scan", {first, x}, {state, rows}, {{"num_scan_inputs", int64_t{1}}},
            std::move(bodies));
}

constexpr Family kControlFamilies[] = {
    {"branches", 5, branches},
    {"loops", 3, loops},
    {"scans", 2, scans},
};

}  // namespace

std::span<const Family> control_families() { return kControlFamilies; }

}  // namespace pfrt_optimise
