// SPDX-License-Identifier: Apache-2.0
#include "core/exec/block_pool.h"

#include <algorithm>

namespace pfrt {
namespace {

constexpr size_t kKeep = 4;  // for runs at the same time

// More than this is given back: taking memory anew costs a run of such a size less than a
// hundredth.
uint64_t slack(uint64_t used) { return std::max(uint64_t{1} << 20, used / 32); }

}  // namespace

Result<std::unique_ptr<BlockPool::Block>> BlockPool::take(uint64_t bytes) {
  std::unique_ptr<Block> outgrown;  // freed after the lock, before more is asked for
  {
    const std::lock_guard lock(mutex_);
    const auto fits = std::ranges::find_if(
        idle_, [&](const auto& idle) { return idle->buffer->bytes() >= bytes; });
    if (fits != idle_.end()) {
      const BudgetPtr& budget = MemoryScope::current().budget;
      Block& found = **fits;
      if (budget && budget != found.buffer->budget()) {
        PFRT_TRY(budget->hold(found.buffer->bytes()));
        found.holder = budget;
      }
      auto block = std::move(*fits);
      idle_.erase(fits);
      return block;
    }
    if (!idle_.empty()) {
      outgrown = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  outgrown.reset();
  auto made = std::make_unique<Block>();
  PFRT_ASSIGN(made->buffer, Buffer::allocate_pages(bytes));
  return made;
}

void BlockPool::give(std::unique_ptr<Block> block, uint64_t used) {
  const uint64_t bytes = block->buffer->bytes();
  block->let_go();
  block->touched = std::max(block->touched, used);
  if (block->touched > used + slack(used)) {
    if (!block->buffer->drop_from(used)) return;
    block->touched = used;
  }
  const std::lock_guard lock(mutex_);
  if (idle_.size() == kKeep) return;
  const auto at =
      std::ranges::find_if(idle_, [&](const auto& idle) { return idle->buffer->bytes() >= bytes; });
  idle_.insert(at, std::move(block));
}

}  // namespace pfrt
