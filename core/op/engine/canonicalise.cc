// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/canonicalise.h"

#include <unordered_map>
#include <unordered_set>

#include "core/op/engine/body.h"
#include "core/op/engine/check_operators.h"
#include "core/op/engine/infer.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"
#include "core/op/engine/rewriter.h"
#include "core/op/engine/sparse.h"
#include "core/op/engine/string_numbers.h"

namespace pfrt {
namespace {

// Kind and element types fill what inference left open. Declared dimensions do not: a run may have
// others, and a wrong one would mislead rewrites and plans.
Type merged(const Type& inferred, const Type& declared) {
  Type out = inferred;
  if (inferred.kind == PFRT_VALUE_UNSET) out.kind = declared.kind;
  if (declared.kind != out.kind) return out;
  if (out.dtype == PFRT_DTYPE_UNSET) out.dtype = declared.dtype;
  if (out.key_dtype == PFRT_DTYPE_UNSET) out.key_dtype = declared.key_dtype;
  return out;
}

// Bodies nested deeper are not tried: a trial tries the bodies in it.
constexpr int kTrialDepth = 2;

// Number of nodes between two checks whether the caller has cancelled.
constexpr size_t kStopInterval = 64;

bool differ_in_dtype(const Type& a, const Type& b) {
  return a.kind == b.kind && a.dtype != b.dtype && a.dtype && b.dtype;
}

// Whether both types are known and cannot both be right.
bool contradict(const Type& a, const Type& b) {
  if (a.kind == PFRT_VALUE_UNSET || b.kind == PFRT_VALUE_UNSET) return false;
  if (a.kind != b.kind || differ_in_dtype(a, b)) return true;
  if (!a.has_shape || !b.has_shape) return false;
  if (a.shape.size() != b.shape.size()) return true;
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (a.shape[i].known() && b.shape[i].known() && a.shape[i].value() != b.shape[i].value())
      return true;
  return false;
}

std::string text_of(const Type& type, const SymbolTable& symbols) {
  return std::string(dtype_name(type.dtype)) +
         (type.has_shape ? symbols.text(type.shape) : std::string());
}

class Canonicaliser {
 public:
  Canonicaliser(std::map<std::string, int64_t> opsets, const CanonicaliseWatch& watch,
                int depth = 0)
      : opsets_(std::move(opsets)), watch_(watch), depth_(depth) {}

  Status run(Graph& graph, const InferState* outer) {
    PFRT_TRY(make_initializers_dense(graph, dense_bytes_));
    InferState state = outer ? body_state(graph, *outer) : initial_state(graph);
    const std::vector<bool> used = used_values(graph);
    std::vector<Type> declared;
    declared.reserve(graph.outputs.size());
    for (const ValueId out : graph.outputs) declared.push_back(graph.at(out).type);
    std::unordered_map<ValueId, ValueId> instead;
    state.used = &used;
    state.instead = &instead;
    PFRT_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
    for (NodeId id : order) {
      if (watch_.progress && ++visited_ % kStopInterval == 0) PFRT_TRY(watch_.progress->stop());
      Status visited = visit(graph, id, state);
      if (!visited.ok() && !watch_.faults) return visited;
      if (!visited.ok()) watch_.faults->push_back(std::move(visited));
    }
    const std::unordered_set<ValueId> inputs(graph.inputs.begin(), graph.inputs.end());
    state.types.resize(std::max(state.types.size(), graph.value_count()));
    for (ValueId id = 0; id < graph.value_count(); ++id)
      if (!graph.at(id).constant && !inputs.contains(id))
        graph.at(id).type = merged(state.types[id], graph.at(id).type);
    PFRT_TRY(check_outputs(graph, declared));
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

  static std::vector<bool> used_values(const Graph& graph) {
    std::vector<bool> used(graph.value_count());
    for (NodeId id : graph.node_ids())
      for (ValueId value : graph.used_by(*graph.node(id))) used[value] = true;
    return used;
  }

  static void take_instead(Node& node, const std::unordered_map<ValueId, ValueId>& instead) {
    if (instead.empty()) return;
    const auto resolve = [&](ValueId& value) {
      for (auto it = instead.find(value); it != instead.end(); it = instead.find(value))
        value = it->second;
    };
    for (ValueId& in : node.inputs) resolve(in);
    for (Attribute& attr : node.attrs) {
      if (attr.graph)
        for (Capture& c : attr.graph->captures) resolve(c.outer);
      for (const auto& body : attr.graphs)
        if (body)
          for (Capture& c : body->captures) resolve(c.outer);
    }
  }

  Status run_body(Graph& body, const InferState& outer) {
    ++depth_;
    Status status = run(body, &outer);
    --depth_;
    return status;
  }

  Status run_bodies(const Graph& graph, Node& node, InferState& state) {
    for (Attribute& attr : node.attrs) {
      if (attr.graph && repeats_body(node)) PFRT_TRY(type_inputs(graph, node, *attr.graph, state));
      if (attr.graph) PFRT_TRY(run_body(*attr.graph, state));
      for (const auto& body : attr.graphs)
        if (body) PFRT_TRY(run_body(*body, state));
    }
    return {};
  }

  // Gives the inputs of a repeated body the types that hold in every iteration, which trials on
  // copies find.
  Status type_inputs(const Graph& graph, const Node& node, Graph& body, InferState& state) {
    const Inference inference(graph, node, state);
    BodyTypes trial;
    if (depth_ < kTrialDepth)
      trial = [&](std::span<const Type> inputs) { return try_body(body, inputs, state); };
    PFRT_ASSIGN(const std::vector<Type> types, repeated_inputs(inference, body, trial));
    for (size_t i = 0; i < types.size() && i < body.inputs.size(); ++i) {
      Type& declared = body.at(body.inputs[i]).type;
      declared = merged(types[i], declared);
    }
    return {};
  }

  Result<std::vector<Type>> try_body(const Graph& body, std::span<const Type> inputs,
                                     const InferState& outer) const {
    const std::shared_ptr<Graph> copy = body.clone();
    for (size_t i = 0; i < inputs.size() && i < copy->inputs.size(); ++i) {
      Type& declared = copy->at(copy->inputs[i]).type;
      declared = merged(inputs[i], declared);
    }
    CanonicaliseWatch quiet;
    quiet.progress = watch_.progress;
    Canonicaliser trial(opsets_, quiet, depth_ + 1);
    PFRT_TRY(trial.run(*copy, &outer));
    std::vector<Type> types;
    types.reserve(copy->outputs.size());
    for (const ValueId out : copy->outputs) types.push_back(copy->at(out).type);
    return types;
  }

  Status visit(Graph& graph, NodeId id, InferState& state) {
    Node& node = *graph.node(id);
    take_instead(node, *state.instead);
    // A node without a row, or with a wrong number of inputs, was reported before: its outputs get
    // their declared types.
    if (watch_.faults && !fits_a_row(node)) return declare(graph, node, state);
    if (node.domain == "ai.onnx") node.domain.clear();
    while (!node.inputs.empty() && node.inputs.back() == kNoId) node.inputs.pop_back();
    // The inputs of a repeated body follow from the node's canonical form.
    const bool repeats = repeats_body(node);
    if (!repeats) PFRT_TRY(run_bodies(graph, node, state));
    std::vector<NodeId> after;
    if (!node.canonical) {
      const int64_t opset = opset_of(node);
      const OperatorDef* row = find_operator(graph, node, opset);
      Rewriter rewriter(graph, id, opset, state);
      PFRT_TRY(number_strings(rewriter));
      if (row && row->canonicalise) PFRT_TRY(row->canonicalise(rewriter));
      after = rewriter.take_after();
      if (rewriter.gone()) return {};
      node.canonical = true;
      if (!is_built_in(node.domain, node.op)) node.opset = opset;
    }
    if (repeats) PFRT_TRY(run_bodies(graph, node, state));
    PFRT_TRY(settle(graph, node, state));
    for (NodeId next : after) PFRT_TRY(settle(graph, *graph.node(next), state));
    return {};
  }

  Status settle(const Graph& graph, const Node& node, InferState& state) {
    // A body may never run: a misfit in it is a fault of the run that gets there.
    Status inferred = infer_node(graph, node, state);
    if (!inferred.ok() && (depth_ == 0 || inferred.code() != Code::kSHAPE_MISMATCH))
      return inferred;
    for (ValueId out : node.outputs) {
      if (out == kNoId) continue;
      const Type declared = graph.at(out).type;
      check_declared(graph, node, out, state.types[out]);
      state.types[out] = merged(state.types[out], declared);
    }
    return {};
  }

  bool fits_a_row(const Node& node) const {
    const OperatorDef* row = find_operator(node.domain, node.op, opset_of(node));
    const auto fits = [](const std::vector<ValueId>& values, int least, int most) {
      const auto count = static_cast<int>(values.size());
      return count >= least && (most < 0 || count <= most);
    };
    return row && fits(node.inputs, row->min_inputs, row->max_inputs) &&
           fits(node.outputs, row->min_outputs, row->max_outputs);
  }

  static Status declare(const Graph& graph, const Node& node, InferState& state) {
    state.types.resize(std::max(state.types.size(), graph.value_count()));
    state.data.resize(std::max(state.data.size(), graph.value_count()));
    for (ValueId out : node.outputs)
      if (out != kNoId) state.types[out] = graph.at(out).type;
    return {};
  }

  // Users of an output rely on its declared element type; other wrong declarations mislead nobody.
  Status check_outputs(const Graph& graph, std::span<const Type> declared) const {
    for (size_t i = 0; i < declared.size() && !watch_.faults; ++i) {
      const GraphValue& out = graph.at(graph.outputs[i]);
      if (!out.type.is_tensor() || !differ_in_dtype(out.type, declared[i])) continue;
      const Node* const node = graph.node(out.producer);
      return error(Code::kINVALID_MODEL, node ? describe(graph, *node) + ": " : "", "output '",
                   out.name, "' is declared as ", dtype_name(declared[i].dtype), ", but ",
                   node ? "the node makes " : "is ", dtype_name(out.type.dtype),
                   "; declare it as that, or convert it by a Cast");
    }
    return {};
  }

  void check_declared(const Graph& graph, const Node& node, ValueId out, const Type& inferred) {
    const Type& declared = graph.at(out).type;
    if ((!watch_.faults && !watch_.contradicted) || !contradict(inferred, declared)) return;
    if (watch_.contradicted && watch_.contradicted->count++ > 0 && !watch_.faults) return;
    std::string text = message(describe(graph, node), ": output '", graph.at(out).name,
                               "' is declared as ", text_of(declared, *graph.symbols),
                               ", but the node makes ", text_of(inferred, *graph.symbols));
    if (watch_.contradicted && watch_.contradicted->first.empty())
      watch_.contradicted->first = text;
    if (watch_.faults) watch_.faults->push_back(Status(Code::kVALIDATION, std::move(text)));
  }

  const std::map<std::string, int64_t> opsets_;  // of the model; bodies have the same
  const CanonicaliseWatch& watch_;
  int depth_;  // of bodies in bodies
  size_t visited_ = 0;
  uint64_t dense_bytes_ = 0;  // made of sparse initializers
};

}  // namespace

Status canonicalise(Graph& graph, const CanonicaliseWatch& watch) {
  if (!watch.faults) PFRT_TRY(check_operators(graph));
  return Canonicaliser(graph.opsets, watch).run(graph, nullptr);
}

}  // namespace pfrt
