// SPDX-License-Identifier: Apache-2.0
#include "core/verify/rounding_noise.h"

#include <algorithm>
#include <cmath>

#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"
#include "core/verify/elements.h"

namespace pfrt {
namespace {

// Size of a perturbation, in roundings of the constant: a sum of many terms of one sign is rounded
// to steps of its own size, which smaller perturbations would not cross.
constexpr double kShake = 32;

double tolerance_of(pfrt_dtype dtype) {
  const double rounding = rounding_of(dtype);
  if (rounding == 0) return 0;
  if (rounding <= 0x1p-53) return 1e-10;
  // Sums of many terms are taken in another order.
  if (rounding <= 0x1p-24) return 2e-5;
  return 8 * rounding;
}

bool is_random(const Graph& graph, const Node& node) {
  const OperatorDef* row = find_canonical(graph, node);
  if (!row || (row->flags & kOpRandom) == 0) return false;
  return node.op != "Dropout" || node.has_input(2);
}

void add_value(const Graph& graph, ValueId id, OutputTraits& traits) {
  traits.tolerance = std::max(traits.tolerance, tolerance_of(graph.at(id).type.dtype));
}

template <typename Fn>
void each_body(const Node& node, Fn fn) {
  for (const Attribute& attr : node.attrs) {
    if (attr.graph) fn(*attr.graph);
    for (const auto& body : attr.graphs)
      if (body) fn(*body);
  }
}

void add_node(const Graph& graph, const Node& node, OutputTraits& traits) {
  traits.random |= is_random(graph, node);
  for (ValueId id : node.outputs)
    if (id != kNoId) add_value(graph, id, traits);
  each_body(node, [&](const Graph& body) {
    for (NodeId id : body.node_ids()) add_node(body, *body.node(id), traits);
    for (ValueId id : body.inputs) add_value(body, id, traits);
  });
}

uint64_t next(uint64_t& state) {  // xorshift64*
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1du;
}

// Perturbs |value| with numbers of |seed|'s own: constants that nearly cancel must not move alike.
Result<ValuePtr> moved(const ValuePtr& value, uint64_t seed) {
  const Tensor& from = value->tensor;
  const double rounding = rounding_of(from.dtype);
  if (value->kind != PFRT_VALUE_TENSOR || rounding == 0 || from.device()) return value;
  std::vector<double> numbers = elements(from);
  uint64_t state = 0x9e3779b97f4a7c15u * (2 * seed + 1);
  for (double& x : numbers) {
    const double u = static_cast<double>(static_cast<int64_t>(next(state))) * 0x1p-63;
    if (std::isfinite(x) && x != std::rint(x)) x *= 1 + kShake * rounding * u;
  }
  PFRT_ASSIGN(Tensor to, Tensor::allocate(from.dtype, from.dims, false));
  set_elements(to, numbers);
  return Value::of(std::move(to));
}

Status shake(Graph& graph, uint64_t seed) {
  std::vector<bool> stays(graph.value_count());
  for (NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    const OperatorDef* row = find_canonical(graph, node);
    for (size_t i = 0; i < node.inputs.size() && i < 32; ++i)
      if (node.has_input(i) && row && (row->shape_inputs >> i & 1u)) stays[node.inputs[i]] = true;
    for (const Attribute& attr : node.attrs) {
      if (attr.graph) PFRT_TRY(shake(*attr.graph, seed));
      for (const auto& body : attr.graphs)
        if (body) PFRT_TRY(shake(*body, seed));
    }
  }
  for (ValueId id : graph.initializers()) {
    if (stays[id]) continue;
    PFRT_ASSIGN(graph.at(id).constant, moved(graph.at(id).constant, seed << 32 | id));
  }
  return {};
}

}  // namespace

std::vector<OutputTraits> output_traits(const Graph& graph) {
  std::vector<OutputTraits> out;
  for (ValueId output : graph.outputs) {
    OutputTraits traits;
    std::vector<bool> seen(graph.value_count());
    std::vector<ValueId> left{output};
    while (!left.empty()) {
      const ValueId id = left.back();
      left.pop_back();
      if (seen[id]) continue;
      seen[id] = true;
      add_value(graph, id, traits);
      const Node* node = graph.node(graph.at(id).producer);
      if (!node) continue;
      add_node(graph, *node, traits);
      for (ValueId used : graph.used_by(*node)) left.push_back(used);
    }
    out.push_back(traits);
  }
  return out;
}

Result<std::shared_ptr<Graph>> shaken(const Graph& graph, uint64_t seed) {
  std::shared_ptr<Graph> copy = graph.clone();
  PFRT_TRY(shake(*copy, seed));
  return copy;
}

Result<ValuePtr> shaken(const ValuePtr& value, uint64_t seed) {
  if (!value || value->kind == PFRT_VALUE_SPARSE) return value;
  if (value->kind == PFRT_VALUE_TENSOR) return moved(value, seed);
  auto copy = std::make_shared<Value>(*value);
  for (ValuePtr& element : copy->elements) {
    PFRT_ASSIGN(element, shaken(element, ++seed));
  }
  if (copy->values) {
    PFRT_ASSIGN(copy->values, shaken(copy->values, ++seed));
  }
  return ValuePtr(std::move(copy));
}

}  // namespace pfrt
