// SPDX-License-Identifier: Apache-2.0
#include "core/memory/budget.h"

#include <utility>

namespace pfrt {
Budget::Budget(std::string whose, uint64_t limit, BudgetPtr outer)
    : whose_(std::move(whose)), limit_(limit), outer_(std::move(outer)) {}

Status Budget::hold(uint64_t bytes) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes)
      return error(Code::kOUT_OF_MEMORY, "allocating ", bytes, " bytes: ", whose_,
                   " may have memory_limit=", limit_, " bytes, and has ", used,
                   " of them; give it a higher limit");
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return {};
}

void Budget::let_go(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

Status Budget::take(uint64_t bytes) {
  PFRT_TRY(hold(bytes));
  if (!outer_) return {};
  Status status = outer_->take(bytes);
  if (!status.ok()) let_go(bytes);
  return status;
}

void Budget::give(uint64_t bytes) {
  let_go(bytes);
  if (outer_) outer_->give(bytes);
}

BudgetPtr budget_of(const char* whose, uint64_t limit, const BudgetPtr& outer) {
  return limit == 0 ? outer : std::make_shared<Budget>(whose, limit, outer);
}

}  // namespace pfrt
