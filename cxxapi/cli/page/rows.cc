// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/rows.h"

#include <algorithm>
#include <utility>

namespace cli {
namespace {

constexpr double kLineWidth = 4;
constexpr int kOrderSweeps = 8;
constexpr int kPlaceSweeps = 13;

void join(Rows* rows, size_t upper, size_t lower) {
  rows->items[upper].down.push_back(lower);
  rows->items[lower].up.push_back(upper);
}

// Orders each rank by a walk along the lines, which keeps connected boxes together.
void walk(Rows* rows) {
  std::vector<bool> seen(rows->items.size(), false);
  std::vector<std::pair<size_t, size_t>> stack;  // an item, and the next of its lower ones
  const auto visit = [&](size_t item) {
    if (seen[item]) return;
    seen[item] = true;
    rows->ranks[rows->items[item].rank].push_back(item);
    stack.emplace_back(item, 0);
  };
  for (size_t start = 0; start < rows->items.size(); ++start) {
    if (!rows->items[start].up.empty()) continue;
    visit(start);
    while (!stack.empty()) {
      auto& [item, next] = stack.back();
      const std::vector<size_t>& down = rows->items[item].down;
      if (next == down.size()) {
        stack.pop_back();
      } else {
        visit(down[next++]);
      }
    }
  }
}

std::vector<double> positions(const Rows& rows) {
  std::vector<double> out(rows.items.size());
  for (const auto& rank : rows.ranks) {
    for (size_t i = 0; i < rank.size(); ++i) out[rank[i]] = static_cast<double>(i);
  }
  return out;
}

// Counts pairs of lines that cross between rank |r| and the next: inversions, by a Fenwick tree.
size_t crossings_below(const Rows& rows, size_t r, const std::vector<double>& position) {
  const size_t width = rows.ranks[r + 1].size();
  std::vector<size_t> tree(width + 1, 0);
  size_t crossings = 0, seen = 0;
  std::vector<size_t> ends;
  for (const size_t item : rows.ranks[r]) {
    ends.clear();
    for (const size_t next : rows.items[item].down) {
      ends.push_back(static_cast<size_t>(position[next]));
    }
    for (const size_t end : ends) {
      size_t left = 0;
      for (size_t i = end + 1; i > 0; i -= i & (~i + 1)) left += tree[i];
      crossings += seen - left;
    }
    for (const size_t end : ends) {
      for (size_t i = end + 1; i <= width; i += i & (~i + 1)) ++tree[i];
    }
    seen += ends.size();
  }
  return crossings;
}

size_t crossings(const Rows& rows) {
  const std::vector<double> position = positions(rows);
  size_t sum = 0;
  for (size_t r = 0; r + 1 < rows.ranks.size(); ++r) sum += crossings_below(rows, r, position);
  return sum;
}

double mean(const std::vector<size_t>& items, const std::vector<double>& of, double otherwise) {
  if (items.empty()) return otherwise;
  double sum = 0;
  for (const size_t item : items) sum += of[item];
  return sum / static_cast<double>(items.size());
}

// Sorts every rank by the barycentres of the neighbours on one side.
void sweep(Rows* rows, bool down) {
  std::vector<double> position = positions(*rows);
  std::vector<double> wish(rows->items.size());
  const size_t count = rows->ranks.size();
  for (size_t step = 1; step < count; ++step) {
    std::vector<size_t>& rank = rows->ranks[down ? step : count - 1 - step];
    for (const size_t item : rank) {
      const Item& at = rows->items[item];
      wish[item] = mean(down ? at.up : at.down, position, position[item]);
    }
    std::stable_sort(rank.begin(), rank.end(),
                     [&](size_t a, size_t b) { return wish[a] < wish[b]; });
    for (size_t i = 0; i < rank.size(); ++i) position[rank[i]] = static_cast<double>(i);
  }
}

double distance(const Rows& rows, size_t left, size_t right) {
  const bool boxes = left < rows.boxes && right < rows.boxes;
  const double halves = (rows.items[left].size.width + rows.items[right].size.width) / 2;
  return halves + (boxes ? 22 : 12);
}

// Moves the items of a rank as near to |wish| as their order and distances allow: the least sum of
// weighted squares, by pooling neighbours that violate them.
void settle(const Rows& rows, const std::vector<size_t>& rank, const std::vector<double>& wish,
            const std::vector<double>& weight, std::vector<double>* x) {
  struct Pool {
    double at, weight;
    size_t count;
  };
  std::vector<Pool> pools;
  double offset = 0;
  std::vector<double> offsets;
  for (size_t i = 0; i < rank.size(); ++i) {
    if (i != 0) offset += distance(rows, rank[i - 1], rank[i]);
    offsets.push_back(offset);
    Pool pool{wish[rank[i]] - offset, weight[rank[i]], 1};
    while (!pools.empty() && pools.back().at >= pool.at) {
      const Pool& left = pools.back();
      const double sum = left.weight + pool.weight;
      pool = {(left.at * left.weight + pool.at * pool.weight) / sum, sum, left.count + pool.count};
      pools.pop_back();
    }
    pools.push_back(pool);
  }
  size_t i = 0;
  for (const Pool& pool : pools) {
    for (size_t end = i + pool.count; i < end; ++i) (*x)[rank[i]] = pool.at + offsets[i];
  }
}

}  // namespace

Rows make_rows(const std::vector<Size>& boxes, const std::vector<Link>& links, size_t values,
               const Ranking& ranking) {
  Rows rows;
  rows.boxes = boxes.size();
  rows.ranks.resize(ranking.ranks);
  rows.ways.resize(values);
  for (size_t i = 0; i < boxes.size(); ++i)
    rows.items.push_back({boxes[i], ranking.rank[i], {}, {}});
  std::vector<size_t> span(values, 0);
  for (size_t i = 0; i < links.size(); ++i) {
    if (ranking.cut[i]) continue;
    const Link& link = links[i];
    span[link.value] = std::max(span[link.value], ranking.rank[link.to] - ranking.rank[link.from]);
    rows.ways[link.value].from = link.from;
  }
  for (size_t value = 0; value < values; ++value) {
    if (span[value] < 2) continue;
    Way& way = rows.ways[value];
    way.first = rows.items.size();
    way.count = span[value] - 1;
    for (size_t i = 0; i < way.count; ++i) {
      rows.items.push_back({{kLineWidth, 0}, ranking.rank[way.from] + 1 + i, {}, {}});
      join(&rows, i == 0 ? way.from : way.first + i - 1, way.first + i);
    }
  }
  for (size_t i = 0; i < links.size(); ++i) {
    if (ranking.cut[i]) continue;
    const Link& link = links[i];
    const size_t steps = ranking.rank[link.to] - ranking.rank[link.from];
    join(&rows, steps == 1 ? link.from : rows.ways[link.value].first + steps - 2, link.to);
  }
  return rows;
}

void order_rows(Rows* rows) {
  walk(rows);
  std::vector<std::vector<size_t>> best = rows->ranks;
  size_t fewest = crossings(*rows);
  for (int i = 0; i < kOrderSweeps && fewest != 0; ++i) {
    sweep(rows, i % 2 == 0);
    const size_t now = crossings(*rows);
    if (now >= fewest) continue;
    fewest = now;
    best = rows->ranks;
  }
  rows->ranks = std::move(best);
}

std::vector<double> place_rows(const Rows& rows) {
  const size_t count = rows.items.size();
  std::vector<double> x(count, 0), wish(count, 0), weight(count, 1);
  // Long lines become straight before boxes move to the middle of their inputs.
  for (size_t item = rows.boxes; item < count; ++item) weight[item] = 4;
  for (const auto& rank : rows.ranks) settle(rows, rank, wish, weight, &x);
  for (int i = 0; i < kPlaceSweeps; ++i) {
    // The last sweep goes down, so that boxes that follow one box alone stand straight below it.
    const bool down = i % 2 == 0, both = i + 3 == kPlaceSweeps || i + 2 == kPlaceSweeps;
    for (size_t step = 0; step < rows.ranks.size(); ++step) {
      const std::vector<size_t>& rank = rows.ranks[down ? step : rows.ranks.size() - 1 - step];
      for (const size_t item : rank) {
        const Item& at = rows.items[item];
        const double upper = mean(at.up, x, x[item]), lower = mean(at.down, x, x[item]);
        if (both && !at.up.empty() && !at.down.empty()) {
          wish[item] = (upper + lower) / 2;
        } else {
          wish[item] = (down || both) && !at.up.empty() ? upper : lower;
        }
      }
      settle(rows, rank, wish, weight, &x);
    }
  }
  return x;
}

}  // namespace cli
