// SPDX-License-Identifier: Apache-2.0
#include "core/memory/pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include "core/base/os/fork.h"
#include "core/base/os/pages.h"

namespace pfrt {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 46;  // more than any machine has
constexpr uint64_t kMostAlignment = uint64_t{2} << 20;
constexpr uint64_t kLeastRegion = uint64_t{64} << 10;
constexpr uint64_t kMostGrowth = uint64_t{4} << 20;
constexpr uint64_t kMapped = uint64_t{128} << 10;  // larger blocks have pages of their own

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

class MemoryPool::Lock {
 public:
  explicit Lock(const MemoryPool& pool) {
    if (!pool.config_.thread_safe) return;
    no_fork_.emplace();
    lock_ = std::unique_lock(pool.mutex_);
  }

 private:
  std::optional<os::ForkScope> no_fork_;
  std::unique_lock<std::mutex> lock_;
};

MemoryPool::MemoryPool(PoolConfig config, AllocatorPtr base)
    : config_(std::move(config)), base_(std::move(base)) {}

Result<std::shared_ptr<MemoryPool>> MemoryPool::create(PoolConfig config, AllocatorPtr base) {
  const uint64_t alignment = config.alignment;
  if (!std::has_single_bit(alignment) || alignment > kMostAlignment)
    return error(Code::kINVALID_ARGUMENT, "making a memory pool: alignment ", alignment,
                 " is no power of two up to ", kMostAlignment, "; 64 is that of a cache line");
  config.alignment = std::max<uint64_t>(alignment, sizeof(void*));
  auto& classes = config.size_classes;
  if (classes.empty())
    for (uint64_t bytes = 64; bytes <= kMostGrowth; bytes *= 2) classes.push_back(bytes);
  for (uint64_t& bytes : classes) {
    if (bytes == 0 || bytes > kMost)
      return error(Code::kINVALID_ARGUMENT, "making a memory pool: a size class of ", bytes,
                   " bytes; give 1 to ", kMost);
    bytes = round_up(bytes, config.alignment);
  }
  std::ranges::sort(classes);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  const uint64_t first = config.initial_pool_size;
  if (config.memory_limit && first > config.memory_limit)
    return error(Code::kINVALID_ARGUMENT, "making a memory pool: initial_pool_size ", first,
                 " is above memory_limit ", config.memory_limit);
  std::shared_ptr<MemoryPool> pool(new MemoryPool(std::move(config), std::move(base)));
  pool->waiting_.resize(pool->config_.size_classes.size());
  pool->waiting_count_.resize(pool->waiting_.size());
  if (first) PFRT_TRY(pool->reserve(first));
  return pool;
}

MemoryPool::~MemoryPool() {
  reset();
  drop_empty(true);
}

uint32_t MemoryPool::class_of(uint64_t bytes) const {
  const auto& classes = config_.size_classes;
  const auto at = std::ranges::lower_bound(classes, bytes);
  return at == classes.end() ? kNoClass : static_cast<uint32_t>(at - classes.begin());
}

void MemoryPool::link(Block*& first, Block& block, Links Block::*links) {
  block.*links = {nullptr, first};
  if (first) (first->*links).before = &block;
  first = &block;
}

void MemoryPool::unlink(Block*& first, Block& block, Links Block::*links) {
  const auto [before, next] = block.*links;
  (before ? (before->*links).next : first) = next;
  if (next) (next->*links).before = before;
}

MemoryPool::Block& MemoryPool::add(char* start, uint64_t bytes) {
  BySize size;
  size.insert({bytes, start, nullptr});
  Block& block = blocks_[start];
  block.start = start;
  block.bytes = bytes;
  block.size = size.extract(size.begin());
  return block;
}

void MemoryPool::link(Block& block, State state) {
  block.state = state;
  if (state == State::kWaiting) {
    link(waiting_[block.list], block, &Block::waiting);
    ++waiting_count_[block.list];
  } else {
    block.size.value() = {block.bytes, block.start, &block};
    block.by_size = free_.insert(std::move(block.size)).position;
  }
}

void MemoryPool::unlink(Block& block) {
  if (block.state == State::kWaiting) {
    unlink(waiting_[block.list], block, &Block::waiting);
    --waiting_count_[block.list];
  } else {
    block.size = free_.extract(block.by_size);
  }
  block.state = State::kUsed;
}

MemoryPool::Block* MemoryPool::best_fit(uint64_t bytes) {
  const auto at = free_.lower_bound({bytes, nullptr, nullptr});
  return at == free_.end() ? nullptr : at->block;
}

// |just|: makes a region of no more than |bytes|.
MemoryPool::Block* MemoryPool::grow(uint64_t bytes, bool just) {
  if (bytes > config_.size_classes.back()) just = true;
  uint64_t size = just ? bytes : std::max(bytes, std::clamp(held_, kLeastRegion, kMostGrowth));
  if (config_.memory_limit) {
    const uint64_t left = config_.memory_limit - std::min(held_, config_.memory_limit);
    if (bytes > left) return nullptr;
    size = std::min(size, left / config_.alignment * config_.alignment);
  }
  const uint64_t alignment = std::max<uint64_t>(config_.alignment, 64);
  size = round_up(std::max(size, bytes), alignment);
  void* const made = base_             ? base_->allocate(size, alignment)
                     : size >= kMapped ? os::map_memory(size)
                                       : std::aligned_alloc(alignment, size);
  if (!made) return nullptr;
  held_ += size;
  auto* const start = static_cast<char*>(made);
  try {
    Block& block = add(start, size);
    block.region = size;
    link(regions_, block, &Block::regions);
    link(block, State::kFree);
    return &block;
  } catch (const std::bad_alloc&) {
    drop(start, size);
    return nullptr;
  }
}

// Gives a region back.
void MemoryPool::drop(char* start, uint64_t region) {
  held_ -= region;
  if (base_) {
    base_->free(start, region);
  } else if (region >= kMapped) {
    os::unmap_memory(start, region);
  } else {
    std::free(start);
  }
}

MemoryPool::Block* MemoryPool::find(uint64_t bytes, bool& fresh) {
  if (Block* const found = best_fit(bytes)) return found;
  // Dropping these keeps growing blocks from leaving all smaller ones behind.
  if (bytes > config_.size_classes.back()) drop_empty(false);
  fresh = config_.auto_grow;
  if (Block* const made = config_.auto_grow ? grow(bytes, false) : nullptr) return made;
  join_waiting();
  if (Block* const found = best_fit(bytes)) {
    fresh = false;
    return found;
  }
  if (!config_.auto_grow) return nullptr;
  drop_empty(false);
  return grow(bytes, true);
}

void MemoryPool::split(Block& block, uint64_t bytes) {
  if (block.bytes - bytes < config_.alignment) return;
  try {
    Block& rest = add(block.start + bytes, block.bytes - bytes);
    block.bytes = bytes;
    link(rest, State::kFree);
  } catch (const std::bad_alloc&) {
    // The block is left undivided.
  }
}

// Makes the block free, joined with the free blocks beside it.
void MemoryPool::join(Block& block) {
  auto at = blocks_.find(block.start);
  if (const auto next = std::next(at);
      next != blocks_.end() && next->second.state == State::kFree && !next->second.region) {
    unlink(next->second);
    at->second.bytes += next->second.bytes;
    blocks_.erase(next);
  }
  if (!at->second.region) {
    const auto before = std::prev(at);
    if (before->second.state == State::kFree) {
      unlink(before->second);
      before->second.bytes += at->second.bytes;
      blocks_.erase(at);
      at = before;
    }
  }
  link(at->second, State::kFree);
}

void MemoryPool::join_waiting() {
  for (size_t i = 0; i < waiting_.size(); ++i)
    while (Block* const block = waiting_[i]) {
      unlink(*block);
      join(*block);
    }
}

// |first_too|: drops the initial region of a pool that cannot grow, too.
uint64_t MemoryPool::drop_empty(bool first_too) {
  if (!config_.auto_grow && !first_too) return 0;
  const uint64_t before = held_;
  for (Block* next = regions_; next;) {
    Block& block = *std::exchange(next, next->regions.next);
    if (block.state != State::kFree || block.region != block.bytes) continue;
    unlink(block);
    unlink(regions_, block, &Block::regions);
    drop(block.start, block.region);
    blocks_.erase(block.start);
  }
  return before - held_;
}

Status MemoryPool::refused(uint64_t bytes) const {
  if (!config_.auto_grow)
    return error(Code::kOUT_OF_MEMORY, "allocating ", bytes, " bytes: the memory pool has ", held_,
                 " bytes, no free block of that size, and auto_grow is off");
  if (config_.memory_limit)
    return error(Code::kOUT_OF_MEMORY, "allocating ", bytes,
                 " bytes: the memory pool may have memory_limit=", config_.memory_limit,
                 " bytes, and has ", held_, " of them; give it a higher limit");
  return error(Code::kOUT_OF_MEMORY, "allocating ", bytes, " bytes: no memory left",
               base_ ? " in the pool's allocator" : "");
}

Result<void*> MemoryPool::take(uint64_t bytes, uint64_t alignment) {
  if (alignment == 0) alignment = config_.alignment;
  if (!std::has_single_bit(alignment) || alignment > kMostAlignment)
    return error(Code::kINVALID_ARGUMENT, "allocating ", bytes, " bytes: alignment ", alignment,
                 " is no power of two up to ", kMostAlignment);
  const Lock lock(*this);
  if (bytes > kMost) return refused(bytes);
  uint64_t room = round_up(std::max<uint64_t>(bytes, 1), config_.alignment);
  if (alignment > config_.alignment) room += alignment;
  const uint32_t list = class_of(room);
  Block* block = list == kNoClass ? nullptr : waiting_[list];
  bool fresh = false;
  if (!block) {
    if (list != kNoClass) room = config_.size_classes[list];
    block = find(room, fresh);
    if (!block) return refused(bytes);
    unlink(*block);
    split(*block, room);
  } else {
    unlink(*block);
  }
  block->list = list != kNoClass && block->bytes == config_.size_classes[list] ? list : kNoClass;
  block->asked = bytes;
  const auto at = reinterpret_cast<uintptr_t>(block->start);
  block->offset = round_up(at, alignment) - at;
  if (config_.track_stats) {
    stats_.total_allocated += bytes;
    ++stats_.num_allocations;
    ++(fresh ? stats_.pool_misses : stats_.pool_hits);
    stats_.current_usage += bytes;
    stats_.peak_usage = std::max(stats_.peak_usage, stats_.current_usage);
  }
  return static_cast<void*>(block->start + block->offset);
}

MemoryPool::Blocks::iterator MemoryPool::at_or_before(void* data) {
  const auto after = blocks_.upper_bound(static_cast<char*>(data));
  return after == blocks_.begin() ? blocks_.end() : std::prev(after);
}

Result<MemoryPool::Block*> MemoryPool::owned(void* data, const char* doing) {
  const auto at = at_or_before(data);
  const auto* const address = static_cast<char*>(data);
  if (at == blocks_.end() || address >= at->first + at->second.bytes)
    return error(Code::kNOT_FOUND, doing, ": the address is none of this memory pool");
  Block& block = at->second;
  if (block.state != State::kUsed)
    return error(Code::kINVALID_ARGUMENT, doing, ": the block is free already");
  if (address != block.start + block.offset)
    return error(Code::kINVALID_ARGUMENT, doing, ": the address is inside a block of ", block.asked,
                 " bytes and not its first");
  return &block;
}

Status MemoryPool::give(void* data) {
  if (!data) return {};
  const Lock lock(*this);
  PFRT_ASSIGN(Block * block, owned(data, "giving memory back"));
  if (config_.track_stats) {
    stats_.total_freed += block->asked;
    ++stats_.num_frees;
    stats_.current_usage -= std::min(stats_.current_usage, block->asked);
  }
  if (block->list != kNoClass && waiting_count_[block->list] < config_.max_blocks_per_class) {
    link(*block, State::kWaiting);
  } else {
    join(*block);
  }
  return {};
}

Result<void*> MemoryPool::resize(void* data, uint64_t bytes) {
  if (!data) return take(bytes);
  uint64_t before = 0;
  {
    const Lock lock(*this);
    PFRT_ASSIGN(Block * block, owned(data, "resizing memory"));
    before = block->asked;
    if (bytes <= block->bytes - block->offset) {
      if (config_.track_stats) {
        const uint64_t more = std::max(bytes, before) - before;
        const uint64_t less = before - std::min(bytes, before);
        stats_.total_allocated += more;
        stats_.total_freed += less;
        stats_.current_usage = stats_.current_usage + more - std::min(stats_.current_usage, less);
        stats_.peak_usage = std::max(stats_.peak_usage, stats_.current_usage);
      }
      block->asked = bytes;
      return data;
    }
  }
  PFRT_ASSIGN(void* moved, take(bytes));
  std::memcpy(moved, data, static_cast<size_t>(before));
  PFRT_TRY(give(data));
  return moved;
}

void MemoryPool::reset() {
  const Lock lock(*this);
  for (auto& [start, block] : blocks_)
    if (block.state != State::kUsed) unlink(block);
  std::erase_if(blocks_, [](const auto& e) { return e.second.region == 0; });
  for (auto& [start, block] : blocks_) {
    block.bytes = block.region;
    link(block, State::kFree);
  }
  stats_.total_freed += stats_.current_usage;
  stats_.num_frees = std::max(stats_.num_frees, stats_.num_allocations);
  stats_.current_usage = 0;
}

uint64_t MemoryPool::trim() {
  const Lock lock(*this);
  join_waiting();
  return drop_empty(false);
}

Status MemoryPool::reserve(uint64_t bytes) {
  const Lock lock(*this);
  if (bytes > kMost) return refused(bytes);
  const uint64_t room = round_up(std::max<uint64_t>(bytes, 1), config_.alignment);
  return best_fit(room) || grow(room, true) ? Status() : refused(bytes);
}

void MemoryPool::reset_stats() {
  const Lock lock(*this);
  const uint64_t now = stats_.current_usage;
  stats_ = {};
  stats_.current_usage = stats_.peak_usage = now;
}

PoolStats MemoryPool::stats() const {
  const Lock lock(*this);
  return stats_;
}

uint64_t MemoryPool::held() const {
  const Lock lock(*this);
  return held_;
}

void* MemoryPool::allocate(uint64_t bytes, uint64_t alignment) {
  try {
    auto taken = take(bytes, alignment);
    return taken.ok() ? taken.take() : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void MemoryPool::free(void* data, uint64_t) { (void)give(data).ok(); }

std::string MemoryPool::refusal(uint64_t bytes) const {
  const Lock lock(*this);
  return refused(bytes).message();
}

}  // namespace pfrt
