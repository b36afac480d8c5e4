// SPDX-License-Identifier: Apache-2.0
#include "core/memory/global_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "core/base/immortal.h"
#include "core/base/os/fork.h"

namespace pfrt::global_pool {
namespace {

constexpr uint64_t kLarge = uint64_t{64} << 10;  // costs more than a shared counter

using Count = std::atomic<uint64_t>;

struct alignas(64) Cell {
  Count allocated, freed, allocations, frees, reused, hits;
};
// The first threads have a cell each, for good; later ones share the others.
constexpr uint32_t kOwn = 192, kCells = 256;
constinit std::array<Cell, kCells> cells;
constinit std::atomic<uint32_t> threads{0};
constinit std::atomic<uint64_t> large_now{0}, peak{0};
constinit thread_local Cell* cell = nullptr;

[[gnu::noinline]] Cell* find_cell() {
  const uint32_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return cell = &cells[number < kOwn ? number : kOwn + number % (kCells - kOwn)];
}

// Adds to two counts of this thread.
void add(Count Cell::*bytes, uint64_t n, Count Cell::*times) {
  Cell* const mine = cell ? cell : find_cell();
  if (mine >= &cells[kOwn]) {
    (mine->*bytes).fetch_add(n, std::memory_order_relaxed);
    (mine->*times).fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const auto plain = [](Count& count, uint64_t more) {
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  };
  plain(mine->*bytes, n);
  plain(mine->*times, 1);
}

void raise_peak(uint64_t now) {
  uint64_t before = peak.load(std::memory_order_relaxed);
  while (before < now && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

struct State {
  std::mutex mutex;
  std::shared_ptr<MemoryPool> pool;  // the configured one
  std::weak_ptr<MemoryPool> unused;  // the one with defaults
  PoolStats before;                  // counts up to reset_stats
};
State& state() {
  static Immortal<State> made;
  return made.get();
}
constinit std::atomic<bool> configured{false};

PoolStats counted() {
  PoolStats sum;
  for (const Cell& each : cells) {
    // A block that is used again was freed before.
    const uint64_t reused = each.reused.load(std::memory_order_relaxed);
    const uint64_t hits = each.hits.load(std::memory_order_relaxed);
    sum.total_allocated += each.allocated.load(std::memory_order_relaxed) + reused;
    sum.total_freed += each.freed.load(std::memory_order_relaxed) + reused;
    sum.num_allocations += each.allocations.load(std::memory_order_relaxed) + hits;
    sum.num_frees += each.frees.load(std::memory_order_relaxed) + hits;
    sum.pool_hits += hits;
  }
  sum.current_usage = sum.total_allocated - std::min(sum.total_allocated, sum.total_freed);
  raise_peak(sum.current_usage);
  return sum;
}

}  // namespace

void count_allocation(uint64_t bytes) {
  add(&Cell::allocated, bytes, &Cell::allocations);
  if (bytes >= kLarge) raise_peak(large_now.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

void count_free(uint64_t bytes) {
  add(&Cell::freed, bytes, &Cell::frees);
  if (bytes >= kLarge) large_now.fetch_sub(bytes, std::memory_order_relaxed);
}

void count_reuse(uint64_t bytes) { add(&Cell::reused, bytes, &Cell::hits); }

AllocatorPtr of_buffers() {
  if (!configured.load(std::memory_order_acquire)) return nullptr;
  const os::ForkScope no_fork;
  const std::lock_guard lock(state().mutex);
  return state().pool;
}

Status configure(PoolConfig config) {
  if (!config.thread_safe)
    return error(Code::kINVALID_ARGUMENT,
                 "configuring the global memory pool: runs of many threads take from it, so that "
                 "thread_safe must be on");
  PFRT_ASSIGN(std::shared_ptr<MemoryPool> made, MemoryPool::create(std::move(config), nullptr));
  const std::lock_guard lock(state().mutex);
  state().pool.swap(made);
  configured.store(true, std::memory_order_release);
  return {};
}

void restore() {
  std::shared_ptr<MemoryPool> before;  // outlives the lock
  const std::lock_guard lock(state().mutex);
  configured.store(false, std::memory_order_release);
  state().pool.swap(before);
}

Result<std::shared_ptr<MemoryPool>> pool() {
  const std::lock_guard lock(state().mutex);
  if (state().pool) return state().pool;
  std::shared_ptr<MemoryPool> made = state().unused.lock();
  if (!made) {
    PFRT_ASSIGN(made, MemoryPool::create({}, nullptr));
    state().unused = made;
  }
  return made;
}

PoolStats stats(const MemoryPool& pool) {
  PoolStats sum = pool.stats();
  PoolStats outside = counted();
  const std::lock_guard lock(state().mutex);
  const PoolStats& before = state().before;
  sum.total_allocated += outside.total_allocated - before.total_allocated;
  sum.total_freed += outside.total_freed - before.total_freed;
  sum.num_allocations += outside.num_allocations - before.num_allocations;
  sum.num_frees += outside.num_frees - before.num_frees;
  const uint64_t hits = outside.pool_hits - before.pool_hits;
  sum.pool_hits += hits;
  sum.pool_misses += outside.num_allocations - before.num_allocations - hits;
  sum.current_usage += outside.current_usage;
  sum.peak_usage =
      std::max(sum.peak_usage + outside.current_usage, peak.load(std::memory_order_relaxed));
  return sum;
}

void reset_stats(MemoryPool& pool) {
  pool.reset_stats();
  const PoolStats now = counted();
  const std::lock_guard lock(state().mutex);
  state().before = now;
  peak.store(now.current_usage, std::memory_order_relaxed);
}

uint64_t trim() {
  std::shared_ptr<MemoryPool> pool;
  if (configured.load(std::memory_order_acquire)) {
    const std::lock_guard lock(state().mutex);
    pool = state().pool;
  }
  return pool ? pool->trim() : 0;
}

}  // namespace pfrt::global_pool
