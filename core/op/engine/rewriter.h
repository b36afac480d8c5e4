// SPDX-License-Identifier: Apache-2.0
//
// What an operator's canonical form is made with: changes of one node and around it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"
#include "core/op/engine/inference.h"

namespace pfrt {

// What canonicalise may do to a node: change it in place, or put other nodes in its stead. New
// nodes are canonical when they are given with add; they are inferred in order after the call.
class Rewriter {
 public:
  Rewriter(Graph& graph, NodeId node, int64_t opset, InferState& state)
      : graph_(graph), id_(node), opset_(opset), state_(state) {}

  Graph& graph() { return graph_; }
  Node& node() { return *graph_.node(id_); }
  int64_t opset() const { return opset_; }
  bool has_input(size_t i) const { return graph_.node(id_)->has_input(i); }
  // What is known of an input now.
  const Type& input(size_t i) const;
  bool has_shape(size_t i) const { return has_input(i) && input(i).has_shape; }
  size_t rank(size_t i) const { return input(i).shape.size(); }
  const Tensor* constant(size_t i) const;

  // A constant made for this node.
  Result<ValueId> int64s(std::string_view stem, const std::vector<int64_t>& values);
  Result<ValueId> scalar(std::string_view stem, pfrt_dtype dtype, double value);
  ValueId constant_value(std::string_view stem, Tensor tensor) {
    return graph_.add_constant(stem, std::move(tensor));
  }
  // Sets input |i|, growing the list with absent inputs.
  void set_input(size_t i, ValueId value);
  // Moves integer-list attribute |name| to input |i| as a constant; nothing when the attribute is
  // absent.
  Status attr_to_input(std::string_view name, size_t i);
  // Puts a node before this one; it is inferred at once, so that its outputs have types. Returns
  // its first output.
  Result<ValueId> before(std::string_view op, std::vector<ValueId> inputs,
                         std::vector<Attribute> attrs = {}, size_t outputs = 1);
  // Puts |made| before this one with |outputs| new outputs, which are returned; what it has for
  // operator, inputs and attributes is canonical.
  Result<std::vector<ValueId>> put_before(Node made, size_t outputs);
  // Puts |made| after output |i|, which becomes a fresh value and the first of its inputs. Not for
  // an output that |after| has moved.
  Status put_after(size_t i, Node made);
  // Puts copies of the nodes of |body|, a canonical body of this node, before it; |inputs| stand
  // for the body's. Returns what stands for its outputs.
  Result<std::vector<ValueId>> inline_body(const Graph& body, std::span<const ValueId> inputs);
  // Users of |from|, which this node made, get |to|.
  void stand_in(ValueId from, ValueId to);
  // Whether anything but this node has a use for |value|.
  bool is_used(ValueId value) const;
  // The outputs stand for |values| from now on and the node goes away. The values are outputs of
  // nodes made with before.
  void replace_with(const std::vector<ValueId>& values);
  // Puts a node after this one: this node's output 0 becomes a fresh value feeding it (and |more|
  // constants).
  Status after(std::string_view op, const std::vector<ValueId>& more,
               std::vector<Attribute> attrs = {});
  // Replaces a node that is a constant in disguise: its output becomes an initializer and the node
  // goes away.
  Status replace_with_constant(Tensor tensor);
  bool gone() const { return graph_.node(id_) == nullptr; }

  // The model is at fault: no opset has a meaning for such a node.
  template <typename... Parts>
  Status fail(const Parts&... parts) const {
    return refused(Code::kINVALID_MODEL, parts...);
  }
  // The node has a meaning, which is not to be had here.
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
