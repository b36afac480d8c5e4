// SPDX-License-Identifier: Apache-2.0
//
// Pools of memory, arenas, caches of buffers, allocators and planners. A MemoryPool is thread-safe
// unless its config says otherwise. Sizes are bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <pyflame_rt/api.hpp>
#include <pyflame_rt/memory/allocator.hpp>
#include <pyflame_rt/memory/arena.hpp>
#include <pyflame_rt/memory/buffer_cache.hpp>
#include <pyflame_rt/memory/planner.hpp>
#include <utility>
#include <vector>

namespace pyflame_rt {
namespace memory {

// Returns the sizes of blocks that are kept for reuse: powers of two from 64 to 4 Mi.
inline std::vector<size_t> default_size_classes() {
  std::vector<size_t> out;
  for (size_t bytes = 64; bytes <= size_t{4} << 20; bytes *= 2) out.push_back(bytes);
  return out;
}

// Settings of a pool.
struct PoolConfig {
  std::vector<size_t> size_classes = default_size_classes();  // not empty
  size_t max_blocks_per_class = 64;                           // that a class keeps; at least 1
  size_t alignment = 64;         // of every block; a power of two up to 2 Mi
  bool thread_safe = true;       // false: externally synchronised
  bool track_stats = true;       // false: get_stats gives zeros
  size_t memory_limit = 0;       // most that the pool may hold, free blocks included; 0 = no limit
  size_t initial_pool_size = 0;  // taken when the pool is made
  bool auto_grow = true;         // false: nothing beyond initial_pool_size
};

// Counts of a pool's work. Sizes are those that were asked for.
struct PoolStats {
  // Bytes of all calls together.
  uint64_t total_allocated = 0, total_freed = 0;
  // Number of calls.
  uint64_t num_allocations = 0, num_frees = 0;
  // Allocations that used the pool's memory, and those that took new memory.
  uint64_t pool_hits = 0, pool_misses = 0;
  // Bytes in blocks that were not deallocated, now and at most.
  uint64_t current_usage = 0, peak_usage = 0;

  // Share of hits among all allocations, from 0 to 1.
  double hit_rate() const noexcept {
    const uint64_t all = pool_hits + pool_misses;
    return all == 0 ? 0.0 : static_cast<double>(pool_hits) / static_cast<double>(all);
  }
};

namespace detail {

inline pfrt_pool_config c_config(const PoolConfig& config, std::vector<uint64_t>& classes) {
  if (config.size_classes.empty() || config.max_blocks_per_class == 0 || config.alignment == 0)
    throw InvalidArgumentError(
        "making a memory pool: size_classes, max_blocks_per_class and alignment may not be empty "
        "or 0",
        PFRT_CODE_INVALID_ARGUMENT);
  classes.assign(config.size_classes.begin(), config.size_classes.end());
  pfrt_pool_config c{};
  c.struct_size = sizeof(c);
  if (!config.thread_safe) c.flags |= PFRT_POOL_ONE_THREAD;
  if (!config.track_stats) c.flags |= PFRT_POOL_NO_STATS;
  if (!config.auto_grow) c.flags |= PFRT_POOL_NO_GROWTH;
  c.size_classes = classes.data();
  c.size_class_count = classes.size();
  c.max_blocks_per_class = config.max_blocks_per_class;
  c.alignment = config.alignment;
  c.memory_limit = config.memory_limit;
  c.initial_pool_size = config.initial_pool_size;
  return c;
}

}  // namespace detail

// A pool. Blocks that are not deallocated are freed with it.
class MemoryPool {
 public:
  // |base| is the source of the pool's memory; null = the system. Throws InvalidArgumentError that
  // names what is wrong with |config|, and OutOfMemoryError.
  explicit MemoryPool(const PoolConfig& config = {}, std::shared_ptr<IAllocator> base = nullptr) {
    std::vector<uint64_t> classes;
    const pfrt_pool_config c = detail::c_config(config, classes);
    pfrt_allocator below{};
    if (base != nullptr) below = detail::c_allocator(std::move(base));
    pyflame_rt::detail::check(
        api().memory->create_pool(&c, below.struct_size != 0 ? &below : nullptr, &pool_));
  }
  ~MemoryPool() { api().memory->release_pool(pool_); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Returns |bytes| bytes, whose contents are undefined. Throws OutOfMemoryError, which says
  // whether the limit is reached.
  void* allocate(size_t bytes) { return allocate_aligned(bytes, 0); }
  // Allocates at |alignment|, a power of two up to 2 Mi; 0 = the config's.
  void* allocate_aligned(size_t bytes, size_t alignment) {
    void* out = nullptr;
    pyflame_rt::detail::check(api().memory->allocate(pool_, bytes, alignment, &out));
    return out;
  }
  // Frees a block; null is ignored. Throws NotFoundError where it is not of this pool,
  // InvalidArgumentError where it is freed already or inside a block.
  void deallocate(void* data) { pyflame_rt::detail::check(api().memory->deallocate(pool_, data)); }
  // Resizes a block. Keeps its contents, and its address where there is room; on failure |data|
  // stays as it is.
  void* reallocate(void* data, size_t bytes) {
    void* out = nullptr;
    pyflame_rt::detail::check(api().memory->reallocate(pool_, data, bytes, &out));
    return out;
  }
  // Frees every block. Throws UnsupportedError for the global pool, whose blocks runs have.
  void reset() { pyflame_rt::detail::check(api().memory->reset(pool_)); }
  // Makes |bytes| ready in one piece.
  void reserve(size_t bytes) { pyflame_rt::detail::check(api().memory->reserve(pool_, bytes)); }
  // Frees memory in which no block lies; returns its size.
  size_t trim() {
    uint64_t out = 0;
    pyflame_rt::detail::check(api().memory->trim(pool_, &out));
    return static_cast<size_t>(out);
  }

  // Counts so far; all zero for a pool without statistics.
  PoolStats get_stats() const {
    pfrt_pool_stats c{};
    c.struct_size = sizeof(c);
    pyflame_rt::detail::check(api().memory->pool_stats(pool_, &c));
    return {c.total_allocated, c.total_freed, c.num_allocations, c.num_frees,
            c.pool_hits,       c.pool_misses, c.current_usage,   c.peak_usage};
  }
  // Sets the counts to zero; blocks in use still count in current_usage.
  void reset_stats() { pyflame_rt::detail::check(api().memory->reset_stats(pool_)); }

  pfrt_memory_pool* handle() const noexcept { return pool_; }

 private:
  friend MemoryPool& global_pool();
  friend void set_global_pool_config(const PoolConfig& config);
  explicit MemoryPool(PFRT_OWN pfrt_memory_pool* pool) noexcept : pool_(pool) {}

  pfrt_memory_pool* pool_ = nullptr;
};

namespace detail {

// Pools that global_pool returned live as long as the process.
struct GlobalPool {
  std::mutex mutex;
  MemoryPool* pool = nullptr;
  std::vector<MemoryPool*> before;
  static GlobalPool& instance() {
    static GlobalPool* const the = new GlobalPool;
    return *the;
  }
};

}  // namespace detail

// Returns the pool that set_global_pool_config made; before, one that only the caller takes from.
// Its statistics also count the memory that runs take outside of it.
inline MemoryPool& global_pool() {
  detail::GlobalPool& all = detail::GlobalPool::instance();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.pool == nullptr) {
    pfrt_memory_pool* pool = nullptr;
    pyflame_rt::detail::check(api().memory->global_pool(&pool));
    all.pool = new MemoryPool(pool);
  }
  return *all.pool;
}

// Makes a new pool of the process. Tensors, and the blocks that runs work in, come from it where
// their environment has no allocator of its own, and fail with OutOfMemoryError beyond its limit;
// models' constants do not. Memory allocated before goes back where it came from: keep a reference
// to its pool.
inline void set_global_pool_config(const PoolConfig& config) {
  std::vector<uint64_t> classes;
  const pfrt_pool_config c = detail::c_config(config, classes);
  detail::GlobalPool& all = detail::GlobalPool::instance();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.before.reserve(all.before.size() + 1);
  pyflame_rt::detail::check(api().memory->set_global_pool(&c));
  if (all.pool != nullptr) all.before.push_back(std::exchange(all.pool, nullptr));
}

// Undoes set_global_pool_config: later memory is the C library's.
inline void reset_global_pool_config() {
  detail::GlobalPool& all = detail::GlobalPool::instance();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.before.reserve(all.before.size() + 1);
  pyflame_rt::detail::check(api().memory->set_global_pool(nullptr));
  if (all.pool != nullptr) all.before.push_back(std::exchange(all.pool, nullptr));
}

// A pool of one block of memory from |base|, with further memory from |base| when that is used up.
// |base| must outlive it. Thread-safe.
class AdvancedMemoryPool : public IAllocator {
 public:
  // Takes |initial_size| bytes of |base_allocator| at once. Throws OutOfMemoryError.
  AdvancedMemoryPool(size_t initial_size, IAllocator* base_allocator)
      : base_(base_allocator),
        pool_(config_of(initial_size),
              std::shared_ptr<IAllocator>(std::shared_ptr<void>(), base_allocator)) {}

  // Returns null when there is no memory.
  void* Alloc(size_t size) override {
    try {
      return pool_.allocate(size);
    } catch (const PyFlameRTError&) {
      return nullptr;
    }
  }
  // Frees a block of the pool; any other address goes to the base allocator.
  void Free(void* p) override {
    try {
      pool_.deallocate(p);
    } catch (const NotFoundError&) {
      base_->Free(p);
    }
  }
  // Counts of the pool; memory that the base allocator gave directly is not included.
  PoolStats get_stats() const { return pool_.get_stats(); }

 private:
  static PoolConfig config_of(size_t initial_size) {
    PoolConfig config;
    config.size_classes = {64};  // above it: best fit
    config.initial_pool_size = initial_size;
    return config;
  }
  IAllocator* base_;
  MemoryPool pool_;
};

}  // namespace memory
}  // namespace pyflame_rt
