// SPDX-License-Identifier: Apache-2.0
#include "core/pass/engine/pattern.h"

#include "capi/handle/counted.h"
#include "capi/handle/graph.h"
#include "capi/handle/guard.h"
#include "capi/handle/slots.h"

struct pfrt_pattern {
  [[no_unique_address]] pfrt::capi::Alive alive;
  pfrt::Pattern pattern;
};

struct pfrt_matches {
  [[no_unique_address]] pfrt::capi::Alive alive;
  ~pfrt_matches() { pfrt::capi::release(graph); }
  pfrt_graph* graph = nullptr;
  pfrt::Pattern pattern;
  std::vector<std::vector<pfrt::NodeId>> matches;
};

namespace pfrt::capi {
namespace {

static_assert(PFRT_ANY_INPUT == Pattern::kAnyInput);

template <typename Fn>
pfrt_status* edit(pfrt_pattern* pattern, Fn fn) {
  return guard([&]() -> Status {
    if (!pattern) return null_argument("pattern");
    return fn(pattern->pattern);
  });
}

pfrt_status* create(pfrt_pattern** out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_pattern");
    *out = nullptr;
    *out = new pfrt_pattern;
    return {};
  });
}

void release_pattern(pfrt_pattern* pattern) { delete pattern; }

pfrt_status* add_node(pfrt_pattern* pattern, pfrt_string op, pfrt_string domain, pfrt_string name) {
  return edit(pattern, [&](Pattern& p) { return p.add_node(view(op), view(domain), view(name)); });
}

pfrt_status* add_edge(pfrt_pattern* pattern, pfrt_string from, uint32_t output, pfrt_string to,
                      uint32_t input) {
  return edit(pattern, [&](Pattern& p) { return p.add_edge(view(from), output, view(to), input); });
}

pfrt_status* set_root(pfrt_pattern* pattern, pfrt_string name) {
  return edit(pattern, [&](Pattern& p) { return p.set_root(view(name)); });
}

pfrt_status* find_all(const pfrt_pattern* pattern, pfrt_graph* graph, pfrt_matches** out) {
  return guard([&]() -> Status {
    if (!pattern || !graph || !out)
      return null_argument(!pattern ? "pattern" : !graph ? "graph" : "out_matches");
    *out = nullptr;
    auto made = std::make_unique<pfrt_matches>();
    PFRT_ASSIGN(made->matches, pattern->pattern.find_all(*graph->graph));
    made->pattern = pattern->pattern;
    retain(graph);
    made->graph = graph;
    *out = made.release();
    return {};
  });
}

void release_matches(pfrt_matches* matches) { delete matches; }

size_t match_count(const pfrt_matches* matches) { return matches ? matches->matches.size() : 0; }

Result<NodeId> bound(const pfrt_matches* m, size_t match, pfrt_string name) {
  if (!m) return null_argument("matches");
  if (match >= m->matches.size())
    return error(Code::kINVALID_ARGUMENT, "reading match ", match, " of ", m->matches.size());
  PFRT_ASSIGN(const size_t index, m->pattern.index_of(view(name)));
  return m->matches[match][index];
}

pfrt_status* node(const pfrt_matches* m, size_t match, pfrt_string name, uint32_t* out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_id");
    PFRT_ASSIGN(const NodeId id, bound(m, match, name));
    *out = m->graph->graph->node(id) ? id : PFRT_NO_NODE;
    return {};
  });
}

pfrt_status* is_single_consumer(const pfrt_matches* m, size_t match, pfrt_string name,
                                uint32_t* out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_yes");
    PFRT_ASSIGN(const NodeId id, bound(m, match, name));
    const Graph& graph = *m->graph->graph;
    *out = graph.node(id) && has_single_consumer(graph, *graph.node(id));
    return {};
  });
}

}  // namespace

const pfrt_pattern_api kPatternApi = {
    sizeof(pfrt_pattern_api),
    PFRT_ABI_VERSION,
    create,
    last_call<release_pattern, pfrt_pattern>,
    add_node,
    add_edge,
    set_root,
    find_all,
    last_call<release_matches, pfrt_matches>,
    match_count,
    node,
    is_single_consumer,
};

}  // namespace pfrt::capi
