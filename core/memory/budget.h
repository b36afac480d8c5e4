// SPDX-License-Identifier: Apache-2.0
//
// How much memory buffers may take: those of an environment, of a model, of a run. A budget inside
// another counts in both. Asked before memory is taken; thread-safe.
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
  // |whose|, as "the run", has at most |limit| bytes at a time.
  Budget(std::string whose, uint64_t limit, BudgetPtr outer);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // OUT_OF_MEMORY says whose limit it is and what is in use; nothing is taken then.
  Status take(uint64_t bytes);
  void give(uint64_t bytes);
  // As take and give, of what an outer budget has counted already.
  Status hold(uint64_t bytes);
  void let_go(uint64_t bytes);

 private:
  const std::string whose_;
  const uint64_t limit_;
  const BudgetPtr outer_;
  std::atomic<uint64_t> used_{0};
};

// |limit| 0 = no limit of its own: |outer|.
BudgetPtr budget_of(const char* whose, uint64_t limit, const BudgetPtr& outer);

}  // namespace pfrt
