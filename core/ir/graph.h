// SPDX-License-Identifier: Apache-2.0
//
// The graph: nodes that apply operators to values. Ids of nodes and values are stable while they
// live and are never reused; removing a node leaves a hole that iteration skips. Initializers are
// values with a constant. A subgraph is a graph held by an attribute; values that it takes from
// outside are listed in |captures|. Not thread-safe while edited.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/ir/dim.h"
#include "core/memory/tensor.h"

namespace pfrt {

using NodeId = uint32_t;
using ValueId = uint32_t;
inline constexpr uint32_t kNoId = UINT32_MAX;
inline constexpr uint32_t kMaxBodyDepth = 64;  // bodies nested in bodies
// A longer dimension does not fit the address space; below the limit, arithmetic on a few is safe.
inline constexpr int64_t kLargestDim = int64_t{1} << 47;

// Knowledge of a value before a run.
struct Type {
  pfrt_value_kind kind = PFRT_VALUE_UNSET;  // UNSET: nothing known
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;      // of the tensor, or of the elements
  pfrt_dtype key_dtype = PFRT_DTYPE_UNSET;  // of a map, or of the elements that are maps
  bool has_shape = false;                   // of the tensor, or of the elements
  Shape shape;

  static Type tensor(pfrt_dtype dtype) { return {PFRT_VALUE_TENSOR, dtype, 0, false, {}}; }
  static Type tensor(pfrt_dtype dtype, Shape shape) {
    return {PFRT_VALUE_TENSOR, dtype, 0, true, std::move(shape)};
  }
  bool is_tensor() const { return kind == PFRT_VALUE_TENSOR; }
  bool fixed() const;  // has a shape of numbers only
};

// The type of a present value.
Type type_of(const Value& value);

class Graph;

struct Attribute {
  std::string name;
  pfrt_attr_type type = PFRT_ATTR_UNSET;
  int64_t i = 0;
  float f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  ValuePtr tensor;  // TENSOR and SPARSE
  std::vector<ValuePtr> tensors;
  std::shared_ptr<Graph> graph;
  std::vector<std::shared_ptr<Graph>> graphs;

  static Attribute of_int(std::string name, int64_t value);
  static Attribute of_float(std::string name, float value);
  static Attribute of_string(std::string name, std::string value);
  static Attribute of_ints(std::string name, std::vector<int64_t> values);
  static Attribute of_floats(std::string name, std::vector<float> values);
  static Attribute of_tensor(std::string name, Tensor value);
};

struct Node {
  NodeId id = kNoId;
  std::string name, op, domain, doc;
  std::vector<ValueId> inputs;   // kNoId = absent optional input
  std::vector<ValueId> outputs;  // kNoId = unwanted optional output
  std::vector<Attribute> attrs;
  bool canonical = false;  // set by canonicalise: has the meaning of canonical form 1
  // Set by canonicalise, for an operator that is not built in: the opset of the domain in the
  // model, by which the operator is chosen. 0: the graph's.
  int64_t opset = 0;
  // The node whose step should do this node's work too, as its epilogue (core/pass); kNoId = none.
  // That node may be gone.
  NodeId epilogue_of = kNoId;

  const Attribute* attr(std::string_view attr_name) const;  // nullptr when absent
  int64_t attr_int(std::string_view attr_name, int64_t fallback) const;
  float attr_float(std::string_view attr_name, float fallback) const;
  std::string_view attr_string(std::string_view attr_name, std::string_view fallback) const;
  const std::vector<int64_t>* attr_ints(std::string_view attr_name) const;
  void set_attr(Attribute attr);  // replaces one of the same name
  void drop_attr(std::string_view attr_name);
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != kNoId; }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i] != kNoId; }
};

struct GraphValue {
  std::string name;
  Type type;
  NodeId producer = kNoId;  // kNoId for inputs, initializers and captures
  ValuePtr constant;        // of an initializer
  Type declared;            // of an initializer: type declared for the value
};

struct Capture {
  ValueId outer, inner;
};

class OperatorSet;

class Graph {
 public:
  explicit Graph(std::string name = {});
  // Makes a body of |outer|, with the same symbols and opsets. Callers keep it no deeper than
  // kMaxBodyDepth.
  static std::shared_ptr<Graph> subgraph_of(Graph& outer, std::string name);
  // Exchanges everything except the owners; counts as an edit of both.
  void swap(Graph& other) noexcept;
  // A deep copy, except that constants and |symbols| are shared. Ids are kept.
  std::shared_ptr<Graph> clone() const;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name, doc;
  std::map<std::string, int64_t> opsets;  // by domain; "" is ai.onnx
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<ValueId> inputs;  // may include initializers (overridable)
  std::vector<ValueId> outputs;
  std::vector<Capture> captures;  // of a subgraph
  std::shared_ptr<SymbolTable> symbols;
  // 0 for a whole graph. A body's is larger than that of every graph around it, so that no graph is
  // inside itself.
  uint32_t depth = 0;
  uint64_t revision = 0;  // counted up by edits that invalidate what was handed out
  // Operators beside the built-in ones, null for none; bodies have their model's.
  std::shared_ptr<const OperatorSet> operators;

  // The value of that name, made when there is none. An empty name gives kNoId.
  ValueId value(std::string_view value_name);
  ValueId find(std::string_view value_name) const;  // kNoId when there is none
  // A new value with an unused name derived from |stem|.
  ValueId fresh(std::string_view stem);
  // Gives all of these values their new names at once. Another value that has such a name is
  // forgotten: nothing may use it.
  void rename(const std::vector<std::pair<ValueId, std::string>>& names);
  GraphValue& at(ValueId id) { return values_[id]; }
  const GraphValue& at(ValueId id) const { return values_[id]; }
  size_t value_count() const { return values_.size(); }
  const Tensor* constant(ValueId id) const;  // the constant tensor, or nullptr
  bool is_output(ValueId id) const;
  bool is_input(ValueId id) const;
  void set_constant(ValueId id, ValuePtr constant);  // also sets the type
  // The type of an input that may be fed: the declared one where it has a constant as its default.
  const Type& fed_type(ValueId id) const;
  // Takes the constant away; the type becomes fed_type.
  void make_fed(ValueId id);
  ValueId add_constant(std::string_view stem, Tensor tensor);
  std::vector<ValueId> initializers() const;  // in id order

  // Adds a node, and makes it the producer of its outputs. Fails when a value has a producer
  // already, or is an input or initializer.
  Result<NodeId> add_node(Node node);
  // Checks that |node| may have |outputs|: nothing else makes them, and none is there twice.
  // |doing| begins the message.
  Status check_outputs(const Node& node, const std::vector<ValueId>& outputs,
                       std::string_view doing) const;
  void set_outputs(NodeId id, std::vector<ValueId> outputs);  // checked by the caller
  void remove_node(NodeId id);
  Node* node(NodeId id) { return id < nodes_.size() ? nodes_[id].get() : nullptr; }
  const Node* node(NodeId id) const { return id < nodes_.size() ? nodes_[id].get() : nullptr; }
  size_t node_capacity() const { return nodes_.size(); }  // one past the largest id
  std::vector<NodeId> node_ids() const;                   // of live nodes, in id order
  size_t node_count() const;
  // Makes every user of |from| (nodes, captures of bodies, graph outputs) use |to|. When |from| is
  // a graph output the two swap names, so that the output keeps its name.
  void replace_uses(ValueId from, ValueId to);

  // Inputs, and outer values captured by the node's bodies, absent ones left out, each once.
  std::vector<ValueId> used_by(const Node& node) const;
  // Nodes in topological order, ties in id order; VALIDATION naming the nodes of a cycle.
  Result<std::vector<NodeId>> topological_order() const;
  // Makes names that a body uses and does not define captures of |outer|, recursively. Called once
  // a graph is built.
  Status bind_captures();
  int64_t opset(std::string_view domain) const;  // 0 when the domain is not imported

 private:
  Status bind_captures_to(Graph* outer);
  // A VALIDATION error that names the cycle among the nodes that are not in |order|.
  Status cycle_error(const std::vector<NodeId>& order) const;
  std::deque<GraphValue> values_;  // a deque, since names must stay in place
  std::unordered_map<std::string, ValueId> by_name_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

// "Conv 'conv1'" or, without a name, "Conv producing 'x'".
std::string describe(const Graph& graph, const Node& node);

}  // namespace pfrt
