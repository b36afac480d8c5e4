// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/loop/loop_plan.h"

#include <algorithm>
#include <map>

#include "core/base/status.h"
#include "providers/cpu/loop/lower.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {
namespace {

constexpr size_t kMostOperations = 512;

class Planner {
 public:
  Planner(const std::function<bool(uint32_t)>& stored, std::string* why)
      : stored_(stored), why_(why) {}

  bool add(const SnapshotNode& node) {
    const ElementwiseRow* row = find_elementwise(node);
    if (row == nullptr)
      return refuse("generated loops do not know ", node.op(), " on ",
                    dtype_name(node.input_dtype(0)), " in this form");
    if (node.output_rank(0) < 0) return refuse("the rank of ", node.op(), "'s output is not known");
    const Dims dims = without_leading_ones(node.output_dims(0));
    if (lanes_.empty()) dims_ = dims;
    if (!std::ranges::equal(dims, dims_))
      return refuse("the output of ", node.op(), " has other dimensions than what it follows");
    if (plan_.expression.operations().size() + node.input_count() > kMostOperations)
      return refuse("more operations than one loop takes");
    std::vector<Lanes> operands;
    for (uint32_t i = 0; i < node.input_count(); ++i) {
      operands.push_back(node.has_input(i) ? operand(node, i) : Lanes{});
    }
    const Lanes result = row->lower(plan_.expression, node, operands);
    const uint32_t value = node.output_index(0);
    lanes_[{value, 0}] = result;
    if (!stored_(value)) return true;
    plan_.expression.store({result.low, result.high, node.output_dtype(0)});
    plan_.outputs.push_back(value);
    output_types_.push_back(node.output_dtype(0));
    return true;
  }

  std::optional<LoopPlan> take(int register_limit) {
    if (plan_.inputs.size() + plan_.outputs.size() > LoopPlan::kMostPointers ||
        copied_ > kMostCopied)
      refuse("more operands than one loop takes");
    else if (allocate_registers(plan_.expression, register_limit).count > register_limit)
      refuse("more terms at once than there are vector registers");
    else
      return finished();
    return {};
  }

 private:
  template <typename... Parts>
  bool refuse(const Parts&... parts) {
    if (why_ != nullptr) *why_ = message(parts...);
    return false;
  }

  // Whether one element serves a run. Where dimensions do not tell, an element is read for each.
  bool is_scalar(const BroadcastPattern& pattern) const {
    return !pattern.each &&
           (pattern.run < 0 || pattern.run >= kShortestRun || pattern.run == elements());
  }
  bool is_copied(const BroadcastPattern& pattern) const {
    return !is_scalar(pattern) && !pattern.whole && pattern.run >= 0 &&
           pattern.run < kShortestRun && pattern.run != elements();
  }
  int64_t elements() const { return element_count(dims_.data(), dims_.size()); }

  LoopPlan finished() {
    plan_.types.insert(plan_.types.end(), output_types_.begin(), output_types_.end());
    return std::move(plan_);
  }

  Lanes operand(const SnapshotNode& node, uint32_t input) {
    const uint32_t value = node.input_index(input), ones = ones_behind(node, input);
    const auto [known, is_new] = lanes_.try_emplace({value, ones});
    Lanes& out = known->second;
    if (!is_new) return out;
    const pfrt_dtype type = node.input_dtype(input);
    // Parameters of a quantization fit; of others, reference kernels check dimensions.
    const bool one = node.input_elements(input) == 1 || is_quantization(node);
    if (const void* const element = one ? same_everywhere(node, input) : nullptr)
      return out = constant_lanes(plan_.expression, element, type);
    const auto slot = static_cast<uint16_t>(plan_.inputs.size());
    const std::optional<BroadcastPattern> pattern =
        node.input_rank(input) < 0
            ? std::nullopt
            : broadcast_pattern(with_ones(node.input_dims(input), ones), dims_);
    const bool scalar = pattern && is_scalar(*pattern);
    copied_ += pattern && is_copied(*pattern);
    plan_.inputs.push_back(value);
    plan_.scalar.push_back(scalar);
    plan_.ones.push_back(ones);
    plan_.types.push_back(type);
    return out = scalar ? scalar_lanes(plan_.expression, slot, type)
                        : input_lanes(plan_.expression, slot, type);
  }

  const std::function<bool(uint32_t)>& stored_;
  std::string* why_;
  LoopPlan plan_;
  Dims dims_;
  size_t copied_ = 0;                                     // inputs
  std::map<std::pair<uint32_t, uint32_t>, Lanes> lanes_;  // by value and ones behind it
  std::vector<pfrt_dtype> output_types_;
};

}  // namespace

std::optional<LoopPlan> plan_loop(const pfrt_snapshot& snapshot, std::span<const uint32_t> nodes,
                                  const std::function<bool(uint32_t)>& stored, int register_limit,
                                  std::string* why) {
  Planner planner(stored, why);
  for (uint32_t n : nodes)
    if (!planner.add(SnapshotNode(snapshot, n))) return {};
  return planner.take(register_limit);
}

std::optional<LoopPlan> plan_epilogue(const pfrt_snapshot& snapshot, uint32_t head,
                                      std::span<const uint32_t> epilogue, int register_limit,
                                      std::string* why) {
  const auto refuse = [&](const auto&... parts) -> std::optional<LoopPlan> {
    if (why != nullptr) *why = message(parts...);
    return {};
  };
  const SnapshotNode first(snapshot, head);
  if (!first.has_output(0) || first.output_rank(0) < 0)
    return refuse("the rank of ", first.op(), "'s output is not known");
  if (!kEpilogueTypes.has(first.output_dtype(0)))
    return refuse("the output of ", first.op(), " is ", dtype_name(first.output_dtype(0)),
                  ", and epilogues follow ", kEpilogueTypes.text());
  const Dims dims = without_leading_ones(first.output_dims(0));
  uint32_t value = first.output_index(0);
  for (uint32_t n : epilogue) {
    const SnapshotNode node(snapshot, n);
    bool follows = false;
    for (uint32_t i = 0; i < node.input_count(); ++i)
      follows |= node.has_input(i) && node.input_index(i) == value;
    if (!follows) return refuse(node.op(), " does not take the output before it");
    if (!node.has_output(0) || !std::ranges::equal(without_leading_ones(node.output_dims(0)), dims))
      return refuse("the output of ", node.op(), " has other dimensions than that of ", first.op());
    value = node.output_index(0);
  }
  return plan_loop(
      snapshot, epilogue, [&](uint32_t v) { return v == value; }, register_limit, why);
}

}  // namespace pfrt::cpu
