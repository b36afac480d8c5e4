// SPDX-License-Identifier: Apache-2.0
#include "core/exec/plan_table.h"

#include <algorithm>

namespace pfrt {
namespace {

constexpr size_t kMostRanges = 4, kMostRigid = 8;

}  // namespace

std::shared_ptr<PlanRange> PlanTable::find_range(std::span<const int64_t> signature) {
  const std::lock_guard lock(mutex_);
  const auto at =
      std::ranges::find_if(ranges_, [&](const auto& range) { return range->holds(signature); });
  if (at == ranges_.end()) return nullptr;
  std::rotate(ranges_.begin(), at, at + 1);
  used(true);
  return ranges_.front();
}

PlanTable::Plan PlanTable::recent() const {
  {
    const std::lock_guard lock(mutex_);
    if (range_used_.load(std::memory_order_relaxed) && !ranges_.empty())
      return ranges_.front()->plan();
  }
  return exact_.recent();
}

std::optional<PlanTable::Growth> PlanTable::growth(std::span<const int64_t> signature,
                                                   const std::vector<SignaturePart>& parts) {
  std::unique_lock making(making_, std::try_to_lock);
  if (!making.owns_lock()) return {};
  const std::lock_guard lock(mutex_);
  std::optional<Variation> variation = Variation::between(last_, signature, parts);
  last_.assign(signature.begin(), signature.end());
  if (!variation || rigid_.size() == kMostRigid ||
      std::ranges::find(rigid_, variation->at) != rigid_.end())
    return {};
  return Growth{std::move(*variation), std::move(making)};
}

void PlanTable::add(const Growth& growth, std::shared_ptr<PlanRange> range) {
  std::shared_ptr<PlanRange> dropped;  // outlives the lock
  const std::lock_guard lock(mutex_);
  if (!range) {
    rigid_.push_back(growth.variation.at);
    return;
  }
  ranges_.insert(ranges_.begin(), std::move(range));
  if (ranges_.size() <= kMostRanges) return;
  dropped = std::move(ranges_.back());
  ranges_.pop_back();
}

void PlanTable::clear() {
  exact_.clear();
  std::vector<std::shared_ptr<PlanRange>> ranges;  // outlives the lock
  const std::lock_guard lock(mutex_);
  ranges.swap(ranges_);
}

}  // namespace pfrt
