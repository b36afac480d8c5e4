// SPDX-License-Identifier: Apache-2.0
#include "core/plan/assign.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "core/base/dtype.h"

namespace pfrt {
namespace {

class Assigner {
 public:
  Assigner(const Graph& graph, const std::vector<NodeId>& order,
           const std::vector<Candidate>& candidates, const std::vector<Claims>& claims,
           const std::vector<bool>& host, const std::vector<bool>& splits, AssignBy by)
      : graph_(graph),
        order_(order),
        candidates_(candidates),
        claims_(claims),
        host_(host),
        splits_(splits),
        by_(by) {
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
    if (by_ == AssignBy::kCost) join_islands();
    while (!schedule()) dissolve_stuck_groups();
    return std::move(out_);
  }

 private:
  const Claim& claim(int p, uint32_t i) const { return claims_[static_cast<size_t>(p)].nodes[i]; }
  bool simulated(int p) const { return candidates_[static_cast<size_t>(p)].provider->simulated(); }

  // Decides between two providers that would run the same nodes at these costs.
  bool better(int p, double p_ns, int other, double other_ns) const {
    constexpr double kNoise = 0.1;  // difference between two measurements on a busy machine
    if (other < 0) return true;
    if (by_ == AssignBy::kPriority || simulated(p) || simulated(other)) return p < other;
    if (std::abs(p_ns - other_ns) <= kNoise * std::max(std::abs(p_ns), std::abs(other_ns)))
      return p < other;
    return p_ns < other_ns;
  }

  // Assigns a single node; nodes that a provider runs only in a group are left to take_groups.
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
    plan.reason = candidates_.size() == 1      ? "the only provider"
                  : by_ == AssignBy::kPriority ? "the first of the list that accepts it"
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
    bool needed = false;  // whether the group has a node that no other provider runs
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

  // Whether no path leaves the group and comes back.
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

  // ---- transfers ----

  // A value that a node makes or that enters the graph, and the nodes that read it.
  struct Flow {
    int producer;  // node, or -1: from outside
    std::vector<uint32_t> readers;
    double bytes;
    bool leaves;  // an output of the graph
  };

  // Unknown dimensions count as one.
  static double bytes_of(const Type& type) {
    if (!type.is_tensor()) return 0;
    double bytes = static_cast<double>(dtype_bits(type.dtype)) / 8;
    for (const Dim& d : type.shape) bytes *= d.known() ? static_cast<double>(d.value()) : 1.0;
    return bytes;
  }

  void find_flows() {
    std::map<ValueId, size_t> flow_of;
    const auto flow = [&](ValueId v, int producer) -> Flow& {
      const auto [it, fresh] = flow_of.try_emplace(v, flows_.size());
      if (fresh) flows_.push_back({producer, {}, bytes_of(graph_.at(v).type), false});
      return flows_[it->second];
    };
    flows_at_.resize(order_.size());
    for (uint32_t i = 0; i < order_.size(); ++i) {
      const Node& node = *graph_.node(order_[i]);
      for (ValueId v : graph_.used_by(node))
        if (!graph_.constant(v)) flow(v, -1).readers.push_back(i);
      for (ValueId v : node.outputs)
        if (v != kNoId) flow(v, static_cast<int>(i));
    }
    for (ValueId v : graph_.outputs)
      if (const auto it = flow_of.find(v); it != flow_of.end()) flows_[it->second].leaves = true;
    for (size_t f = 0; f < flows_.size(); ++f) {
      if (flows_[f].producer >= 0) flows_at_[static_cast<size_t>(flows_[f].producer)].push_back(f);
      for (uint32_t i : flows_[f].readers)
        if (flows_at_[i].empty() || flows_at_[i].back() != f) flows_at_[i].push_back(f);
    }
  }

  // Cost of moving |bytes| from one owner's memory to another's.
  double crossing(int from, int to, double bytes) const {
    if (from == to) return 0;
    const auto side = [&](int p) {
      return p < 0 ? 0 : claims_[static_cast<size_t>(p)].transfer.of(bytes);
    };
    return side(from) + side(to);
  }

  // Cost of bringing |f| to its readers, once for each reader's memory. |owner| gives a node's
  // owner.
  template <typename Owner>
  double cost(const Flow& f, const Owner& owner) const {
    const int from = f.producer < 0 ? kHost : owner(static_cast<uint32_t>(f.producer));
    double sum = f.leaves ? crossing(from, kHost, f.bytes) : 0;
    std::set<int> paid{f.leaves ? kHost : from, from};
    for (uint32_t i : f.readers)
      if (paid.insert(owner(i)).second) sum += crossing(from, owner(i), f.bytes);
    return sum;
  }

  // Connected nodes of one owner, outside of groups.
  std::vector<std::vector<uint32_t>> islands() const {
    std::vector<std::vector<uint32_t>> out;
    std::vector<bool> seen(order_.size());
    for (uint32_t i = 0; i < order_.size(); ++i) {
      const int owner = out_.owner[i];
      if (seen[i] || owner < 0 || simulated(owner) || in_group(i)) continue;
      std::vector<uint32_t> island, todo{i};
      seen[i] = true;
      const auto reach = [&](uint32_t n) {
        if (seen[n] || out_.owner[n] != owner || in_group(n)) return;
        seen[n] = true;
        todo.push_back(n);
      };
      while (!todo.empty()) {
        island.push_back(todo.back());
        todo.pop_back();
        for (size_t f : flows_at_[island.back()]) {
          if (flows_[f].producer < 0) continue;
          reach(static_cast<uint32_t>(flows_[f].producer));
          for (uint32_t n : flows_[f].readers) reach(n);
        }
      }
      out.push_back(std::move(island));
    }
    return out;
  }

  // Cost saved when |island| goes to |p|; 0 when it cannot.
  double saving(const std::vector<uint32_t>& island, int p) const {
    std::set<size_t> touched;
    double saved = 0;
    for (uint32_t i : island) {
      if (!claim(p, i).accepted || grouped_[static_cast<size_t>(p)][i]) return 0;
      saved += claim(out_.owner[i], i).est_ns - claim(p, i).est_ns;
      touched.insert(flows_at_[i].begin(), flows_at_[i].end());
    }
    const std::set<uint32_t> members(island.begin(), island.end());
    const auto now = [&](uint32_t i) { return out_.owner[i]; };
    const auto then = [&](uint32_t i) { return members.count(i) ? p : out_.owner[i]; };
    for (size_t f : touched) saved += cost(flows_[f], now) - cost(flows_[f], then);
    return saved;
  }

  // Each move lowers the sum of all costs, so this ends.
  void join_islands() {
    if (std::ranges::all_of(claims_, [](const Claims& c) { return c.transfer.of(1) == 0; })) return;
    find_flows();
    for (bool moved = true; std::exchange(moved, false);) {
      for (const std::vector<uint32_t>& island : islands()) {
        int best = kNobody;
        double most = 1e-3;  // ns; rounding is no saving
        for (int p = 0; p < static_cast<int>(candidates_.size()); ++p) {
          if (p == out_.owner[island.front()] || !candidates_[static_cast<size_t>(p)].provider ||
              simulated(p))
            continue;
          if (const double saved = saving(island, p); saved > most) best = p, most = saved;
        }
        if (best < 0) continue;
        for (uint32_t i : island) {
          out_.owner[i] = best;
          out_.nodes[i].est_ns = claim(best, i).est_ns;
          out_.nodes[i].reason =
              "its values would cost more on their way than another provider saves";
        }
        moved = true;
        break;  // the islands have changed
      }
    }
  }

  using Heap = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>;

  static Heap* next_heap(std::map<int, Heap>& ready, int current) {
    if (current >= 0 && !ready[current].empty()) return &ready[current];
    Heap* first = nullptr;
    for (auto& [owner, heap] : ready)
      if (!heap.empty() && (!first || heap.top() < first->top())) first = &heap;
    return first;
  }

  // Lists the units in topological order, those of the current owner first. False when groups wait
  // for each other.
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

  const Graph& graph_;
  const std::vector<NodeId>& order_;
  const std::vector<Candidate>& candidates_;
  const std::vector<Claims>& claims_;
  const std::vector<bool>&host_, splits_;
  const AssignBy by_;
  std::vector<Flow> flows_;
  std::vector<std::vector<size_t>> flows_at_;          // by node, what it makes and reads
  std::vector<std::vector<uint32_t>> consumers_;       // a use each
  std::vector<std::vector<bool>> grouped_;             // by provider and node
  std::vector<uint32_t> unit_;                         // first node of the group taken, or itself
  std::map<uint32_t, std::vector<uint32_t>> members_;  // by unit
  Assignment out_;
};

}  // namespace

Assignment assign(const Graph& graph, const std::vector<NodeId>& order,
                  const std::vector<Candidate>& candidates, const std::vector<Claims>& claims,
                  const std::vector<bool>& host, const std::vector<bool>& splits, AssignBy by) {
  return Assigner(graph, order, candidates, claims, host, splits, by).run();
}

}  // namespace pfrt
