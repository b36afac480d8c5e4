// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/compile/fusion_groups.h"

#include <algorithm>
#include <map>
#include <queue>

#include "core/base/dtype.h"
#include "providers/cpu/epilogue/row_norm.h"
#include "providers/cpu/kernel/row.h"
#include "providers/cpu/registry/registry.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {
namespace {

constexpr size_t kMostNodes = kMostEpilogue + 1;
// A function of bytes of so many operations takes longer than looking it up (epilogue/byte_table.h)
// and keeping the bytes in memory before.
constexpr ptrdiff_t kLeastForTable = 16;

class Grouping {
 public:
  Grouping(const SnapshotCopy& snapshot, std::span<const uint32_t> nodes,
           std::span<const uint32_t> outputs, int register_limit)
      : snapshot_(snapshot),
        nodes_(nodes),
        limit_(register_limit),
        outside_(snapshot.snapshot().value_count),
        producer_(outside_.size(), kNone),
        consumers_(outside_.size()) {
    for (uint32_t v : outputs) outside_[v] = true;
    for (size_t at = 0; at < nodes.size(); ++at) {
      const SnapshotNode node(snapshot.snapshot(), nodes[at]);
      for (uint32_t i = 0; i < node.input_count(); ++i)
        if (node.has_input(i)) consumers_[node.input_index(i)].push_back(at);
      for (uint32_t i = 0; i < node.output_count(); ++i)
        if (node.has_output(i)) producer_[node.output_index(i)] = at;
      groups_.push_back({at});
      group_of_.push_back(at);
    }
    for (size_t at = 0; at < nodes.size(); ++at)
      elementwise_.push_back(limit_ > 0 && plan({at}).has_value());
  }

  // Puts epilogues to their heads, as far as one loop can compute them.
  void join_epilogues() {
    if (limit_ == 0) return;
    std::map<uint32_t, size_t> position;    // by node
    std::map<size_t, Positions> epilogues;  // by head
    for (size_t at = 0; at < nodes_.size(); ++at) {
      position[nodes_[at]] = at;
      const uint32_t tail_of = node(nodes_[at]).tail_of;
      const auto head = tail_of == 0 ? position.end() : position.find(tail_of - 1);
      if (head != position.end()) epilogues[head->second].push_back(at);
    }
    for (auto& [head, epilogue] : epilogues) {
      if (group_of_[head] != head || elementwise_[head] || !may_have_epilogue(head)) continue;
      // An operand of an earlier head's epilogue may have gone there.
      epilogue.erase(std::ranges::find_if(epilogue, [&](size_t at) { return group_of_[at] != at; }),
                     epilogue.end());
      while (!epilogue.empty() && !follows(head, epilogue)) epilogue.pop_back();
      while (!epilogue.empty() && widens_bytes_of_loop(epilogue.back())) epilogue.pop_back();
      if (epilogue.empty()) continue;
      take_in_operands(head, epilogue);
      join(head, epilogue);
    }
  }

  void merge_all() {
    for (size_t at = 0; at < nodes_.size(); ++at) {
      if (!elementwise_[at]) continue;
      const SnapshotNode node(snapshot_.snapshot(), nodes_[at]);
      for (uint32_t i = 0; i < node.input_count(); ++i) {
        const size_t from = node.has_input(i) ? producer_[node.input_index(i)] : kNone;
        if (from == kNone || !elementwise_[from] || !same_shape(from, at)) continue;
        merge(group_of_[from], group_of_[at]);
      }
    }
  }

  // Divides a loop that reads more than bytes where it goes on with bytes alone. The rest becomes a
  // loop of its own, which looks up its results in a table.
  void divide_at_bytes() {
    for (size_t g = 0, all = groups_.size(); g < all; ++g) {
      if (groups_[g].size() < 2 || !elementwise_[groups_[g].front()]) continue;
      if (const auto whole = plan(groups_[g]); !whole || makes_bytes_of_bytes(*whole)) continue;
      for (const size_t at : groups_[g])
        if (divide_after(g, at)) break;
    }
  }

  // Empty when the groups cannot be ordered.
  std::vector<FusionGroup> fusion_groups() const {
    std::vector<FusionGroup> out;
    for (size_t g : ordered()) {
      FusionGroup group;
      for (size_t at : groups_[g]) group.nodes.push_back(nodes_[at]);
      const bool moves_nothing =
          group.nodes.size() == 1 && view(node(group.nodes[0]).op) == "Identity";
      group.has_head = !elementwise_[groups_[g].front()] && group.nodes.size() > 1;
      group.has_pool = group.has_head && pools(groups_[g][1]);
      group.has_norm = group.has_head && normalises(groups_[g].back());
      if (group.has_head && group.nodes.size() > group.before_loop() + group.has_norm)
        group.loop = plan({groups_[g].begin() + static_cast<ptrdiff_t>(group.before_loop()),
                           groups_[g].end() - group.has_norm});
      else if (elementwise_[groups_[g].front()] && !moves_nothing)
        group.loop = plan(groups_[g]);
      out.push_back(std::move(group));
    }
    return out;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  using Positions = std::vector<size_t>;  // positions in nodes_, ascending

  const pfrt_snapshot_node& node(uint32_t index) const { return snapshot_.node(index); }
  Dims shape(size_t at) const {
    return without_leading_ones(SnapshotNode(snapshot_.snapshot(), nodes_[at]).output_dims(0));
  }
  bool same_shape(size_t a, size_t b) const { return std::ranges::equal(shape(a), shape(b)); }

  std::vector<uint32_t> indices(const Positions& positions) const {
    std::vector<uint32_t> out;
    out.reserve(positions.size());
    for (size_t at : positions) out.push_back(nodes_[at]);
    return out;
  }

  // Whether the node has one output alone, and its kernel takes epilogues.
  bool may_have_epilogue(size_t head) const {
    const SnapshotNode n(snapshot_.snapshot(), nodes_[head]);
    for (uint32_t i = 1; i < n.output_count(); ++i)
      if (n.has_output(i)) return false;
    KernelRequest request(n);
    request.epilogue = true;
    return find_kernel(request, nullptr) != nullptr;
  }

  // A loop that reads the result had better read the bytes.
  bool widens_bytes_of_loop(size_t at) const {
    const SnapshotNode n(snapshot_.snapshot(), nodes_[at]);
    return n.op() == "DequantizeLinear" && dtype_size(n.input_dtype(0)) == 1 &&
           std::ranges::any_of(consumers_[n.output_index(0)],
                               [&](size_t reader) { return elementwise_[reader]; });
  }
  bool normalises(size_t at) const {
    return is_row_norm(SnapshotNode(snapshot_.snapshot(), nodes_[at]));
  }
  bool pools(size_t at) const { return view(node(nodes_[at]).op) == "MaxPool"; }

  // Whether all of |epilogue| makes one loop on the output of |head|, or of its pooling, and
  // perhaps a normalisation of that, and nothing else uses what is between.
  bool follows(size_t head, Positions epilogue) const {
    const pfrt_snapshot& all = snapshot_.snapshot();
    if (epilogue.size() > kMostEpilogue) return false;
    if (normalises(epilogue.back())) {
      const SnapshotNode norm(all, nodes_[epilogue.back()]);
      epilogue.pop_back();
      const size_t before = epilogue.empty() ? head : epilogue.back();
      if (!refuse_row_norm(norm).empty() || norm.input_index(0) != node(nodes_[before]).outputs[0])
        return false;
      if (epilogue.empty()) return true;
    }
    if (used_outside(node(nodes_[head]).outputs[0], epilogue)) return false;
    if (pools(epilogue.front())) {
      const SnapshotNode pool(all, nodes_[epilogue.front()]);
      KernelRequest request(SnapshotNode(all, nodes_[head]));
      request.pool = &pool;
      request.epilogue = true;
      if (find_kernel(request, nullptr) == nullptr) return false;
      head = epilogue.front();
      epilogue.erase(epilogue.begin());
      if (epilogue.empty()) return true;
      if (used_outside(node(nodes_[head]).outputs[0], epilogue)) return false;
    }
    const std::optional<LoopPlan> loop = plan(epilogue);
    return loop && loop->outputs.size() == 1 &&
           plan_epilogue(all, nodes_[head], indices(epilogue), limit_);
  }

  // Adds nodes that widen operands for |epilogue| alone, such as the DequantizeLinear of what is
  // added: the loop then reads what they read.
  void take_in_operands(size_t head, Positions& epilogue) const {
    const auto first = epilogue.begin() + pools(epilogue.front());
    const auto last = epilogue.end() - normalises(epilogue.back());
    Positions loop(first, last);
    while (const auto operand = widened_operand(head, loop)) {
      loop.push_back(*operand);
      std::ranges::sort(loop);
    }
    Positions all(epilogue.begin(), first);
    all.insert(all.end(), loop.begin(), loop.end());
    all.insert(all.end(), last, epilogue.end());
    epilogue = std::move(all);
  }

  // A node that only widens an operand of |loop| and may be added to it; nullopt: there is none.
  std::optional<size_t> widened_operand(size_t head, const Positions& loop) const {
    if (loop.size() + 2 >= kMostEpilogue) return std::nullopt;
    for (const size_t at : loop) {
      const pfrt_snapshot_node& n = node(nodes_[at]);
      for (uint32_t i = 0; i < n.input_count; ++i) {
        const size_t from = n.inputs[i] == PFRT_NO_INDEX ? kNone : producer_[n.inputs[i]];
        if (from == kNone || !elementwise_[from] || groups_[from].size() != 1) continue;
        const std::string_view op = view(node(nodes_[from]).op);
        if ((op != "DequantizeLinear" && op != "Cast") || std::ranges::binary_search(loop, from) ||
            depends(from, head))
          continue;
        Positions more = loop;
        more.push_back(from);
        std::ranges::sort(more);
        const std::optional<LoopPlan> planned = plan(more);
        if (planned && planned->outputs.size() == 1) return from;
      }
    }
    return std::nullopt;
  }

  // Whether node |at| reads, by way of others, what |from| makes.
  bool depends(size_t at, size_t from) const {
    std::vector<bool> seen(nodes_.size());
    std::vector<size_t> pending{at};
    while (!pending.empty()) {
      const pfrt_snapshot_node& n = node(nodes_[pending.back()]);
      pending.pop_back();
      for (uint32_t i = 0; i < n.input_count; ++i) {
        const size_t made = n.inputs[i] == PFRT_NO_INDEX ? kNone : producer_[n.inputs[i]];
        if (made == from) return true;
        if (made == kNone || made < from || seen[made]) continue;
        seen[made] = true;
        pending.push_back(made);
      }
    }
    return false;
  }

  void join(size_t head, const Positions& epilogue) {
    for (size_t at : epilogue) {
      groups_[head].push_back(at);
      groups_[at].clear();
      group_of_[at] = head;
      elementwise_[at] = false;
    }
  }

  void merge(size_t upper, size_t lower) {
    if (upper == lower || groups_[upper].size() + groups_[lower].size() > kMostNodes) return;
    if (detour(upper, lower)) return;
    Positions both;
    std::ranges::merge(groups_[upper], groups_[lower], std::back_inserter(both));
    if (!plan(both)) return;
    for (size_t at : both) group_of_[at] = upper;
    groups_[upper] = std::move(both);
    groups_[lower].clear();
  }

  static bool makes_bytes_of_bytes(const LoopPlan& loop) {
    return loop.inputs.size() == 1 && loop.outputs.size() == 1 &&
           std::ranges::all_of(loop.types, [](pfrt_dtype type) { return dtype_size(type) == 1; });
  }

  // Whether group |g| could be divided: what reads node |at| of it, by way of others, goes.
  bool divide_after(size_t g, size_t at) {
    const SnapshotNode last(snapshot_.snapshot(), nodes_[at]);
    if (dtype_size(last.output_dtype(0)) != 1 || used_outside(last.output_index(0), groups_[g]))
      return false;
    Positions before, after;
    for (const size_t other : groups_[g])
      (other > at && depends(other, at) ? after : before).push_back(other);
    const std::optional<LoopPlan> lower = plan(after);
    if (!lower || !makes_bytes_of_bytes(*lower) || !plan(before)) return false;
    const ptrdiff_t operations =
        std::ranges::count_if(lower->expression.operations(),
                              [](const Operation& op) { return operand_count(op.prim) > 0; });
    if (operations < kLeastForTable) return false;
    for (const size_t moved : after) group_of_[moved] = groups_.size();
    groups_[g] = std::move(before);
    groups_.push_back(std::move(after));
    return true;
  }

  // Whether |lower| depends on |upper| through a third group: one loop could then not run them
  // both.
  bool detour(size_t upper, size_t lower) const {
    const size_t first = groups_[upper].front();
    std::vector<bool> seen(groups_.size());
    std::vector<size_t> pending{lower};
    while (!pending.empty()) {
      const size_t g = pending.back();
      pending.pop_back();
      for (size_t from : dependencies(g)) {
        if (from == upper) {
          if (g != lower) return true;
          continue;
        }
        if (seen[from] || groups_[from].back() < first) continue;
        seen[from] = true;
        pending.push_back(from);
      }
    }
    return false;
  }

  // Groups whose values |g| reads.
  std::vector<size_t> dependencies(size_t g) const {
    std::vector<size_t> out;
    for (size_t at : groups_[g]) {
      const pfrt_snapshot_node& n = node(nodes_[at]);
      for (uint32_t i = 0; i < n.input_count; ++i) {
        const size_t from = n.inputs[i] == PFRT_NO_INDEX ? kNone : producer_[n.inputs[i]];
        if (from != kNone && group_of_[from] != g) out.push_back(group_of_[from]);
      }
    }
    return out;
  }

  std::vector<size_t> ordered() const {
    std::vector<size_t> waits(groups_.size()), out;
    std::vector<std::vector<size_t>> feeds(groups_.size());
    using Ready = std::pair<size_t, size_t>;  // first position, group
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    size_t count = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].empty()) continue;
      ++count;
      for (size_t from : dependencies(g)) {
        feeds[from].push_back(g);
        ++waits[g];
      }
      if (waits[g] == 0) ready.push({groups_[g].front(), g});
    }
    while (!ready.empty()) {
      const size_t g = ready.top().second;
      ready.pop();
      out.push_back(g);
      for (size_t next : feeds[g])
        if (--waits[next] == 0) ready.push({groups_[next].front(), next});
    }
    if (out.size() != count) out.clear();
    return out;
  }

  bool used_outside(uint32_t value, const Positions& positions) const {
    const std::vector<size_t>& uses = consumers_[value];
    return outside_[value] || uses.empty() || std::ranges::any_of(uses, [&](size_t at) {
             return !std::ranges::binary_search(positions, at);
           });
  }

  std::optional<LoopPlan> plan(const Positions& positions) const {
    return plan_loop(
        snapshot_.snapshot(), indices(positions),
        [&](uint32_t value) { return used_outside(value, positions); }, limit_);
  }

  const SnapshotCopy& snapshot_;
  std::span<const uint32_t> nodes_;
  int limit_;
  std::vector<bool> outside_;                   // by value: used outside the region
  std::vector<size_t> producer_;                // by value
  std::vector<std::vector<size_t>> consumers_;  // by value
  std::vector<bool> elementwise_;               // by position
  std::vector<Positions> groups_;               // empty once merged into another
  std::vector<size_t> group_of_;
};

}  // namespace

std::vector<FusionGroup> find_fusion_groups(const SnapshotCopy& snapshot,
                                            std::span<const uint32_t> nodes,
                                            std::span<const uint32_t> outputs, int register_limit,
                                            bool joins) {
  Grouping grouping(snapshot, nodes, outputs, register_limit);
  if (joins) {
    grouping.join_epilogues();
    grouping.merge_all();
    grouping.divide_at_bytes();
  }
  std::vector<FusionGroup> groups = grouping.fusion_groups();
  if (groups.empty() && !nodes.empty())
    groups = Grouping(snapshot, nodes, outputs, 0).fusion_groups();
  return groups;
}

}  // namespace pfrt::cpu
