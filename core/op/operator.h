// SPDX-License-Identifier: Apache-2.0
//
// What the runtime knows of operators, whoever runs them: a row an operator and opset range, with
// arity, canonical form, shape inference and cost. Families are lists in this folder's <family>.cc;
// operators() joins them.
//
// Two steps prepare a graph (see infer.h). canonicalise turns a node of any opset into canonical
// form 1: the meaning of opset 28, defaults filled in, attributes decoded, axes non-negative where
// the rank is known. infer works on canonical nodes alone, on symbolic shapes when a model is
// loaded and on numbers when a run's signature is known. All functions are pure but for the graph
// they are given; thread-safe on different graphs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

class Inference;
class Rewriter;

using OpFlags = uint32_t;
enum : OpFlags {
  kOpPlain = 0,
  // The host runs it: control flow, sequences, optionals, strings.
  kOpHost = 1,
  // Output shapes are known only after the run (NonZero, Unique, Compress, ...).
  kOpDataDependent = 2,
  // Not a function of its inputs (RandomNormal, training Dropout, ...).
  kOpRandom = 4,
  // The host runs it when it meets strings or what is not a tensor; otherwise providers do.
  kOpHostStrings = 8,
  // There to say why it is refused; not listed among the operators.
  kOpRefused = 16,
};

struct OperatorDef {
  std::string_view domain;  // "" is ai.onnx
  std::string_view name;
  int since, until;  // opset range, inclusive; until 0 = still current
  int min_inputs, max_inputs, min_outputs, max_outputs;  // -1 = any number
  OpFlags flags;
  // Bit i set: inference wants the contents of input i (a shape, axes, starts, ...). Where those
  // cannot be known before the run, the host runs what precedes first.
  uint32_t shape_inputs;
  // Null: the node already has the newest meaning, only its name is checked.
  Status (*canonicalise)(Rewriter& rewriter);
  Status (*infer)(Inference& inference);
  // Floating-point (or integer) operations; null: one an output element.
  double (*flops)(const Inference& inference);
};

// All families of built-in operators, in family order.
std::span<const std::span<const OperatorDef>> operators();
// The built-in row for |name| in |domain| at |opset|, or nullptr.
const OperatorDef* find_operator(std::string_view domain, std::string_view name, int64_t opset);
// Likewise, or that of |graph|'s own operators, which any opset as of their first may use.
const OperatorDef* find_operator(const Graph& graph, const Node& node, int64_t opset);
// The row with the newest meaning, for canonical nodes.
const OperatorDef* find_canonical(const Graph& graph, const Node& node);
// Whether there is a row of that name at any opset.
bool is_built_in(std::string_view domain, std::string_view name);
// The newest opset known of a domain; 0 for an unknown domain.
int64_t newest_opset(std::string_view domain);

// Types and small integer contents of values during inference, by ValueId.
struct InferState {
  std::vector<Type> types;
  // Known contents of small integer (or bool) tensors in row-major order: shapes, axes, pads.
  // Elements may be symbolic.
  std::vector<std::optional<Shape>> data;
  // Values at hand though they are not constants of the graph: what has been run already.
  std::unordered_map<ValueId, Tensor> contents;
  // While a graph is brought into canonical form: what nodes that are gone made, and the values
  // that users get instead when their turn comes.
  std::unordered_map<ValueId, ValueId>* instead = nullptr;
  const std::vector<bool>* used = nullptr;  // by value, then too: whether anything used it at first
};

// One node's view of the state.
class Inference {
 public:
  Inference(const Graph& graph, const Node& node, InferState& state)
      : graph_(graph), node_(node), state_(state) {}

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  SymbolTable& symbols() const { return *graph_.symbols; }
  InferState& state() const { return state_; }

  size_t input_count() const { return node_.inputs.size(); }
  bool has_input(size_t i) const { return node_.has_input(i); }
  const Type& input(size_t i) const;  // an unset Type for an absent input
  bool has_shape(size_t i) const { return has_input(i) && input(i).has_shape; }
  const Shape& shape(size_t i) const { return input(i).shape; }
  size_t rank(size_t i) const { return input(i).shape.size(); }
  // Contents of a small integer input, from a constant or from propagation.
  std::optional<Shape> data(size_t i) const;
  // As numbers; nullopt unless every element is known.
  std::optional<std::vector<int64_t>> numbers(size_t i) const;
  // A constant, or contents that the state has; nullptr otherwise.
  const Tensor* constant(size_t i) const;

  size_t output_count() const { return node_.outputs.size(); }
  void set_output(size_t i, Type type);
  void set_output(size_t i, pfrt_dtype dtype, Shape shape) {
    set_output(i, Type::tensor(dtype, std::move(shape)));
  }
  void set_output_unknown_shape(size_t i, pfrt_dtype dtype) { set_output(i, Type::tensor(dtype)); }
  // Contents of an output, kept when at most 1,024 elements.
  void set_data(size_t i, Shape elements);
  const Type& output(size_t i) const;

  // |axis| in [-rank, rank) to [0, rank), or an error naming the node.
  Result<int64_t> axis(int64_t axis, size_t rank) const;
  // NumPy broadcasting; equal symbols match, a symbol against a number > 1 takes the number.
  Result<Shape> broadcast(const Shape& a, const Shape& b) const;
  // A fault of the model, prefixed with the node: "Conv 'c1': ...".
  template <typename... Parts>
  Status fail(const Parts&... parts) const {
    return error(Code::kSHAPE_MISMATCH, describe(graph_, node_), ": ", parts...);
  }

 private:
  const Graph& graph_;
  const Node& node_;
  InferState& state_;
};

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
  void become(const std::vector<ValueId>& values);
  // Puts a node after this one: this node's output 0 becomes a fresh value feeding it (and |more|
  // constants).
  Status after(std::string_view op, std::vector<ValueId> more, std::vector<Attribute> attrs = {});
  // Replaces a node that is a constant in disguise: its output becomes an initializer and the node
  // goes away.
  Status become_constant(Tensor tensor);
  bool gone() const { return graph_.node(id_) == nullptr; }

  // The opset cannot be given the newest meaning.
  template <typename... Parts>
  Status fail(const Parts&... parts) const {
    return error(Code::kUNSUPPORTED_OPERATOR, describe(graph_, *graph_.node(id_)), " (opset ",
                 opset_, "): ", parts...);
  }
  std::vector<NodeId> take_after() { return std::move(after_); }

 private:
  Graph& graph_;
  NodeId id_;
  int64_t opset_;
  InferState& state_;
  std::vector<NodeId> after_;
};

}  // namespace pfrt
