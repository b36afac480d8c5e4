// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/layer_assignment.h"

#include <algorithm>

namespace cli {
namespace {

struct Neighbours {
  std::vector<std::vector<size_t>> in, out;  // links of each box

  Neighbours(size_t boxes, const std::vector<Link>& links) : in(boxes), out(boxes) {
    for (size_t i = 0; i < links.size(); ++i) {
      in[links[i].to].push_back(i);
      out[links[i].from].push_back(i);
    }
  }
};

// Sorts boxes so that each follows its predecessors. Where only circles are left, the first of
// those boxes goes on, and the links that lead back to it are cut.
std::vector<size_t> sort_boxes(const Neighbours& near, const std::vector<Link>& links,
                               std::vector<bool>* cut) {
  const size_t count = near.in.size();
  std::vector<size_t> waits(count), order;
  std::vector<bool> done(count, false);
  for (size_t box = 0; box < count; ++box) {
    waits[box] = near.in[box].size();
    if (waits[box] == 0) order.push_back(box);
  }
  size_t next = 0;
  for (size_t at = 0; at < count; ++at) {
    if (at == order.size()) {
      while (done[next] || waits[next] == 0) ++next;
      waits[next] = 0;
      order.push_back(next);
    }
    const size_t box = order[at];
    for (const size_t i : near.in[box]) {
      if (!done[links[i].from]) (*cut)[i] = true;
    }
    done[box] = true;
    for (const size_t i : near.out[box]) {
      const size_t to = links[i].to;
      if (!done[to] && waits[to] != 0 && --waits[to] == 0) order.push_back(to);
    }
  }
  return order;
}

// Moves boxes that need nothing else, and boxes that follow from them alone, down to where they are
// needed: a mask that layer 12 takes is drawn there and not beside the input.
void sink_sources(const Neighbours& near, const std::vector<Link>& links,
                  const std::vector<size_t>& order, Ranking* out) {
  std::vector<bool> sinks(order.size(), false);
  for (const size_t box : order) {
    sinks[box] = std::all_of(near.in[box].begin(), near.in[box].end(), [&](size_t i) {
      return out->cut[i] || (sinks[links[i].from] && near.out[links[i].from].size() == 1);
    });
  }
  for (auto box = order.rbegin(); box != order.rend(); ++box) {
    if (!sinks[*box]) continue;
    size_t lowest = out->ranks;
    for (const size_t i : near.out[*box]) {
      if (!out->cut[i]) lowest = std::min(lowest, out->rank[links[i].to]);
    }
    if (lowest != out->ranks) out->rank[*box] = lowest - 1;
  }
}

// Cuts the links that span more than |limit| ranks, and returns how many ranks the ways of all
// values then cross.
size_t crossed(const std::vector<Link>& links, size_t values, const Ranking& ranking, size_t limit,
               std::vector<bool>* cut) {
  std::vector<size_t> length(values, 1);
  for (size_t i = 0; i < links.size(); ++i) {
    if (ranking.cut[i]) continue;
    const size_t span = ranking.rank[links[i].to] - ranking.rank[links[i].from];
    (*cut)[i] = span > limit;
    if (span <= limit) length[links[i].value] = std::max(length[links[i].value], span);
  }
  size_t sum = 0;
  for (const size_t l : length) sum += l - 1;
  return sum;
}

}  // namespace

Ranking rank_boxes(size_t boxes, const std::vector<Link>& links, size_t values) {
  Ranking out;
  out.rank.assign(boxes, 0);
  out.cut.assign(links.size(), false);
  const Neighbours near(boxes, links);
  const std::vector<size_t> order = sort_boxes(near, links, &out.cut);
  for (const size_t box : order) {
    for (const size_t i : near.in[box]) {
      if (!out.cut[i]) out.rank[box] = std::max(out.rank[box], out.rank[links[i].from] + 1);
    }
    out.ranks = std::max(out.ranks, out.rank[box] + 1);
  }
  sink_sources(near, links, order, &out);

  const size_t budget = 2000 + 10 * boxes;
  std::vector<bool> cut = out.cut;
  for (size_t limit = out.ranks; crossed(links, values, out, limit, &cut) > budget; limit /= 2) {
  }
  out.cut = std::move(cut);
  return out;
}

}  // namespace cli
