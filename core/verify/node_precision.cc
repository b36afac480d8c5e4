// SPDX-License-Identifier: Apache-2.0
#include "core/verify/node_precision.h"

#include <algorithm>

namespace pfrt {
namespace {

bool makes(const Graph& graph, const Node& node, const std::string& name) {
  return std::ranges::any_of(node.outputs,
                             [&](ValueId id) { return id != kNoId && graph.at(id).name == name; });
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

std::vector<NodePrecision> precisions_of(const Graph& graph, const NamedPrecisions& named,
                                         pfrt_compile_hints others,
                                         std::vector<std::string>* missing) {
  std::vector<NodePrecision> out(graph.node_capacity(), NodePrecision{others, {}});
  for (const NamedPrecision& one : named) {
    bool found = false;
    for (const NodeId id : graph.node_ids()) {
      const Node& node = *graph.node(id);
      if (node.name != one.node && !makes(graph, node, one.node)) continue;
      out[id] = {precision_hint(one.word), message("precision ", one.word, " as asked")};
      found = true;
    }
    if (!found && missing) missing->push_back(one.node);
  }
  return out;
}

}  // namespace pfrt
