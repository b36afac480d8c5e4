// SPDX-License-Identifier: Apache-2.0
//
// The plans of a segment, by the signature of what it reads: made for one signature each, or for a
// range of signatures that differ in one number. The plans used last are kept. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/base/made_once.h"
#include "core/exec/plan_range.h"

namespace pfrt {

class PlanTable {
 public:
  using Signature = std::vector<int64_t>;
  using Plan = std::shared_ptr<SegmentPlan>;

  // The plan of just this signature; null where there is none yet.
  Plan find(std::span<const int64_t> signature) {
    Plan plan = exact_.find(signature);
    if (plan) used(false);
    return plan;
  }
  // A range that holds the signature; null where there is none.
  std::shared_ptr<PlanRange> find_range(std::span<const int64_t> signature);
  // The plan of just this signature, which one thread makes while others wait; see MadeOnce::get.
  template <typename Stop, typename Make>
  Result<Plan> get(std::span<const int64_t> signature, Stop stop, Make make) {
    PFRT_ASSIGN(Plan plan, exact_.get(signature, stop, make));
    used(false);
    return plan;
  }
  // The plan used last, of a range too; null where there is none.
  Plan recent() const;
  // The plan of one signature that was used last.
  Plan recent_exact() const { return exact_.recent(); }

  // A growth for which a range is being made; no other one is made until this is gone.
  struct Growth {
    Variation variation;
    std::unique_lock<std::mutex> making;
  };
  // The growth from the signature that this was last called with. None where there is no such
  // growth, no range could be made for one before, or another is being made.
  std::optional<Growth> growth(std::span<const int64_t> signature,
                               const std::vector<SignaturePart>& parts);
  // |range| null: none is possible, and nobody need try again.
  void add(const Growth& growth, std::shared_ptr<PlanRange> range);

  // Drops all plans; those in use live on.
  void clear();
  // Number of plans of one signature that were dropped to make room.
  uint64_t dropped() const { return exact_.dropped(); }
  // Calls |fn| with each signature that has a plan of its own, and the plan.
  template <typename Fn>
  void each(Fn fn) const {
    exact_.each(fn);
  }

 private:
  void used(bool range) {
    if (range_used_.load(std::memory_order_relaxed) != range)
      range_used_.store(range, std::memory_order_relaxed);
  }

  MadeOnce<Signature, Plan> exact_{32};
  std::atomic<bool> range_used_{false};             // the plan used last is a range's
  std::mutex making_;                               // held while a range is made
  mutable std::mutex mutex_;                        // guards the members below
  std::vector<std::shared_ptr<PlanRange>> ranges_;  // latest first
  Signature last_;                                  // the signature of the last call of growth
  std::vector<std::vector<uint32_t>> rigid_;        // positions of growths without a range
};

}  // namespace pfrt
