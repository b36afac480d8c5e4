// SPDX-License-Identifier: Apache-2.0
//
// Limits the memory of buffers: those of an environment, of a model, of a run. A budget inside
// another counts in both. It is asked before memory is taken; thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace pfrt {

class Budget;
using BudgetPtr = std::shared_ptr<Budget>;  // null = no limit

class Budget {
 public:
  // |whose|, such as "the run", may have |limit| bytes at a time.
  Budget(std::string whose, uint64_t limit, BudgetPtr outer);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // OUT_OF_MEMORY says whose limit it is and how much is in use; nothing is taken then.
  Status take(uint64_t bytes);
  void give(uint64_t bytes);
  // Like take and give, for memory that an outer budget has counted already.
  Status hold(uint64_t bytes);
  void let_go(uint64_t bytes);

 private:
  const std::string whose_;
  const uint64_t limit_;
  const BudgetPtr outer_;
  std::atomic<uint64_t> used_{0};
};

// Returns |outer| where |limit| is 0, which means no limit of its own.
BudgetPtr budget_of(const char* whose, uint64_t limit, const BudgetPtr& outer);

}  // namespace pfrt
