// SPDX-License-Identifier: Apache-2.0
#include "core/ir/edit.h"

#include <algorithm>
#include <map>

namespace pfrt {
namespace {

using Names = std::map<std::string, std::string>;  // old name to new

bool defines(const Graph& graph, ValueId id) {
  const GraphValue& v = graph.at(id);
  return v.producer != kNoId || v.constant || graph.is_input(id);
}

template <typename Fn>
void for_each_body(const Node& node, Fn fn) {
  for (const Attribute& a : node.attrs) {
    if (a.graph) fn(*a.graph);
    for (const auto& body : a.graphs) fn(*body);
  }
}

// Names among |names| that refer to a value outside of |body|.
Names captured(const Graph& body, const Names& names) {
  Names out;
  for (const auto& [from, to] : names) {
    const ValueId id = body.find(from);
    if (id != kNoId && !defines(body, id)) out.emplace(from, to);
  }
  return out;
}

Status check_recapture(const Node& node, const Names& names) {
  Status status;
  for_each_body(node, [&](const Graph& body) {
    const Names mine = captured(body, names);
    for (const auto& [from, to] : mine) {
      const ValueId other = body.find(to);
      if (status.ok() && other != kNoId && defines(body, other))
        status = error(Code::kVALIDATION, "body '", body.name, "' uses '", from,
                       "' from around it and would have to call it '", to,
                       "', but has a value of its own under that name; rename that one first");
    }
    if (mine.empty()) return;
    for (NodeId id : body.node_ids())
      if (status.ok()) status = check_recapture(*body.node(id), mine);
  });
  return status;
}

void recapture(Node& node, const Names& names) {
  for_each_body(node, [&](Graph& body) {
    const Names mine = captured(body, names);
    if (mine.empty()) return;
    ++body.revision;
    for (NodeId id : body.node_ids()) recapture(*body.node(id), mine);
    std::vector<std::pair<ValueId, std::string>> renamed;
    for (const auto& [from, to] : mine) {
      const ValueId id = body.find(from), other = body.find(to);
      if (other == kNoId || mine.count(to)) {
        renamed.emplace_back(id, to);
        continue;
      }
      // The body has the outer value under this name already.
      for (NodeId user : body.node_ids())
        std::replace(body.node(user)->inputs.begin(), body.node(user)->inputs.end(), id, other);
      std::replace(body.outputs.begin(), body.outputs.end(), id, other);
    }
    body.rename(renamed);
  });
}

}  // namespace

bool in_use(const Graph& graph, ValueId id) {
  if (defines(graph, id) || graph.is_output(id)) return true;
  for (NodeId n : graph.node_ids()) {
    const std::vector<ValueId> used = graph.used_by(*graph.node(n));
    if (std::find(used.begin(), used.end(), id) != used.end()) return true;
  }
  return false;
}

Status replace_uses(Graph& graph, ValueId from, ValueId to, NodeId except) {
  if (from == to) return {};
  PFRT_TRY(graph.bind_captures());
  const std::string from_name = graph.at(from).name, to_name = graph.at(to).name;
  const bool swap = graph.is_output(from) && !graph.is_output(to) &&
                    graph.at(from).producer != kNoId && graph.at(to).producer != kNoId;
  const auto names_for = [&](NodeId id) -> Names {
    if (id == except) return swap ? Names{{from_name, to_name}, {to_name, from_name}} : Names();
    return swap ? Names{{to_name, from_name}} : Names{{from_name, to_name}};
  };
  const std::vector<NodeId> ids = graph.node_ids();
  for (NodeId id : ids) PFRT_TRY(check_recapture(*graph.node(id), names_for(id)));
  for (NodeId id : ids) {
    Node& node = *graph.node(id);
    if (id != except) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
    recapture(node, names_for(id));
  }
  std::replace(graph.outputs.begin(), graph.outputs.end(), from, to);
  if (swap) graph.rename({{from, to_name}, {to, from_name}});
  return graph.bind_captures();
}

Status rename_value(Graph& graph, ValueId id, std::string_view name) {
  if (graph.at(id).name == name) return {};
  PFRT_TRY(graph.bind_captures());
  if (const ValueId other = graph.find(name); other != kNoId && in_use(graph, other))
    return error(Code::kVALIDATION, "renaming value '", graph.at(id).name, "': '", name,
                 "' is in use already; choose another name");
  const Names names{{graph.at(id).name, std::string(name)}};
  const std::vector<NodeId> ids = graph.node_ids();
  for (NodeId n : ids) PFRT_TRY(check_recapture(*graph.node(n), names));
  for (NodeId n : ids) recapture(*graph.node(n), names);
  graph.rename({{id, std::string(name)}});
  return graph.bind_captures();
}

}  // namespace pfrt
