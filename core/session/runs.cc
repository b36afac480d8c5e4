// SPDX-License-Identifier: Apache-2.0
#include "core/session/runs.h"

#include <utility>

namespace pfrt {

Runs::Runs(BudgetPtr budget, uint64_t most_waiting, std::function<void()> after_each)
    : budget_(std::move(budget)), waiting_(most_waiting), after_each_(std::move(after_each)) {}

std::shared_ptr<const Replacements> Runs::replacements() const {
  if (!replaced_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(replacements_mutex_);
  return replacements_;
}

void Runs::replace(const std::function<void(Replacements&)>& change) {
  auto next = std::make_shared<Replacements>();
  std::shared_ptr<const Replacements> before;  // outlives the locks
  std::lock_guard one_at_a_time(replacing_);
  if (const auto now = replacements()) *next = *now;
  change(*next);
  before = std::move(next);
  std::lock_guard lock(replacements_mutex_);
  replacements_.swap(before);
  replaced_.store(true, std::memory_order_release);
}

}  // namespace pfrt
