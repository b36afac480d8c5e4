// SPDX-License-Identifier: Apache-2.0
#include "core/op/body.h"
#include "core/op/infer.h"

namespace pfrt {
namespace {

// |declared| fills what inference left open; where the two contradict each other, inference is
// right.
Type merged(const Type& inferred, const Type& declared) {
  if (inferred.kind == PFRT_VALUE_UNSET) return declared;
  if (declared.kind != inferred.kind) return inferred;
  Type out = inferred;
  if (out.dtype == PFRT_DTYPE_UNSET) out.dtype = declared.dtype;
  if (out.key_dtype == PFRT_DTYPE_UNSET) out.key_dtype = declared.key_dtype;
  if (!declared.has_shape) return out;
  if (!out.has_shape) {
    out.has_shape = true;
    out.shape = declared.shape;
  } else if (out.shape.size() == declared.shape.size()) {
    for (size_t i = 0; i < out.shape.size(); ++i)
      if (out.shape[i].unknown()) out.shape[i] = declared.shape[i];
  }
  return out;
}

class Canonicaliser {
 public:
  explicit Canonicaliser(const Graph& root) : opsets_(root.opsets) {}

  Status run(Graph& graph, InferState state) {
    PFRT_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
    for (NodeId id : order) PFRT_TRY(visit(graph, id, state));
    for (ValueId id = 0; id < graph.value_count() && id < state.types.size(); ++id)
      if (!graph.at(id).constant && state.types[id].kind != PFRT_VALUE_UNSET)
        graph.at(id).type = std::move(state.types[id]);
    graph.opsets[""] = newest_opset("");
    for (auto& [domain, opset] : graph.opsets)
      if (const int64_t newest = newest_opset(domain)) opset = newest;
    return {};
  }

 private:
  int64_t opset_of(const Node& node) const {
    const auto it = opsets_.find(node.domain);
    return it == opsets_.end() || it->second == 0 ? newest_opset(node.domain) : it->second;
  }

  Status run_body(Graph& body, const InferState& outer) {
    ++depth_;
    Status status = run(body, body_state(body, outer));
    --depth_;
    return status;
  }

  Status visit(Graph& graph, NodeId id, InferState& state) {
    Node& node = *graph.node(id);
    if (node.domain == "ai.onnx") node.domain.clear();
    while (!node.inputs.empty() && node.inputs.back() == kNoId) node.inputs.pop_back();
    for (Attribute& attr : node.attrs) {
      if (attr.graph) PFRT_TRY(run_body(*attr.graph, state));
      for (const auto& body : attr.graphs)
        if (body) PFRT_TRY(run_body(*body, state));
    }
    std::vector<NodeId> after;
    if (!node.canonical) {
      const int64_t opset = opset_of(node);
      const OperatorDef* row = find_operator(node.domain, node.op, opset);
      if (row && row->canonicalise) {
        Rewriter rewriter(graph, id, opset, state);
        PFRT_TRY(row->canonicalise(rewriter));
        after = rewriter.take_after();
        if (rewriter.gone()) return {};
      }
      node.canonical = true;
    }
    PFRT_TRY(settle(graph, node, state));
    for (NodeId next : after) PFRT_TRY(settle(graph, *graph.node(next), state));
    return {};
  }

  Status settle(const Graph& graph, const Node& node, InferState& state) {
    // A body may never run: what does not fit in it is a fault of the run that gets there.
    Status inferred = infer_node(graph, node, state);
    if (!inferred.ok() && (depth_ == 0 || inferred.code() != Code::kSHAPE_MISMATCH))
      return inferred;
    for (ValueId out : node.outputs)
      if (out != kNoId) state.types[out] = merged(state.types[out], graph.at(out).type);
    return {};
  }

  const std::map<std::string, int64_t> opsets_;  // of the model; bodies have the same
  int depth_ = 0;                                // of bodies in bodies
};

}  // namespace

Status canonicalise(Graph& graph) {
  PFRT_TRY(check_operators(graph));
  return Canonicaliser(graph).run(graph, initial_state(graph));
}

}  // namespace pfrt
