// SPDX-License-Identifier: Apache-2.0
#include "core/plan/assign.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

namespace pfrt {
namespace {

class Assigner {
 public:
  Assigner(const Graph& graph, const std::vector<NodeId>& order,
           const std::vector<Candidate>& candidates, const std::vector<Claims>& claims,
           const std::vector<bool>& host, const std::vector<bool>& splits)
      : candidates_(candidates), claims_(claims), host_(host), splits_(splits) {
    const size_t count = order.size();
    out_.owner.assign(count, kNobody);
    out_.nodes.resize(count);
    consumers_.resize(count);
    unit_.resize(count);
    std::vector<uint32_t> index_of(graph.node_capacity(), UINT32_MAX);
    for (uint32_t i = 0; i < count; ++i) index_of[order[i]] = i;
    for (uint32_t i = 0; i < count; ++i) {
      unit_[i] = i;
      for (ValueId v : graph.used_by(*graph.node(order[i]))) {
        const NodeId producer = graph.at(v).producer;
        if (producer != kNoId) consumers_[index_of[producer]].push_back(i);
      }
    }
  }

  Assignment run() {
    grouped_.resize(candidates_.size());
    for (size_t p = 0; p < candidates_.size(); ++p) {
      grouped_[p].assign(out_.owner.size(), false);
      for (const ClaimGroup& group : claims_[p].groups)
        for (uint32_t i : group.nodes) grouped_[p][i] = true;
    }
    for (uint32_t i = 0; i < out_.owner.size(); ++i) choose(i);
    take_groups();
    while (!schedule()) dissolve_stuck_groups();
    return std::move(out_);
  }

 private:
  const Claim& claim(int p, uint32_t i) const { return claims_[static_cast<size_t>(p)].nodes[i]; }
  bool simulated(int p) const { return candidates_[static_cast<size_t>(p)].provider->simulated(); }

  // The rule between two providers that would run the same nodes at these costs.
  bool better(int p, double p_ns, int other, double other_ns) const {
    if (other < 0) return true;
    if (simulated(p) || simulated(other)) return p < other;
    return p_ns < other_ns || (p_ns == other_ns && p < other);
  }

  // Each node by itself; what a provider runs only in a group is left to take_groups.
  void choose(uint32_t i) {
    NodePlan& plan = out_.nodes[i];
    if (host_[i]) {
      out_.owner[i] = kHost;
      plan.reason = "control flow, sequences and strings run in the host";
      return;
    }
    int best = kNobody;
    plan.refused.clear();
    for (size_t at = 0; at < candidates_.size(); ++at) {
      const int p = static_cast<int>(at);
      const Claim& c = claim(p, i);
      const auto refuse = [&](const std::string& reason) {
        plan.refused += (plan.refused.empty() ? "" : "; ") + candidates_[at].name + ": " + reason;
      };
      if (!c.accepted) {
        if (!c.reason.empty()) refuse(c.reason);
      } else if (grouped_[at][i]) {
        refuse("runs it only together with others");
      } else if (better(p, c.est_ns, best, best < 0 ? 0 : claim(best, i).est_ns)) {
        best = p;
      }
    }
    out_.owner[i] = best;
    if (best < 0) return;
    plan.est_ns = claim(best, i).est_ns;
    plan.reason = candidates_.size() == 1 ? "the only provider"
                                          : "lowest estimated cost of those that accept it";
  }

  void take_groups() {
    struct Bid {
      int provider;
      const ClaimGroup* group;
    };
    std::vector<Bid> bids;
    for (size_t p = 0; p < candidates_.size(); ++p)
      for (const ClaimGroup& group : claims_[p].groups)
        bids.push_back({static_cast<int>(p), &group});
    std::stable_sort(bids.begin(), bids.end(), [](const auto& a, const auto& b) {
      return a.group->saved_ns > b.group->saved_ns;
    });
    for (const Bid& c : bids)
      if (wins(c.provider, *c.group) && convex(*c.group)) take(c.provider, *c.group);
  }

  bool in_group(uint32_t i) const { return members_.count(unit_[i]) != 0; }

  bool wins(int p, const ClaimGroup& group) const {
    double here = -group.saved_ns, elsewhere = 0;
    int other = kNobody;
    bool needed = false;  // somebody has to run what nobody else would
    for (uint32_t i : group.nodes) {
      if (!claim(p, i).accepted || host_[i] || splits_[i] || in_group(i)) return false;
      here += claim(p, i).est_ns;
      const int owner = out_.owner[i];
      needed |= owner < 0;
      if (owner < 0) continue;
      elsewhere += claim(owner, i).est_ns;
      if (other < 0 || owner < other) other = owner;
    }
    return needed || better(p, here, other, elsewhere);
  }

  // No path leaves the group and comes back.
  bool convex(const ClaimGroup& group) const {
    const uint32_t first = group.nodes.front(), last = group.nodes.back();
    const auto inside = [&](uint32_t i) {
      return std::binary_search(group.nodes.begin(), group.nodes.end(), i);
    };
    std::vector<bool> seen(last - first + 1, false);
    std::vector<uint32_t> todo;
    const auto follow = [&](uint32_t i, bool from_outside) {
      for (uint32_t next : consumers_[i]) {
        if (next > last || seen[next - first]) continue;
        if (inside(next)) {
          if (from_outside) return false;
          continue;
        }
        seen[next - first] = true;
        todo.push_back(next);
      }
      return true;
    };
    for (uint32_t i : group.nodes) follow(i, false);
    while (!todo.empty()) {
      const uint32_t i = todo.back();
      todo.pop_back();
      if (!follow(i, true)) return false;
    }
    return true;
  }

  void take(int p, const ClaimGroup& group) {
    for (uint32_t i : group.nodes) {
      out_.owner[i] = p;
      unit_[i] = group.nodes.front();
      out_.nodes[i].est_ns = claim(p, i).est_ns;
      out_.nodes[i].reason =
          "in a group of " + std::to_string(group.nodes.size()) + " nodes that cost less together";
    }
    members_[group.nodes.front()] = group.nodes;
  }

  using Heap = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>;

  static Heap* next_heap(std::map<int, Heap>& ready, int current) {
    if (current >= 0 && !ready[current].empty()) return &ready[current];
    Heap* first = nullptr;
    for (auto& [owner, heap] : ready)
      if (!heap.empty() && (!first || heap.top() < first->top())) first = &heap;
    return first;
  }

  // Lists units whose producers are listed, the current owner's first. False when groups wait for
  // each other.
  bool schedule() {
    const size_t count = out_.owner.size();
    std::vector<uint32_t> waiting(count, 0);  // by unit
    for (uint32_t i = 0; i < count; ++i)
      for (uint32_t next : consumers_[i])
        if (unit_[next] != unit_[i]) ++waiting[unit_[next]];
    std::map<int, Heap> ready;  // by owner
    for (uint32_t i = 0; i < count; ++i)
      if (unit_[i] == i && waiting[i] == 0) ready[out_.owner[i]].push(i);
    out_.sequence.clear();
    int current = kHost;
    while (true) {
      Heap* from = next_heap(ready, current);
      if (!from) break;
      const uint32_t unit = from->top();
      from->pop();
      current = out_.owner[unit];
      const auto group = members_.find(unit);
      const std::vector<uint32_t> alone{unit};
      for (uint32_t i : group == members_.end() ? alone : group->second) {
        out_.sequence.push_back(i);
        for (uint32_t next : consumers_[i])
          if (unit_[next] != unit && --waiting[unit_[next]] == 0)
            ready[out_.owner[unit_[next]]].push(unit_[next]);
      }
    }
    return out_.sequence.size() == count;
  }

  void dissolve_stuck_groups() {
    std::vector<bool> listed(out_.owner.size(), false);
    for (uint32_t i : out_.sequence) listed[i] = true;
    for (auto it = members_.begin(); it != members_.end();) {
      if (listed[it->first]) {
        ++it;
        continue;
      }
      for (uint32_t i : it->second) {
        unit_[i] = i;
        choose(i);
      }
      it = members_.erase(it);
    }
  }

  const std::vector<Candidate>& candidates_;
  const std::vector<Claims>& claims_;
  const std::vector<bool>&host_, splits_;
  std::vector<std::vector<uint32_t>> consumers_;       // a use each
  std::vector<std::vector<bool>> grouped_;             // by provider and node
  std::vector<uint32_t> unit_;                         // first node of the group taken, or itself
  std::map<uint32_t, std::vector<uint32_t>> members_;  // by unit
  Assignment out_;
};

}  // namespace

Assignment assign(const Graph& graph, const std::vector<NodeId>& order,
                  const std::vector<Candidate>& candidates, const std::vector<Claims>& claims,
                  const std::vector<bool>& host, const std::vector<bool>& splits) {
  return Assigner(graph, order, candidates, claims, host, splits).run();
}

}  // namespace pfrt
