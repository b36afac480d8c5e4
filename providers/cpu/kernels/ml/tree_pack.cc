// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "providers/cpu/kernels/ml/trees.h"

namespace pfrt::cpu {
namespace {

// Copies of shared branches may make the packed forest this much larger.
constexpr size_t kMostCopies = 4;
constexpr size_t kFreeCopies = 1024;

// A comparison whose first branch is the one that <=, == or membership leads to.
template <typename T>
struct Step {
  PackedKind kind = kOrdered;
  T threshold = std::numeric_limits<T>::quiet_NaN();
  bool missing_first = false;
  uint32_t first = 0, second = 0;
};

// x < v is x <= the number before v. If there is none, NaN takes its place, which no x is below.
template <typename T>
T below(T v) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  return v == -kInfinity ? std::numeric_limits<T>::quiet_NaN() : std::nextafter(v, -kInfinity);
}

// x > v and x >= v are the opposites of x <= v and x < v, except for NaN, for which neither holds.
template <typename T>
Step<T> ordered_step(const ForestNode& node) {
  const T v = static_cast<T>(node.value);
  const bool strict = node.mode == TreeMode::kLt || node.mode == TreeMode::kGte;
  const bool swapped = node.mode == TreeMode::kGt || node.mode == TreeMode::kGte;
  Step<T> step;
  step.threshold = strict ? below(v) : v;
  // No comparison with NaN holds, so the branches stay: the second is for "false".
  const bool swap = swapped && !std::isnan(v);
  step.first = swap ? node.no : node.yes;
  step.second = swap ? node.yes : node.no;
  step.missing_first = swap != node.missing_is_true;
  return step;
}

template <typename T>
class Packer {
 public:
  explicit Packer(const Forest& forest) : forest_(forest) {}

  Result<PackedForest<T>> pack() && {
    out_.features = 1;
    for (const std::vector<double>& set : forest_.sets) (void)add_set(set);
    for (uint32_t root : forest_.roots) PFRT_TRY(pack_tree(root));
    out_.vote_begin = forest_.vote_begin;
    for (const Vote& vote : forest_.votes) {
      out_.vote_target.push_back(vote.target);
      out_.vote_weight.push_back(static_cast<T>(vote.weight));
    }
    out_.set_begin.push_back(static_cast<uint32_t>(out_.set_values.size()));
    pack_dense();
    return std::move(out_);
  }

 private:
  struct Work {
    uint32_t source, slot;
  };

  void pack_dense() {
    constexpr auto kDense = static_cast<size_t>(PackedForest<T>::kDense);
    const auto targets = static_cast<size_t>(forest_.targets);
    if (targets == 0 || targets > kDense) return;
    std::vector<T> dense(out_.nodes.size() * kDense);
    for (size_t i = 0; i < out_.nodes.size(); ++i) {
      if (out_.nodes[i].kind != kLeafNode) continue;
      const uint32_t begin = out_.vote_begin[out_.leaf[i]], end = out_.vote_begin[out_.leaf[i] + 1];
      if (end - begin != targets) return;
      uint32_t seen = 0;
      for (uint32_t v = begin; v < end; ++v) {
        dense[i * kDense + out_.vote_target[v]] = out_.vote_weight[v];
        seen |= 1u << out_.vote_target[v];
      }
      if (seen != (1u << targets) - 1) return;
    }
    out_.dense = std::move(dense);
  }

  Status pack_tree(uint32_t root) {
    const uint32_t at = slots(1);
    out_.roots.push_back(at);
    work_.push_back({root, at});
    while (!work_.empty()) {
      if (out_.nodes.size() > kMostCopies * forest_.nodes.size() + kFreeCopies)
        return attribute_error("nodes_truenodeids",
                               "leads to the same nodes from so many others "
                               "that the trees would need more than ",
                               out_.nodes.size(), " nodes; only chains of BRANCH_EQ may share one");
      const Work work = work_.back();
      work_.pop_back();
      place(work);
    }
    return {};
  }

  void place(Work work) {
    const ForestNode& node = forest_.nodes[work.source];
    PackedNode<T>& to = out_.nodes[work.slot];
    if (node.mode == TreeMode::kLeaf) {
      to.threshold = std::numeric_limits<T>::quiet_NaN();
      to.child = work.slot - 1;
      to.kind = kLeafNode;
      out_.leaf[work.slot] = work.source;
      return;
    }
    const Step<T> step = step_of(node);
    to.threshold = step.threshold;
    to.feature = node.feature & 0xfffffffu;
    to.missing_first = step.missing_first;
    to.kind = step.kind & 7u;
    out_.features = std::max(out_.features, node.feature + 1);
    out_.only_ordered &= step.kind == kOrdered;
    out_.only_missing_second &= !step.missing_first;
    const uint32_t child = slots(2);
    out_.nodes[work.slot].child = child;
    work_.push_back({step.second, child + 1});
    work_.push_back({step.first, child});
  }

  Step<T> step_of(const ForestNode& node) {
    switch (node.mode) {
      case TreeMode::kEq:
        return equal_step(node);
      case TreeMode::kNeq: {
        Step<T> step;
        step.kind = kEqual;
        step.threshold = static_cast<T>(node.value);
        step.first = node.no;
        step.second = node.yes;
        return step;
      }
      case TreeMode::kMember:
        return member_step(node.set, node.missing_is_true, node.yes, node.no);
      default:
        return ordered_step<T>(node);
    }
  }

  // A chain of == with one result, as exporters write categories, becomes one set.
  Step<T> equal_step(const ForestNode& node) {
    std::vector<double> values{node.value};
    bool missing = node.missing_is_true;
    uint32_t no = node.no;
    for (const ForestNode* next = &forest_.nodes[no];
         next->mode == TreeMode::kEq && next->feature == node.feature && next->yes == node.yes;
         next = &forest_.nodes[no]) {
      values.push_back(next->value);
      missing |= next->missing_is_true;
      no = next->no;
    }
    if (values.size() > 1) {
      std::erase_if(values, [](double v) { return std::isnan(v); });
      std::sort(values.begin(), values.end());
      return member_step(add_set(values), missing, node.yes, no);
    }
    Step<T> step;
    step.kind = kEqual;
    step.threshold = static_cast<T>(node.value);
    step.missing_first = missing;
    step.first = node.yes;
    step.second = no;
    return step;
  }

  static Step<T> member_step(uint32_t set, bool missing, uint32_t yes, uint32_t no) {
    Step<T> step;
    step.kind = kMember;
    step.threshold = 0;
    std::memcpy(&step.threshold, &set, sizeof set);
    step.missing_first = missing;
    step.first = yes;
    step.second = no;
    return step;
  }

  uint32_t add_set(const std::vector<double>& values) {
    out_.set_begin.push_back(static_cast<uint32_t>(out_.set_values.size()));
    for (double v : values) out_.set_values.push_back(static_cast<T>(v));
    return static_cast<uint32_t>(out_.set_begin.size() - 1);
  }

  uint32_t slots(size_t count) {
    const auto first = static_cast<uint32_t>(out_.nodes.size());
    out_.nodes.resize(out_.nodes.size() + count);
    out_.leaf.resize(out_.nodes.size());
    return first;
  }

  const Forest& forest_;
  PackedForest<T> out_;
  std::vector<Work> work_;
};

}  // namespace

template <typename T>
Result<PackedForest<T>> pack_forest(const Forest& forest) {
  return Packer<T>(forest).pack();
}

template Result<PackedForest<float>> pack_forest(const Forest&);
template Result<PackedForest<double>> pack_forest(const Forest&);

}  // namespace pfrt::cpu
