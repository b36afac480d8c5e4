// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/layout/min_cut.h"

#include <algorithm>

namespace pfrt {

void MinCut::edge(uint32_t from, uint32_t to, int64_t capacity) {
  out_.resize(std::max<size_t>({out_.size(), from + size_t{1}, to + size_t{1}}));
  out_[from].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({to, capacity});
  out_[to].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::level() {
  level_.assign(count_, UINT32_MAX);
  level_[kSource] = 0;
  std::vector<uint32_t> queue{kSource};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t e : out_[queue[i]]) {
      if (edges_[e].left == 0 || level_[edges_[e].to] != UINT32_MAX) continue;
      level_[edges_[e].to] = level_[queue[i]] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[kSink] != UINT32_MAX;
}

// There is no recursion, since paths are as long as a region is deep.
int64_t MinCut::push(uint32_t source, int64_t most) {
  std::vector<uint32_t> path;  // edges from the source
  uint32_t at = source;
  while (at != kSink) {
    bool moved = false;
    for (uint32_t& i = next_[at]; i < out_[at].size(); ++i) {
      const uint32_t e = out_[at][i];
      if (edges_[e].left == 0 || level_[edges_[e].to] != level_[at] + 1) continue;
      path.push_back(e);
      at = edges_[e].to;
      moved = true;
      break;
    }
    if (moved) continue;
    if (path.empty()) return 0;
    at = edges_[path.back() ^ 1].to;
    path.pop_back();
    ++next_[at];
  }
  for (uint32_t e : path) most = std::min(most, edges_[e].left);
  for (uint32_t e : path) {
    edges_[e].left -= most;
    edges_[e ^ 1].left += most;
  }
  return most;
}

void MinCut::mark_sink_side() {
  sink_side_.assign(count_, false);
  sink_side_[kSink] = true;
  std::vector<uint32_t> queue{kSink};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t e : out_[queue[i]]) {
      const uint32_t from = edges_[e].to;
      if (edges_[e ^ 1].left == 0 || sink_side_[from]) continue;
      sink_side_[from] = true;
      queue.push_back(from);
    }
  }
}

int64_t MinCut::solve() {
  out_.resize(count_);
  int64_t flow = 0;
  while (level()) {
    next_.assign(count_, 0);
    while (const int64_t pushed = push(kSource, kInfinite))
      flow = std::min(flow + pushed, kInfinite);
  }
  mark_sink_side();
  return flow;
}

}  // namespace pfrt
