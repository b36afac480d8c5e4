// SPDX-License-Identifier: Apache-2.0
#include "core/verify/node_precision.h"

#include <algorithm>

#include "core/exec/body_call.h"

namespace pfrt {
namespace {

bool makes(const Graph& graph, const Node& node, std::string_view name) {
  return std::ranges::any_of(node.outputs,
                             [&](ValueId id) { return id != kNoId && graph.at(id).name == name; });
}

bool is_named(const Graph& graph, const Node& node, std::string_view name) {
  return node.name == name || makes(graph, node, name);
}

// The rest of |name| behind that of |node| and a '/'; empty where it does not begin so.
std::vector<std::string_view> inside(const Graph& graph, const Node& node, std::string_view name) {
  std::vector<std::string_view> out;
  // Names may have a '/' themselves.
  for (size_t at = name.find('/', 1); at != name.npos; at = name.find('/', at + 1))
    if (is_named(graph, node, name.substr(0, at))) out.push_back(name.substr(at + 1));
  return out;
}

void add_names(const Graph& graph, const std::string& around, std::vector<std::string>& out) {
  for (const NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    out.push_back(around + node.name);
    for_each_body(node, [&](const std::shared_ptr<Graph>& body) {
      add_names(*body, around + node.name + "/", out);
    });
  }
}

// Gives |precision| to each node of |graph| and its bodies that |name| means; false: there is none.
bool set_precision(const Graph& graph, std::string_view name, const NodePrecision& precision,
                   pfrt_compile_hints others, GraphPrecisions& out) {
  bool found = false;
  for (const NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    if (is_named(graph, node, name)) {
      std::vector<NodePrecision>& own = out[&graph];
      if (own.empty()) own.assign(graph.node_capacity(), NodePrecision{others, {}});
      own[id] = precision;
      found = true;
    }
    for_each_body(node, [&](const std::shared_ptr<Graph>& body) {
      for (const std::string_view rest : inside(graph, node, name))
        found = set_precision(*body, rest, precision, others, out) || found;
    });
  }
  return found;
}

}  // namespace

pfrt_compile_hints precision_hint(std::string_view word) {
  if (word == "ieee") return PFRT_COMPILE_PLAIN;
  if (word == "fast") return PFRT_COMPILE_FAST;
  return word == "bf16" ? PFRT_COMPILE_BF16 : 0;
}

Result<NamedPrecisions> named_precisions(const std::vector<std::string>& entries) {
  NamedPrecisions out;
  for (const std::string& entry : entries) {
    const size_t at = entry.rfind('=');
    const std::string word = at == entry.npos ? std::string() : entry.substr(at + 1);
    if (at == 0 || (word != "ieee" && word != "fp32" && word != "fast" && word != "bf16"))
      return error(Code::kINVALID_ARGUMENT, "creating a session: node_precision '", entry,
                   "' is not NAME=ieee, NAME=fp32, NAME=fast or NAME=bf16");
    out.push_back({entry.substr(0, at), word});
  }
  return out;
}

std::vector<std::string> precision_names(const Graph& graph) {
  std::vector<std::string> out;
  add_names(graph, "", out);
  return out;
}

GraphPrecisions precisions_of(const Graph& graph, const NamedPrecisions& named,
                              pfrt_compile_hints others, std::vector<std::string>* missing) {
  GraphPrecisions out;
  out[&graph];
  for (const NamedPrecision& one : named) {
    const NodePrecision precision{precision_hint(one.word),
                                  message("precision ", one.word, " as asked")};
    if (!set_precision(graph, one.node, precision, others, out) && missing)
      missing->push_back(one.node);
  }
  // Where a graph has none of its own, all of its nodes have |others|.
  std::vector<NodePrecision>& own = out[&graph];
  if (own.empty()) own.assign(graph.node_capacity(), NodePrecision{others, {}});
  return out;
}

}  // namespace pfrt
