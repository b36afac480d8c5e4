// SPDX-License-Identifier: Apache-2.0
#include "core/model/optimised_graphs.h"

#include <utility>

#include "core/base/lock.h"

namespace pfrt {

Result<std::shared_ptr<const OptimisedGraph>> OptimisedGraphs::get(
    const std::string& key, const Progress& progress,
    const std::function<Result<OptimisedGraph>()>& make) {
  std::shared_ptr<Slot> slot;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(slots_, [&](const auto& e) {
      if (e.first == key || e.second.use_count() != 1) return false;
      const std::lock_guard last(e.second->making);  // nobody has the slot, so this does not wait
      return e.second->value.expired();
    });
    std::shared_ptr<Slot>& place = slots_[key];
    if (!place) place = std::make_shared<Slot>();
    slot = place;
  }
  const auto lock = lock_unless(slot->making, [&] { return progress.stopped(); });
  if (!lock.owns_lock()) return progress.stop();
  if (auto there = slot->value.lock()) return there;
  PFRT_ASSIGN(OptimisedGraph made, make());
  auto kept = std::make_shared<const OptimisedGraph>(std::move(made));
  slot->value = kept;
  return kept;
}

}  // namespace pfrt
