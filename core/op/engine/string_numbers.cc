// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/string_numbers.h"

#include <algorithm>

#include "core/op/engine/lookup.h"

namespace pfrt {
namespace {

constexpr uint32_t kAll = UINT32_MAX;

struct Movement {
  std::string_view op;
  uint32_t inputs;   // bits of inputs with elements that move
  uint32_t outputs;  // bits of outputs that get them
  bool ranked;       // order or equality of elements counts, or zeros, which are ""
};

constexpr Movement kMovements[] = {
    {"Concat", kAll, 1, false},      {"Split", 1, kAll, false},
    {"Slice", 1, 1, false},          {"Pad", 5, 1, true},
    {"Transpose", 1, 1, false},      {"Reshape", 1, 1, false},
    {"Flatten", 1, 1, false},        {"Squeeze", 1, 1, false},
    {"Unsqueeze", 1, 1, false},      {"Expand", 1, 1, false},
    {"Tile", 1, 1, false},           {"Gather", 1, 1, false},
    {"GatherElements", 1, 1, false}, {"GatherND", 1, 1, false},
    {"Scatter", 5, 1, false},        {"ScatterElements", 5, 1, false},
    {"ScatterND", 5, 1, false},      {"TensorScatter", 3, 1, false},
    {"Compress", 1, 1, false},       {"ReverseSequence", 1, 1, false},
    {"SpaceToDepth", 1, 1, false},   {"DepthToSpace", 1, 1, false},
    {"Where", 6, 1, false},          {"OneHot", 4, 1, false},
    {"CenterCropPad", 1, 1, true},   {"Trilu", 1, 1, true},
    {"Unique", 1, 1, true},          {"Equal", 3, 0, true},
    {"NonZero", 1, 0, true},         {"Shape", 1, 0, false},
    {"Size", 1, 0, false},
};

const Movement* movement_of(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  const auto* found = std::find_if(std::begin(kMovements), std::end(kMovements),
                                   [&](const Movement& m) { return m.op == node.op; });
  return found == std::end(kMovements) ? nullptr : found;
}

bool marked(uint32_t mask, size_t i) { return mask == kAll || (i < 32 && (mask >> i & 1u)); }

Node own_node(const char* op, std::vector<ValueId> inputs) {
  Node node;
  node.domain = kStringDomain;
  node.op = op;
  node.inputs = std::move(inputs);
  return node;
}

}  // namespace

Status number_strings(Rewriter& rewriter) {
  const Movement* movement = movement_of(rewriter.node());
  if (!movement) return {};
  std::vector<size_t> at;
  std::vector<ValueId> strings;
  for (size_t i = 0; i < rewriter.node().inputs.size(); ++i) {
    if (!marked(movement->inputs, i) || !rewriter.has_input(i)) continue;
    if (rewriter.input(i).dtype == PFRT_DTYPE_STRING) {
      at.push_back(i);
      strings.push_back(rewriter.node().inputs[i]);
    } else if (!at.empty()) {
      return rewriter.fail("input ", i, " holds ", dtype_name(rewriter.input(i).dtype),
                           " beside strings");
    }
  }
  if (at.empty()) return {};
  const std::string_view reduction = rewriter.node().attr_string("reduction", "none");
  if (reduction != "none")
    return rewriter.fail("attribute 'reduction' is '", reduction,
                         "'; strings can be replaced, not reduced");
  const char* op = movement->ranked ? "StringCodes" : "StringPositions";
  PFRT_ASSIGN(const std::vector<ValueId> numbers,
              rewriter.put_before(own_node(op, strings), at.size() + (movement->ranked ? 1 : 0)));
  for (size_t i = 0; i < at.size(); ++i) rewriter.set_input(at[i], numbers[i]);
  const std::vector<ValueId> texts =
      movement->ranked ? std::vector<ValueId>{numbers.back()} : strings;
  for (size_t i = 0; i < rewriter.node().outputs.size(); ++i)
    if (marked(movement->outputs, i))
      PFRT_TRY(rewriter.put_after(i, own_node("StringTake", texts)));
  return {};
}

namespace {

Status cannot_restore(const Graph& graph, const Node& node) {
  return error(Code::kUNSUPPORTED, describe(graph, node),
               ": works on numbers that stand for strings, which no standard operator does; save "
               "the model as .pfm, or at a lower optimisation level");
}

// Outputs are strings where the moved inputs are.
Status move_strings(Graph& graph, const Node& node) {
  const Movement* movement = movement_of(node);
  bool strings = false, numbers = false;
  for (size_t i = 0; movement && i < node.inputs.size(); ++i) {
    if (!marked(movement->inputs, i) || !node.has_input(i)) continue;
    const bool is_string = graph.at(node.inputs[i]).type.dtype == PFRT_DTYPE_STRING;
    (is_string ? strings : numbers) = true;
  }
  if (!strings) return {};
  if (numbers) return cannot_restore(graph, node);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (marked(movement->outputs, i) && node.has_output(i))
      graph.at(node.outputs[i]).type.dtype = PFRT_DTYPE_STRING;
  return {};
}

// Checks that only movements use the numbers.
Status check_users(const Graph& graph, const std::vector<bool>& is_number) {
  for (const ValueId out : graph.outputs)
    if (is_number[out]) return cannot_restore(graph, *graph.node(graph.at(out).producer));
  for (const NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    const Movement* movement = movement_of(node);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.has_input(i) && is_number[node.inputs[i]] &&
          !(movement && marked(movement->inputs, i)))
        return cannot_restore(graph, node);
  }
  return {};
}

}  // namespace

Status restore_strings(Graph& graph) {
  std::vector<bool> is_number(graph.value_count());
  bool any = false;
  for (const NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    if (node.domain != kStringDomain) continue;
    any = true;
    for (size_t i = 0; node.op != "StringTake" && i < node.inputs.size(); ++i)
      if (node.has_output(i)) is_number[node.outputs[i]] = true;
  }
  if (!any) return {};
  PFRT_TRY(check_users(graph, is_number));
  PFRT_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  for (const NodeId id : order) {
    const Node node = *graph.node(id);
    if (node.domain != kStringDomain) {
      PFRT_TRY(move_strings(graph, node));
      continue;
    }
    if (node.op == "StringTake" && graph.at(node.inputs[0]).type.dtype != PFRT_DTYPE_STRING)
      return cannot_restore(graph, node);
    graph.remove_node(id);
    if (node.op == "StringTake") {
      graph.replace_uses(node.outputs[0], node.inputs[0]);
      continue;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.has_output(i)) graph.replace_uses(node.outputs[i], node.inputs[i]);
  }
  return {};
}

Status widen_string_cast(Rewriter& rewriter) {
  const pfrt_dtype from = rewriter.input(0).dtype;
  const auto to = static_cast<pfrt_dtype>(rewriter.node().attr_int("to", 0));
  if ((from == PFRT_DTYPE_STRING) == (to == PFRT_DTYPE_STRING) || !from) return {};
  const pfrt_dtype number = from == PFRT_DTYPE_STRING ? to : from;
  const bool wide = number == PFRT_DTYPE_BOOL || dtype_bits(number) > 8 ||
                    number == PFRT_DTYPE_INT8 || number == PFRT_DTYPE_UINT8;
  if (wide) return {};
  const int64_t by = dtype_is_float(number) ? PFRT_DTYPE_FLOAT32 : PFRT_DTYPE_INT32;
  PFRT_ASSIGN(const ValueId between,
              rewriter.before("Cast", {rewriter.node().inputs[0]}, {Attribute::of_int("to", by)}));
  rewriter.set_input(0, between);
  return {};
}

}  // namespace pfrt
