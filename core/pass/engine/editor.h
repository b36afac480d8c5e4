// SPDX-License-Identifier: Apache-2.0
//
// A canonical graph while it is rewritten: the producer and users of each value are at hand, edits
// cost only what they touch, and every edited node is remembered for the worklist (rules.h). Types
// and the known contents of small integer values follow the edits. Bodies are edited by editors of
// their own. Not thread-safe.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/os/progress.h"
#include "core/ir/graph.h"
#include "core/op/engine/infer.h"
#include "core/op/engine/inference.h"

namespace pfrt {

class Editor {
 public:
  // |outer| is the state of the graph around a body, or nullptr. |progress| may stop it, here and
  // in refresh; null = nothing does.
  static Result<Editor> open(Graph& graph, const InferState* outer = nullptr,
                             const Progress* progress = nullptr);
  // Has the effect of opening anew, but infers only what was edited since, and what follows from
  // it. Not for bodies, since the graph around them may have changed.
  Status refresh();

  Graph& graph() { return *graph_; }
  const Graph& graph() const { return *graph_; }
  const InferState& state() const { return state_; }
  // The graph's topological order.
  Result<std::vector<NodeId>> topological_order();
  Node* node(NodeId id) { return graph_->node(id); }

  // The nodes that use |value|, in bodies too, each once.
  const std::vector<NodeId>& users(ValueId value) const;
  bool is_output(ValueId value) const;
  bool is_input(ValueId value) const;
  // A default-domain node of operator |op| that makes |value| as its output 0, or nullptr.
  Node* maker(ValueId value, std::string_view op);
  Node* producer(ValueId value);
  // The only node that uses |value|, which is no graph output; nullptr otherwise.
  Node* only_user(ValueId value);
  // Whether nothing but |user| uses the value, which is no graph output.
  bool only_used_by(ValueId value, const Node& user) const;
  const Tensor* constant(ValueId value) const { return graph_->constant(value); }
  const Type& type(ValueId value) const;
  // Rank, where it is known.
  std::optional<size_t> rank(ValueId value) const;
  // Known contents of a small integer value; elements may be symbolic.
  const std::optional<Shape>& contents(ValueId value) const;
  // The contents as numbers; nullopt unless all are known.
  std::optional<std::vector<int64_t>> numbers(ValueId value) const;
  // Whether both certainly have the same element type and dimensions.
  bool same_type(ValueId a, ValueId b) const;
  // Whether the output of an elementwise node certainly has the type of its input |value|, also
  // where some dimensions are unknown.
  bool keeps_type(const Node& elementwise, ValueId value) const;

  // A constant named after |stem|.
  ValueId add_constant(std::string_view stem, Tensor tensor);
  Result<ValueId> int64s(std::string_view stem, const std::vector<int64_t>& values);
  // Adds a canonical node and infers the types of its outputs. |stem|, the name of what it
  // replaces, names it and its outputs.
  Result<ValueId> add(std::string_view op, std::string_view stem, std::vector<ValueId> inputs,
                      std::vector<Attribute> attrs = {}, std::string_view domain = {});
  // Adds |made|, which has operator, inputs and attributes, and returns its outputs.
  Result<std::vector<ValueId>> add_node(Node made, std::string_view stem, size_t outputs = 1);
  // Whether a node makes the value, or the graph has it as a constant, input or capture. An edit
  // may have removed the producer of a value that a pass remembers.
  bool is_there(ValueId value) const;
  // Whether replace may be called: |to| is there. A graph output keeps its name, so its replacement
  // must be made by a node and be no output itself.
  bool can_replace(ValueId from, ValueId to) const;
  // Makes all users of |from| use |to|, which has the same meaning, and removes what becomes
  // unused.
  void replace(ValueId from, ValueId to);
  // Makes |value| a constant; the node that made it is removed when nothing needs its other
  // outputs.
  void replace_with_constant(ValueId value, ValuePtr constant);
  void set_input(Node& node, size_t i, ValueId value);
  // Is called after attributes were changed in place.
  Status changed(Node& node);
  // Is called after the node's bodies have changed; |before| has the values it used.
  void forget_uses(Node& node, const std::vector<ValueId>& before);
  // Removes a node whose outputs nothing uses, and whatever only it needed.
  void remove_unused(NodeId id);
  // Removes the contents of a constant that nothing uses.
  void drop_constant(ValueId value);
  // Removes captures that nothing in this body uses.
  void drop_captures();
  bool unused(const Node& node) const;

  // Nodes to look at again, each once; clears the list.
  std::vector<NodeId> take_touched();
  uint64_t edits() const { return edits_; }
  uint64_t nodes_added() const { return added_; }
  uint64_t nodes_removed() const { return removed_; }

 private:
  explicit Editor(Graph& graph, const Progress* progress) : graph_(&graph), progress_(progress) {}
  void grow();
  void use(ValueId value, NodeId id);
  void disuse(ValueId value, NodeId id);
  void touch(NodeId id);
  void touch_around(ValueId value);
  void touch_user(NodeId id);
  void touch_left(ValueId value);  // one of its users no longer uses it
  void replace_output(ValueId from, ValueId to);
  Status look(size_t& visited) const;  // whether to stop
  void count_users(const std::vector<NodeId>& order);
  Status infer(Node& node);
  // Infers the node; users of an output that has changed are to be inferred too.
  Status infer_again(Node& node);

  Graph* graph_;
  InferState state_;
  std::vector<std::vector<NodeId>> users_;
  // For values with many users: the place of each user in its list.
  std::unordered_map<ValueId, std::unordered_map<NodeId, size_t>> places_;
  std::unordered_map<ValueId, std::vector<size_t>> output_places_;  // in graphs of many outputs
  std::vector<bool> output_, input_;                                // by value
  std::vector<NodeId> touched_;
  std::vector<bool> is_touched_;  // by node
  std::vector<bool> stale_;       // by node: touched since the editor was opened or refreshed
  std::vector<NodeId> order_;     // as of edit |ordered_at_|
  uint64_t added_ = 0, removed_ = 0, edits_ = 0, ordered_at_ = 0, fresh_at_ = 0;
  const Progress* progress_;
};

// Runs |fn|, which takes a Graph and gives a Status, on every body of |node|.
template <typename Fn>
Status for_each_body(const Node& node, Fn fn) {
  for (const Attribute& attr : node.attrs) {
    if (attr.graph) PFRT_TRY(fn(*attr.graph));
    for (const auto& body : attr.graphs)
      if (body) PFRT_TRY(fn(*body));
  }
  return {};
}

bool has_bodies(const Node& node);

}  // namespace pfrt
