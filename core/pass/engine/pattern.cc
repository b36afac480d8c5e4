// SPDX-License-Identifier: Apache-2.0
#include "core/pass/engine/pattern.h"

#include <algorithm>
#include <unordered_map>

namespace pfrt {
namespace {

std::string_view plain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

}  // namespace

Result<size_t> Pattern::index_of(std::string_view name) const {
  std::string known;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].name == name) return i;
    known += (i ? ", '" : "'") + nodes_[i].name + "'";
  }
  return error(Code::kNOT_FOUND, "the pattern has no node '", name, "'; it has ",
               known.empty() ? "none" : known);
}

Status Pattern::add_node(std::string_view op, std::string_view domain, std::string_view name) {
  if (name.empty() || index_of(name).ok())
    return error(Code::kINVALID_ARGUMENT, "adding a node to a pattern: the name '", name, "' is ",
                 name.empty() ? "empty" : "taken", "; each node needs a name of its own");
  nodes_.push_back({std::string(op), std::string(plain(domain)), std::string(name)});
  return {};
}

Status Pattern::add_edge(std::string_view from, uint32_t output, std::string_view to,
                         uint32_t input) {
  PFRT_ASSIGN(const size_t source, index_of(from));
  PFRT_ASSIGN(const size_t target, index_of(to));
  edges_.push_back({source, target, output, input});
  return {};
}

Status Pattern::set_root(std::string_view name) {
  PFRT_ASSIGN(root_, index_of(name));
  return {};
}

// Binds pattern nodes to graph nodes along the edges, the root first, and backtracks where an edge
// can be followed in several ways.
class Pattern::Search {
 public:
  Search(const Pattern& pattern, const Graph& graph) : pattern_(pattern), graph_(graph) {
    for (NodeId id : graph.node_ids())
      for (ValueId in : graph.node(id)->inputs)
        if (in != kNoId) users_[in].push_back(id);
  }

  // Orders edges such that each has a bound end when its turn comes, or tells why there is no such
  // order.
  Status order_edges(size_t root) {
    std::vector<bool> reached(pattern_.nodes_.size());
    std::vector<bool> taken(pattern_.edges_.size());
    reached[root] = true;
    for (bool found = true; found;) {
      found = false;
      for (size_t e = 0; e < taken.size(); ++e) {
        const Edge& edge = pattern_.edges_[e];
        if (taken[e] || (!reached[edge.from] && !reached[edge.to])) continue;
        taken[e] = found = reached[edge.from] = reached[edge.to] = true;
        edges_.push_back(&edge);
      }
    }
    for (size_t i = 0; i < reached.size(); ++i)
      if (!reached[i])
        return error(Code::kINVALID_ARGUMENT, "looking for a pattern: node '",
                     pattern_.nodes_[i].name, "' is not connected to the root '",
                     pattern_.nodes_[root].name, "' by edges");
    return {};
  }

  bool match(size_t root, NodeId id, std::vector<NodeId>& bound) {
    bound.assign(pattern_.nodes_.size(), kNoId);
    return bind(root, id, bound, 0);
  }

 private:
  bool fits(size_t which, const Node& node) const {
    const PatternNode& wanted = pattern_.nodes_[which];
    return wanted.op.empty() || (node.op == wanted.op && plain(node.domain) == wanted.domain);
  }

  bool joined(const Edge& edge, const Node& from, const Node& to) const {
    if (!from.has_output(edge.output)) return false;
    const ValueId value = from.outputs[edge.output];
    if (edge.input != kAnyInput) return to.has_input(edge.input) && to.inputs[edge.input] == value;
    return std::ranges::find(to.inputs, value) != to.inputs.end();
  }

  bool bind(size_t which, NodeId id, std::vector<NodeId>& bound, size_t edge) {
    const Node* node = graph_.node(id);
    if (!node || !fits(which, *node) || std::ranges::find(bound, id) != bound.end()) return false;
    bound[which] = id;
    if (follow(bound, edge)) return true;
    bound[which] = kNoId;
    return false;
  }

  bool follow(std::vector<NodeId>& bound, size_t at) {
    if (at == edges_.size()) return true;
    const Edge& edge = *edges_[at];
    const NodeId from = bound[edge.from], to = bound[edge.to];
    if (from != kNoId && to != kNoId)
      return joined(edge, *graph_.node(from), *graph_.node(to)) && follow(bound, at + 1);
    if (to != kNoId) {
      const Node& node = *graph_.node(to);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if ((edge.input != kAnyInput && edge.input != i) || node.inputs[i] == kNoId) continue;
        const NodeId maker = graph_.at(node.inputs[i]).producer;
        if (maker != kNoId && joined(edge, *graph_.node(maker), node) &&
            bind(edge.from, maker, bound, at + 1))
          return true;
      }
      return false;
    }
    const Node& node = *graph_.node(from);
    if (!node.has_output(edge.output)) return false;
    const auto users = users_.find(node.outputs[edge.output]);
    if (users == users_.end()) return false;
    return std::ranges::any_of(users->second, [&](NodeId user) {
      return joined(edge, node, *graph_.node(user)) && bind(edge.to, user, bound, at + 1);
    });
  }

  const Pattern& pattern_;
  const Graph& graph_;
  std::unordered_map<ValueId, std::vector<NodeId>> users_;
  std::vector<const Edge*> edges_;
};

Result<std::vector<std::vector<NodeId>>> Pattern::find_all(const Graph& graph) const {
  if (nodes_.empty())
    return error(Code::kINVALID_ARGUMENT, "looking for a pattern: it has no nodes");
  const size_t root = root_ == SIZE_MAX ? nodes_.size() - 1 : root_;
  Search search(*this, graph);
  PFRT_TRY(search.order_edges(root));
  PFRT_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  std::vector<std::vector<NodeId>> out;
  std::vector<NodeId> bound;
  for (NodeId id : order)
    if (search.match(root, id, bound)) out.push_back(bound);
  return out;
}

bool has_single_consumer(const Graph& graph, const Node& node) {
  size_t uses = 0;
  for (ValueId out : node.outputs) {
    if (out == kNoId) continue;
    if (graph.is_output(out)) return false;
    for (NodeId id : graph.node_ids()) {
      const std::vector<ValueId> used = graph.used_by(*graph.node(id));
      uses += std::ranges::find(used, out) != used.end();
    }
  }
  return uses == 1;
}

}  // namespace pfrt
