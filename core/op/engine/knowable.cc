// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/knowable.h"

#include <algorithm>
#include <array>

#include "core/op/engine/contents.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"

namespace pfrt {
namespace {

// Operators whose inference gives the contents of output 0 whenever it has those of all inputs.
bool propagates_data(std::string_view op) {
  static constexpr std::array<std::string_view, 22> kOps = {
      "Add",       "Cast",  "Concat",  "ConstantOfShape",
      "Div",       "Equal", "Expand",  "Gather",
      "Identity",  "Max",   "Min",     "Mod",
      "Mul",       "Neg",   "Range",   "ReduceProd",
      "Reshape",   "Slice", "Squeeze", "Sub",
      "Unsqueeze", "Where"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

bool propagates_dims(std::string_view op) { return op == "Shape" || op == "Size"; }

// Whether contents can be tracked for any dimensions of the run: a scalar or a short list of fixed
// length.
bool trackable(const Type& type) {
  if (!type.is_tensor() || !holds_data(type.dtype) || !type.has_shape) return false;
  // Numbers beyond int64 are not tracked.
  if (type.dtype == PFRT_DTYPE_UINT64) return false;
  if (type.shape.empty()) return true;
  return type.shape.size() == 1 && type.shape[0].known() &&
         type.shape[0].value() <= static_cast<int64_t>(kMaxData);
}

bool all_known(const std::optional<Shape>& contents) {
  return contents &&
         std::all_of(contents->begin(), contents->end(), [](const Dim& d) { return d.known(); });
}

// A quotient is known only where the divisor certainly is not zero.
bool divides_safely(const Graph& graph, const Node& node) {
  if (node.op != "Div" && node.op != "Mod") return true;
  const std::optional<Shape> divisor =
      node.has_input(1) ? contents_of(graph.constant(node.inputs[1])) : std::nullopt;
  return all_known(divisor) && std::none_of(divisor->begin(), divisor->end(),
                                            [](const Dim& d) { return d.is(0) || d.is(-1); });
}

class Analysis {
 public:
  explicit Analysis(const Graph& graph) : graph_(graph) {
    known_.dims.resize(graph.value_count(), false);
    known_.data.resize(graph.value_count(), false);
    for (ValueId id : graph.inputs)
      if (id < graph.value_count()) known_.dims[id] = may_be_tensor(id);
    for (const Capture& capture : graph.captures)
      known_.dims[capture.inner] = may_be_tensor(capture.inner);
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      if (!graph.constant(id)) continue;
      known_.dims[id] = true;
      known_.data[id] = all_known(contents_of(graph.constant(id)));
    }
  }

  void visit(const Node& node) {
    const OperatorDef* row = find_canonical(graph_, node);
    if (!row || !row->infer || (row->flags & (kOpHost | kOpDataDependent))) return;
    bool dims = true, data = true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.has_input(i)) continue;
      const ValueId in = node.inputs[i];
      dims = dims && known_.dims[in];
      // Operators need not pass on contents of constants with more dimensions.
      data = data && known_.data[in] && graph_.at(in).type.shape.size() <= 1;
      if (i < 32 && (row->shape_inputs >> i & 1u))
        dims = dims && (known_.data[in] || graph_.constant(in));
    }
    if (!dims) return;
    for (ValueId out : node.outputs)
      if (out != kNoId) known_.dims[out] = true;
    if (!node.domain.empty() || !node.has_output(0)) return;
    const ValueId out = node.outputs[0];
    known_.data[out] = trackable(graph_.at(out).type) &&
                       (propagates_dims(node.op) ||
                        (data && propagates_data(node.op) && divides_safely(graph_, node)));
  }

  Knowable take() && { return std::move(known_); }

 private:
  bool may_be_tensor(ValueId id) const {
    const pfrt_value_kind kind = graph_.at(id).type.kind;
    return kind == PFRT_VALUE_TENSOR || kind == PFRT_VALUE_UNSET;
  }

  const Graph& graph_;
  Knowable known_;
};

}  // namespace

Knowable knowable(const Graph& graph, const std::vector<NodeId>& order) {
  Analysis analysis(graph);
  for (NodeId id : order)
    if (const Node* node = graph.node(id)) analysis.visit(*node);
  return std::move(analysis).take();
}

}  // namespace pfrt
