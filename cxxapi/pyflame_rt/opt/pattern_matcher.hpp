// SPDX-License-Identifier: Apache-2.0
//
// Patterns of nodes, for one's own passes: named nodes, edges between them, and a root from which
// all others are reached.
#pragma once

#include <cstdint>
#include <memory>
#include <pyflame_rt/graph.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt::opt {

// A node of the pattern: a given operator, or any.
struct PatternNode {
  std::string op_type;  // empty = any
  std::string domain;   // "" = ai.onnx
  std::string name;     // its name in the pattern

  // Returns a node of operator |op_type|.
  static PatternNode op(std::string op_type, std::string name, std::string domain = {}) {
    return {std::move(op_type), std::move(domain), std::move(name)};
  }
  // Returns a node of any operator.
  static PatternNode any(std::string name) { return {{}, {}, std::move(name)}; }
};

// An edge of the pattern.
struct PatternEdge {
  // Names of nodes in the pattern.
  std::string from, to;
  // Index of an output of |from|, from 0 on.
  uint32_t output = 0;
  // Index of an input of |to|, from 0 on; PFRT_ANY_INPUT = any of them.
  uint32_t input = PFRT_ANY_INPUT;

  // Demands that output |output| of |from| is input |input| of |to|.
  static PatternEdge output_to_input(std::string from, std::string to, uint32_t input,
                                     uint32_t output = 0) {
    return {std::move(from), std::move(to), output, input};
  }
  // Demands that output |output| of |from| is any input of |to|.
  static PatternEdge output_to_any_input(std::string from, std::string to, uint32_t output = 0) {
    return {std::move(from), std::move(to), output, PFRT_ANY_INPUT};
  }
};

// A pattern to be found: nodes and edges. Move-only; not shared between threads.
class Pattern {
 public:
  Pattern() : handle_(nullptr, api().pattern->release) {
    pfrt_pattern* handle = nullptr;
    detail::check(api().pattern->create(&handle));
    handle_.reset(handle);
  }
  // Throws InputError when the name is taken.
  void add_node(const PatternNode& node) {
    detail::check(api().pattern->add_node(handle_.get(), detail::text(node.op_type),
                                          detail::text(node.domain), detail::text(node.name)));
  }
  // Throws PyFlameRTError (not found) when there is no such node.
  void add_edge(const PatternEdge& edge) {
    detail::check(api().pattern->add_edge(handle_.get(), detail::text(edge.from), edge.output,
                                          detail::text(edge.to), edge.input));
  }
  // Sets the root, which is otherwise the last node added.
  void set_root(const std::string& name) {
    detail::check(api().pattern->set_root(handle_.get(), detail::text(name)));
  }
  pfrt_pattern* handle() const noexcept { return handle_.get(); }

 private:
  std::unique_ptr<pfrt_pattern, void (*)(pfrt_pattern*)> handle_;
};

// A place where the pattern was found. Lives no longer than the Graph object it was found in.
class Match {
 public:
  // Returns the graph's node for the pattern's node |name|; null once it was removed.
  Node* get_node(const std::string& name) const {
    uint32_t id = PFRT_NO_NODE;
    detail::check(api().pattern->node(matches_.get(), index_, detail::text(name), &id));
    const std::shared_ptr<Node> node = id == PFRT_NO_NODE ? nullptr : graph_->node(id);
    return node.get();  // the graph holds it
  }
  // Whether only one node uses the node's outputs, as the graph is now.
  bool is_single_consumer(const std::string& name) const {
    uint32_t yes = 0;
    detail::check(
        api().pattern->is_single_consumer(matches_.get(), index_, detail::text(name), &yes));
    return yes != 0;
  }

 private:
  friend class PatternMatcher;
  Match(std::shared_ptr<pfrt_matches> matches, size_t index, const Graph* graph)
      : matches_(std::move(matches)), index_(index), graph_(graph) {}
  std::shared_ptr<pfrt_matches> matches_;
  size_t index_;
  const Graph* graph_;
};

// Finds patterns. Stateless.
class PatternMatcher {
 public:
  // Returns a match for each node that can be the root, producers first; matches may share other
  // nodes.
  std::vector<Match> find_all(const Graph& graph, const Pattern& pattern) const {
    pfrt_matches* handle = nullptr;
    detail::check(api().pattern->find_all(pattern.handle(), graph.handle(), &handle));
    const std::shared_ptr<pfrt_matches> matches(handle, api().pattern->release_matches);
    std::vector<Match> out;
    for (size_t i = 0; i < api().pattern->match_count(handle); ++i) {
      out.push_back(Match(matches, i, &graph));
    }
    return out;
  }
};

}  // namespace pyflame_rt::opt
