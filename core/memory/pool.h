// SPDX-License-Identifier: Apache-2.0
//
// A pool of memory: regions from the system, or from another allocator, divided into blocks. Freed
// blocks of a size class wait for the next request of that class; others are joined with their free
// neighbours, and the smallest that fits is taken. A pool knows its blocks and refuses other
// addresses. Thread-safe unless its config says otherwise.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/memory/allocator.h"

namespace pfrt {

struct PoolConfig {
  std::vector<uint64_t> size_classes;  // bytes; empty = powers of two from 64 to 4 Mi
  uint64_t max_blocks_per_class = 64;  // that wait for reuse
  uint64_t alignment = 64;             // of every block
  uint64_t memory_limit = 0;           // bytes of all regions together; 0 = none
  uint64_t initial_pool_size = 0;      // bytes of the first region
  bool thread_safe = true, track_stats = true;
  bool auto_grow = true;  // more regions when the first is used up
};

struct PoolStats {
  uint64_t total_allocated = 0, total_freed = 0;  // bytes that were asked for
  uint64_t num_allocations = 0, num_frees = 0;
  uint64_t pool_hits = 0, pool_misses = 0;  // without and with new regions
  uint64_t current_usage = 0, peak_usage = 0;
};

class MemoryPool final : public Allocator {
 public:
  // |base| supplies regions; null = the system does.
  static Result<std::shared_ptr<MemoryPool>> create(PoolConfig config, AllocatorPtr base);
  ~MemoryPool() override;

  // Takes at least |bytes|, with undefined contents. |alignment| is a power of two; 0 = the
  // config's.
  Result<void*> take(uint64_t bytes, uint64_t alignment = 0);
  // Does nothing for null. NOT_FOUND where |data| is not of this pool; INVALID_ARGUMENT where it
  // was freed already, or is inside a block.
  Status give(void* data);
  // Keeps the contents, and the address where there is room. A null |data| takes new memory.
  Result<void*> resize(void* data, uint64_t bytes);
  // Frees every block; callers must not use theirs any more.
  void reset();
  // Gives back regions without a block; returns their bytes.
  uint64_t trim();
  // Makes sure that |bytes| can be taken at once without new memory.
  Status reserve(uint64_t bytes);
  void reset_stats();
  PoolStats stats() const;
  uint64_t held() const;  // bytes of all regions

  void* allocate(uint64_t bytes, uint64_t alignment) override;
  void free(void* data, uint64_t bytes) override;
  std::string refusal(uint64_t bytes) const override;

 private:
  enum class State : uint8_t { kFree, kWaiting, kUsed };
  struct Block;
  // Orders the smallest first, then by address.
  struct Size {
    uint64_t bytes;
    char* start;
    Block* block;
    bool operator<(const Size& other) const {
      return bytes != other.bytes ? bytes < other.bytes : start < other.start;
    }
  };
  using BySize = std::set<Size>;
  struct Links {
    Block *before = nullptr, *next = nullptr;
  };
  struct Block {
    char* start = nullptr;
    uint64_t bytes = 0, asked = 0;
    uint64_t offset = 0;     // of the caller's memory, for its alignment
    uint64_t region = 0;     // bytes of the region that begins here, or 0
    Links waiting, regions;  // in the list of its size class, and in that of the regions
    BySize::node_type size;  // while it is not free: needed when it is, since freeing must not fail
    BySize::iterator by_size;  // while it is free
    uint32_t list = 0;         // size class, or kNoClass
    State state = State::kUsed;
  };
  using Blocks = std::map<char*, Block>;
  static constexpr uint32_t kNoClass = UINT32_MAX;
  class Lock;

  MemoryPool(PoolConfig config, AllocatorPtr base);
  uint32_t class_of(uint64_t bytes) const;
  static void link(Block*& first, Block& block, Links Block::*links);
  static void unlink(Block*& first, Block& block, Links Block::*links);
  // Adds a used block.
  Block& add(char* start, uint64_t bytes);
  void link(Block& block, State state);
  void unlink(Block& block);
  Block* best_fit(uint64_t bytes);
  Block* grow(uint64_t bytes, bool just);
  Block* find(uint64_t bytes, bool& fresh);
  void split(Block& block, uint64_t bytes);
  void join(Block& block);
  void join_waiting();
  uint64_t drop_empty(bool first_too);
  Blocks::iterator at_or_before(void* data);
  Result<Block*> owned(void* data, const char* doing);
  void drop(char* start, uint64_t region);
  Status refused(uint64_t bytes) const;

  PoolConfig config_;
  const AllocatorPtr base_;
  mutable std::mutex mutex_;
  Blocks blocks_;                // by address
  BySize free_;                  // free blocks
  Block* regions_ = nullptr;     // blocks at the start of regions
  std::vector<Block*> waiting_;  // by size class
  std::vector<uint64_t> waiting_count_;
  uint64_t held_ = 0;
  PoolStats stats_;
};

}  // namespace pfrt
