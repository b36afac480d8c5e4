// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/region/group.h"

#include <algorithm>
#include <cstring>
#include <queue>
#include <unordered_map>

#include "providers/cpu/region/lower.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {
namespace {

constexpr size_t kMostNodes = 64;
constexpr size_t kMostOperations = 512;

using Dims = std::span<const int64_t>;

// Row-major layout does not see leading ones.
Dims without_leading_ones(Dims dims) {
  while (!dims.empty() && dims.front() == 1) dims = dims.subspan(1);
  return dims;
}

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
    for (size_t at = 0; at < nodes.size(); ++at) {
      elementwise_.push_back(is_elementwise(at));
      if (elementwise_[at] && !plan({at})) elementwise_[at] = false;
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

  // Empty when the groups cannot be ordered.
  std::vector<Unit> units() const {
    std::vector<Unit> out;
    for (size_t g : ordered()) {
      Unit unit;
      for (size_t at : groups_[g]) unit.nodes.push_back(nodes_[at]);
      const bool moves_nothing =
          unit.nodes.size() == 1 && view(node(unit.nodes[0]).op) == "Identity";
      if (elementwise_[groups_[g].front()] && !moves_nothing) unit.loop = plan(groups_[g]);
      out.push_back(std::move(unit));
    }
    return out;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  using Group = std::vector<size_t>;  // positions in nodes_, ascending

  const pfrt_snapshot_node& node(uint32_t index) const { return snapshot_.node(index); }
  Dims shape(size_t at) const {
    return without_leading_ones(SnapshotNode(snapshot_.snapshot(), nodes_[at]).output_dims(0));
  }
  bool same_shape(size_t a, size_t b) const { return std::ranges::equal(shape(a), shape(b)); }

  bool is_elementwise(size_t at) const {
    if (limit_ == 0) return false;
    const SnapshotNode node(snapshot_.snapshot(), nodes_[at]);
    if (find_elementwise(node) == nullptr || node.output_rank(0) < 0) return false;
    bool any_whole = false;
    for (uint32_t i = 0; i < node.input_count(); ++i) {
      if (!node.has_input(i)) continue;
      if (node.input_rank(i) < 0) return false;
      const Dims dims = without_leading_ones(node.input_dims(i));
      const bool whole = std::ranges::equal(dims, shape(at));
      if (!whole && !dims.empty()) return false;
      any_whole |= whole;
    }
    return any_whole;
  }

  void merge(size_t upper, size_t lower) {
    if (upper == lower || groups_[upper].size() + groups_[lower].size() > kMostNodes) return;
    if (detour(upper, lower)) return;
    Group both;
    std::ranges::merge(groups_[upper], groups_[lower], std::back_inserter(both));
    if (!plan(both)) return;
    for (size_t at : both) group_of_[at] = upper;
    groups_[upper] = std::move(both);
    groups_[lower].clear();
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

  bool used_outside(uint32_t value, const Group& group) const {
    const std::vector<size_t>& uses = consumers_[value];
    return outside_[value] || uses.empty() || std::ranges::any_of(uses, [&](size_t at) {
             return !std::ranges::binary_search(group, at);
           });
  }

  // The loop of a group; nullopt when it is too large for one.
  std::optional<LoopPlan> plan(const Group& group) const {
    LoopPlan loop;
    const Dims dims = shape(group.front());
    std::unordered_map<uint32_t, Term> terms;
    for (size_t at : group) {
      const SnapshotNode n(snapshot_.snapshot(), nodes_[at]);
      if (loop.expression.operations().size() + n.input_count() > kMostOperations) return {};
      std::vector<Term> operands;
      for (uint32_t i = 0; i < n.input_count(); ++i)
        operands.push_back(n.has_input(i) ? operand(loop, terms, n.input_index(i), dims) : kNoTerm);
      const Term result = find_elementwise(n)->lower(loop.expression, n, operands);
      const uint32_t value = n.output_index(0);
      terms[value] = result;
      if (!used_outside(value, group)) continue;
      loop.expression.store(result);
      loop.outputs.push_back(value);
    }
    if (loop.inputs.size() + loop.outputs.size() > LoopPlan::kMostPointers) return {};
    if (allocate_registers(loop.expression, limit_).count > limit_) return {};
    return loop;
  }

  Term operand(LoopPlan& loop, std::unordered_map<uint32_t, Term>& terms, uint32_t index,
               Dims dims) const {
    if (const auto known = terms.find(index); known != terms.end()) return known->second;
    const pfrt_snapshot_value& value = snapshot_.value(index);
    const Dims own = without_leading_ones({value.dims, static_cast<size_t>(value.rank)});
    const bool constant = (value.flags & PFRT_SNAPSHOT_CONSTANT) != 0 && value.data != nullptr;
    Term term;
    if (own.empty() && constant) {
      float number;
      std::memcpy(&number, value.data, sizeof number);
      term = loop.expression.constant(number);
    } else {
      const bool scalar = own.empty() && !dims.empty();
      const auto slot = static_cast<uint16_t>(loop.inputs.size());
      loop.inputs.push_back(index);
      loop.scalar.push_back(scalar);
      term = scalar ? loop.expression.scalar(slot) : loop.expression.input(slot);
    }
    terms[index] = term;
    return term;
  }

  const SnapshotCopy& snapshot_;
  std::span<const uint32_t> nodes_;
  int limit_;
  std::vector<bool> outside_;                   // by value: used outside the region
  std::vector<size_t> producer_;                // by value
  std::vector<std::vector<size_t>> consumers_;  // by value
  std::vector<bool> elementwise_;               // by position
  std::vector<Group> groups_;                   // empty once merged into another
  std::vector<size_t> group_of_;
};

}  // namespace

std::vector<Unit> group(const SnapshotCopy& snapshot, std::span<const uint32_t> nodes,
                        std::span<const uint32_t> outputs, int register_limit) {
  Grouping grouping(snapshot, nodes, outputs, register_limit);
  grouping.merge_all();
  std::vector<Unit> units = grouping.units();
  if (units.empty() && !nodes.empty()) units = Grouping(snapshot, nodes, outputs, 0).units();
  return units;
}

}  // namespace pfrt::cpu
