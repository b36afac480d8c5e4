// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/infer.h"

#include "core/ir/verify.h"
#include "core/op/engine/contents.h"
#include "core/op/engine/operator_set.h"

namespace pfrt {
namespace {

// Gives |state| an entry for every value; constants made since the last call get theirs filled.
void track(const Graph& graph, InferState& state) {
  const size_t count = graph.value_count();
  size_t id = std::min(state.types.size(), state.data.size());
  if (id >= count) return;
  state.types.resize(count);
  state.data.resize(count);
  for (; id < count; ++id) {
    const GraphValue& value = graph.at(static_cast<ValueId>(id));
    if (!value.constant) continue;
    state.types[id] = value.type;
    state.data[id] = contents_of(graph.constant(static_cast<ValueId>(id)));
  }
}

Status check_kinds(const Inference& inference, const OperatorDef& row) {
  if (row.flags & (kOpHost | kOpHostStrings)) return {};
  for (size_t i = 0; i < inference.input_count(); ++i) {
    const pfrt_value_kind kind = inference.input(i).kind;
    if (kind != PFRT_VALUE_UNSET && kind != PFRT_VALUE_TENSOR)
      return error(Code::kVALIDATION, describe(inference.graph(), inference.node()), ": input ", i,
                   " is not a dense tensor (kind ", kind, "), the operator takes tensors only");
  }
  return {};
}

// Checks sizes, since later code may multiply the dimensions of a value.
Status check_sizes(const Inference& inference) {
  const Graph& graph = inference.graph();
  for (size_t i = 0; i < inference.output_count(); ++i) {
    const Type& type = inference.output(i);
    if (!type.is_tensor() || !dtype_known(type.dtype)) continue;
    Dims dims;
    for (const Dim& dim : type.shape) dims.push_back(dim.known() ? dim.value() : 1);
    const bool longest = std::ranges::any_of(dims, [](int64_t d) { return d > kLargestDim; });
    if (longest || tensor_bytes(type.dtype, element_count(dims.data(), dims.size())) == UINT64_MAX)
      return inference.fail("output ", i, " would be ", type_text(type, *graph.symbols),
                            ": more bytes than can be addressed");
  }
  return {};
}

}  // namespace

InferState initial_state(const Graph& graph) {
  InferState state;
  track(graph, state);
  for (ValueId id : graph.inputs)
    if (id < state.types.size() && !graph.at(id).constant) state.types[id] = graph.at(id).type;
  return state;
}

Status infer_node(const Graph& graph, const Node& node, InferState& state) {
  track(graph, state);
  const OperatorDef* row = find_canonical(graph, node);
  if (!row)
    return error(Code::kUNSUPPORTED_OPERATOR, describe(graph, node),
                 ": no operator of that name in canonical form");
  // Results of an earlier inference are removed.
  for (ValueId out : node.outputs) {
    if (out == kNoId) continue;
    state.types[out] = Type();
    state.data[out].reset();
  }
  Inference inference(graph, node, state);
  PFRT_TRY(check_kinds(inference, *row));
  if (!row->infer) return {};
  PFRT_TRY(row->infer(inference));
  return check_sizes(inference);
}

Status infer(const Graph& graph, const std::vector<NodeId>& order, InferState& state) {
  track(graph, state);
  for (NodeId id : order)
    if (const Node* node = graph.node(id)) PFRT_TRY(infer_node(graph, *node, state));
  return {};
}

InferState body_state(const Graph& body, const InferState& outer) {
  InferState state = initial_state(body);
  for (const Capture& capture : body.captures) {
    if (capture.outer < outer.types.size()) state.types[capture.inner] = outer.types[capture.outer];
    if (capture.outer < outer.data.size()) state.data[capture.inner] = outer.data[capture.outer];
  }
  return state;
}

}  // namespace pfrt
