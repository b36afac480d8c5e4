// SPDX-License-Identifier: Apache-2.0
#include "core/exec/block_pool.h"

#include <algorithm>

#include "core/base/os/cpu.h"
#include "core/memory/global_pool.h"

namespace pfrt {
namespace {

constexpr size_t kKeep = 4;  // for runs at the same time

// Memory beyond this is given back: taking it anew costs a run of such a size less than a
// hundredth.
uint64_t slack(uint64_t used) { return std::max(uint64_t{1} << 20, used / 32); }

}  // namespace

Result<std::shared_ptr<Buffer>> BlockPool::allocate(uint64_t bytes, uint32_t alignment,
                                                    const Stop& stop, uint64_t work) const {
  return device_ ? Buffer::on_device(device_, bytes, stop, work, alignment)
                 : Buffer::allocate_pages(bytes);
}

Result<std::unique_ptr<BlockPool::Block>> BlockPool::take(uint64_t bytes, uint32_t alignment,
                                                          const Stop& stop, uint64_t work) {
  std::unique_ptr<Block> outgrown;  // freed after the lock, before more is asked for
  {
    const std::lock_guard lock(mutex_);
    const auto fits = std::ranges::find_if(idle_, [&](const auto& idle) {
      return idle->buffer->bytes() >= bytes && (!device_ || idle->alignment >= alignment);
    });
    if (fits != idle_.end()) {
      const BudgetPtr& budget = MemoryScope::current().budget;
      Block& found = **fits;
      if (!device_ && budget && budget != found.buffer->budget()) {
        PFRT_TRY(budget->hold(found.buffer->bytes()));
        found.holder = budget;
      }
      auto block = std::move(*fits);
      idle_.erase(fits);
      if (!device_) global_pool::count_reuse(block->buffer->bytes());
      return block;
    }
    if (!idle_.empty()) {
      outgrown = std::move(idle_.back());
      idle_.pop_back();
      held_ -= outgrown->buffer->bytes();
    }
  }
  outgrown.reset();
  auto made = std::make_unique<Block>();
  made->alignment = alignment;
  PFRT_ASSIGN(made->buffer, allocate(bytes, alignment, stop, work));
  const std::lock_guard lock(mutex_);
  held_ += bytes;
  peak_ = std::max(peak_, held_);
  return made;
}

void BlockPool::give(std::unique_ptr<Block> block, uint64_t used, bool keep) {
  const uint64_t bytes = block->buffer->bytes();
  block->let_go();
  block->touched = std::max(block->touched, used);
  if (keep && !device_ && block->touched > used + slack(used)) {
    keep = block->buffer->drop_from(used);
    block->touched = used;
  }
  block->given_ns = os::recent_ns();
  const std::lock_guard lock(mutex_);
  if (!keep || idle_.size() == kKeep) {
    held_ -= bytes;
    return;
  }
  const auto at =
      std::ranges::find_if(idle_, [&](const auto& idle) { return idle->buffer->bytes() >= bytes; });
  idle_.insert(at, std::move(block));
}

BlockPool::Usage BlockPool::usage() const {
  const std::lock_guard lock(mutex_);
  Usage out;
  for (const auto& block : idle_) out.idle += block->buffer->bytes();
  out.in_use = held_ - out.idle;
  out.peak = peak_;
  return out;
}

void BlockPool::lost(const Block& block) {
  const std::lock_guard lock(mutex_);
  held_ -= block.buffer->bytes();
}

uint64_t BlockPool::trim(uint64_t given_ns) {
  std::vector<std::unique_ptr<Block>> freed;  // outside the lock
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  freed.reserve(idle_.size());
  for (auto& block : idle_) {
    if (block->given_ns >= given_ns) continue;
    bytes += block->buffer->bytes();
    freed.push_back(std::move(block));
  }
  std::erase(idle_, nullptr);
  held_ -= bytes;
  return bytes;
}

}  // namespace pfrt
