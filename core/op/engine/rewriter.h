// SPDX-License-Identifier: Apache-2.0
//
// Changes a node, and the graph around it, to bring it into canonical form.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"
#include "core/op/engine/inference.h"

namespace pfrt {

// Lets canonicalise change a node in place, or put other nodes in its stead. New nodes are given in
// canonical form and inferred in order after the call.
class Rewriter {
 public:
  Rewriter(Graph& graph, NodeId node, int64_t opset, InferState& state)
      : graph_(graph), id_(node), opset_(opset), state_(state) {}

  Graph& graph() { return graph_; }
  Node& node() { return *graph_.node(id_); }
  int64_t opset() const { return opset_; }
  bool has_input(size_t i) const { return graph_.node(id_)->has_input(i); }
  // The present knowledge of an input.
  const Type& input(size_t i) const;
  bool has_shape(size_t i) const { return has_input(i) && input(i).has_shape; }
  size_t rank(size_t i) const { return input(i).shape.size(); }
  const Tensor* constant(size_t i) const;

  // Make a constant for this node.
  Result<ValueId> int64s(std::string_view stem, const std::vector<int64_t>& values);
  Result<ValueId> scalar(std::string_view stem, pfrt_dtype dtype, double value);
  ValueId constant_value(std::string_view stem, Tensor tensor) {
    return graph_.add_constant(stem, std::move(tensor));
  }
  // Sets input |i|, growing the list with absent inputs.
  void set_input(size_t i, ValueId value);
  // Moves integer-list attribute |name| to input |i| as a constant; does nothing when the attribute
  // is absent.
  Status attr_to_input(std::string_view name, size_t i);
  // Puts a node before this one and infers it at once, so that its outputs have types. Returns its
  // first output.
  Result<ValueId> before(std::string_view op, std::vector<ValueId> inputs,
                         std::vector<Attribute> attrs = {}, size_t outputs = 1);
  // Puts |made| before this one and returns its |outputs| new outputs; |made| has operator, inputs
  // and attributes in canonical form.
  Result<std::vector<ValueId>> put_before(Node made, size_t outputs);
  // Puts |made| after output |i|, which becomes a fresh value and the first input of |made|. Not
  // for an output that |after| has moved.
  Status put_after(size_t i, Node made);
  // Puts copies of the nodes of |body|, a canonical body of this node, before it; |inputs| replace
  // the body's. Returns the values for its outputs.
  Result<std::vector<ValueId>> inline_body(const Graph& body, std::span<const ValueId> inputs);
  // Makes users of |from|, which this node made, use |to|.
  void stand_in(ValueId from, ValueId to);
  // Whether anything but this node uses |value|.
  bool is_used(ValueId value) const;
  // Makes users of the outputs use |values|, and removes the node. The values are outputs of nodes
  // made with before.
  void replace_with(const std::vector<ValueId>& values);
  // Puts a node after this one: this node's output 0 becomes a fresh value that feeds it (with
  // |more| constants).
  Status after(std::string_view op, const std::vector<ValueId>& more,
               std::vector<Attribute> attrs = {});
  // Replaces a node that is a constant in disguise: its output becomes an initializer, and the node
  // is removed.
  Status replace_with_constant(Tensor tensor);
  bool gone() const { return graph_.node(id_) == nullptr; }

  // Reports a fault of the model: no opset has a meaning for such a node.
  template <typename... Parts>
  Status fail(const Parts&... parts) const {
    return refused(Code::kINVALID_MODEL, parts...);
  }
  // Reports a node that has a meaning, but is not supported here.
  template <typename... Parts>
  Status unsupported(const Parts&... parts) const {
    return refused(Code::kUNSUPPORTED_OPERATOR, parts...);
  }
  std::vector<NodeId> take_after() { return std::move(after_); }

 private:
  template <typename... Parts>
  Status refused(Code code, const Parts&... parts) const {
    return error(code, describe(graph_, *graph_.node(id_)), " (opset ", opset_, "): ", parts...);
  }
  Graph& graph_;
  NodeId id_;
  int64_t opset_;
  InferState& state_;
  std::vector<NodeId> after_;
};

}  // namespace pfrt
