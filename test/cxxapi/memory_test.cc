// SPDX-License-Identifier: Apache-2.0
//
// Pools, arenas, caches and allocators of C++; snippets of the guide as they are printed.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>
#include <thread>
#include <vector>

#include "pyflame_rt/memory/memory_pool.hpp"

namespace {

using namespace pyflame_rt::memory;  // NOLINT(google-build-using-namespace): as in the guide

TEST(GuideMemory, pool) {
  testing::internal::CaptureStdout();
  // Configure the pool
  PoolConfig config;
  config.size_classes = {64, 128, 256, 512, 1024, 2048, 4096};
  config.max_blocks_per_class = 64;
  config.alignment = 64;  // Cache line alignment
  config.thread_safe = true;
  config.track_stats = true;

  MemoryPool pool(config);

  // Allocate memory
  void* ptr = pool.allocate(256);

  // Aligned allocation
  void* aligned_ptr = pool.allocate_aligned(1024, 64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned_ptr) % 64, 0u);

  // Deallocate
  pool.deallocate(ptr);
  pool.deallocate(aligned_ptr);

  // Check statistics
  auto stats = pool.get_stats();
  std::cout << "Pool hit rate: " << stats.hit_rate() << std::endl;
  std::cout << "Current usage: " << stats.current_usage << " bytes" << std::endl;
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Pool hit rate: 0.5\nCurrent usage: 0 bytes\n");
}

TEST(GuideMemory, arena) {
  testing::internal::CaptureStdout();
  Arena arena(1024 * 1024);  // 1MB arena

  // Fast linear allocations
  void* temp1 = arena.allocate(100);
  void* temp2 = arena.allocate(200);
  void* temp3 = arena.allocate(300);

  std::cout << "Arena used: " << arena.used() << " bytes" << std::endl;
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Arena used: 620 bytes\n");
  EXPECT_LE(static_cast<char*>(temp1) + 100, temp2);
  EXPECT_LE(static_cast<char*>(temp2) + 200, temp3);

  // Reset all at once (very fast)
  arena.reset();
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_EQ(arena.allocate(1), temp1);
}

TEST(GuideMemory, scoped_arena) {
  Arena arena(1024 * 1024);

  {
    ScopedArena scope(arena);
    void* temp = scope.allocate(512);
    // Use temp...
    std::memset(temp, 0, 512);
    EXPECT_EQ(arena.used(), 512u);
  }  // Automatically resets to saved offset

  // Arena is back to original state
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, overflows_and_rewinds) {
  Arena arena(1000);
  EXPECT_EQ(arena.capacity(), 1000u);
  EXPECT_EQ(Arena().capacity(), Arena::kDefaultCapacity);
  void* const outer = arena.allocate(600);
  std::memset(outer, 1, 600);
  {
    ScopedArena first(arena);
    auto* const over = static_cast<char*>(first.allocate(600));
    std::memset(over, 2, 600);
    EXPECT_EQ(arena.overflow_blocks(), 1u);
    EXPECT_GE(arena.overflow_bytes(), 600u);
    {
      ScopedArena second(arena);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(second.allocate_aligned(5000, 4096)) % 4096, 0u);
      second.allocate(10);
      EXPECT_EQ(arena.overflow_blocks(), 2u);
    }
    EXPECT_EQ(arena.overflow_blocks(), 1u);
    EXPECT_EQ(over[599], 2);
  }
  EXPECT_EQ(arena.overflow_blocks(), 0u);
  EXPECT_EQ(arena.used(), 600u);
  EXPECT_EQ(arena.remaining(), 400u);
  EXPECT_EQ(static_cast<char*>(outer)[599], 1);
  EXPECT_THROW(arena.allocate_aligned(1, 3), pyflame_rt::InvalidArgumentError);
  EXPECT_THROW(arena.allocate(SIZE_MAX - 8), std::bad_alloc);
}

TEST(BufferCache, keeps_what_fits_and_drops_the_oldest) {
  BufferCache cache(2, 10000);
  void* const first = cache.acquire(1000);
  cache.release(first);
  EXPECT_EQ(cache.acquire(600), first);
  void* const second = cache.acquire(400);
  EXPECT_NE(second, first);
  EXPECT_EQ(cache.hits(), 1u);
  EXPECT_EQ(cache.misses(), 2u);
  cache.release(second);
  cache.release(first);
  EXPECT_THROW(cache.release(first), pyflame_rt::InvalidArgumentError);
  cache.clear();
  void* all[3] = {cache.acquire(3000), cache.acquire(3000), cache.acquire(9000)};
  for (void* each : all) cache.release(each);
  EXPECT_EQ(cache.cached_buffers(), 1u) << "12,000 bytes are too many";
  EXPECT_EQ(cache.cached_bytes(), 9000u);
}

TEST(MemoryPools, say_what_is_wrong) {
  PoolConfig config;
  config.memory_limit = 1 << 20;
  MemoryPool pool(config);
  try {
    pool.allocate(2 << 20);
    ADD_FAILURE() << "the limit is 1 MiB";
  } catch (const pyflame_rt::OutOfMemoryError& e) {
    EXPECT_NE(std::string(e.what()).find("memory_limit=1048576"), std::string::npos) << e.what();
  }
  int elsewhere = 0;
  EXPECT_THROW(pool.deallocate(&elsewhere), pyflame_rt::NotFoundError);
  void* const data = pool.allocate(10);
  pool.deallocate(data);
  EXPECT_THROW(pool.deallocate(data), pyflame_rt::InvalidArgumentError);
  config.alignment = 3;
  EXPECT_THROW(MemoryPool{config}, pyflame_rt::InvalidArgumentError);
}

// Counts, and has |limit| bytes.
struct Counting : IAllocator {
  std::atomic<int> alive{0}, calls{0};
  size_t limit = SIZE_MAX;
  void* Alloc(size_t size) override {
    if (size > limit) return nullptr;
    ++alive;
    ++calls;
    return std::malloc(size);  // of any alignment
  }
  void Free(void* p) override {
    --alive;
    std::free(p);
  }
};

TEST(AdvancedMemoryPool, delegates_what_is_not_its_own) {
  Counting base;
  {
    AdvancedMemoryPool pool(100000, &base);
    EXPECT_EQ(base.alive, 1);
    void* const inside = pool.Alloc(50000);
    void* const beyond = pool.Alloc(80000);
    EXPECT_EQ(base.alive, 2) << "it expands";
    void* const foreign = base.Alloc(10);
    pool.Free(foreign);
    EXPECT_EQ(base.alive, 2);
    pool.Free(inside);
    pool.Free(beyond);
    base.limit = 0;
    EXPECT_EQ(pool.Alloc(1 << 20), nullptr);
  }
  EXPECT_EQ(base.alive, 0);
}

pyflame_rt::Graph relu() {
  pyflame_rt::Graph graph("relu");
  graph.add_input({"x", {{-1, 256}}, pyflame_rt::DType::Float32});
  graph.add_output({"y", {{-1, 256}}, pyflame_rt::DType::Float32});
  graph.add_node(std::make_shared<pyflame_rt::Node>("n", "Relu", std::vector<std::string>{"x"},
                                                    std::vector<std::string>{"y"}));
  return graph;
}

pyflame_rt::Tensor rows(int64_t n) {
  pyflame_rt::Tensor tensor({n, 256}, pyflame_rt::DType::Float32);
  tensor.fill(-1.0f);
  return tensor;
}

TEST(Allocators, of_clients_serve_runs) {
  const auto own = std::make_shared<Counting>();
  pyflame_rt::Environment::instance().set_allocator(own);
  {
    pyflame_rt::InferenceSession session(relu());
    const auto out = session.run({}, {{"x", rows(40)}});
    EXPECT_EQ(out.at(0).shape().at(0), 40);
    EXPECT_GT(own->calls.load(), 0);
    own->limit = 1 << 20;
    EXPECT_THROW(session.run({}, {{"x", rows(4000)}}), pyflame_rt::OutOfMemoryError);
  }
  pyflame_rt::Environment::instance().set_allocator(nullptr);
  EXPECT_EQ(own->alive, 0);
  EXPECT_EQ(own.use_count(), 1) << "it is let go of";
}

TEST(GlobalMemoryPool, counts_runs_and_limits_them) {
  pyflame_rt::InferenceSession session(relu());
  session.run({}, {{"x", rows(8)}});
  const PoolStats before = global_pool().get_stats();
  for (int i = 0; i < 10; ++i) session.run({}, {{"x", rows(8)}});
  const PoolStats after = global_pool().get_stats();
  EXPECT_GE(after.num_allocations - before.num_allocations, 20u) << "an output and a block each";
  EXPECT_GE(after.pool_hits - before.pool_hits, 10u);
  EXPECT_GT(after.hit_rate(), 0.0);
  EXPECT_EQ(after.current_usage, before.current_usage);

  PoolConfig config;
  config.memory_limit = 8 << 20;
  set_global_pool_config(config);
  MemoryPool& pool = global_pool();
  {
    const auto out = session.run({}, {{"x", rows(1000)}});
    EXPECT_GE(pool.get_stats().current_usage, 1000u * 1024) << "the output is of the pool";
    EXPECT_THROW(session.run({}, {{"x", rows(20000)}}), pyflame_rt::OutOfMemoryError);
  }
  EXPECT_THROW(pool.reset(), pyflame_rt::UnsupportedError);
  reset_global_pool_config();
  EXPECT_EQ(session.run({}, {{"x", rows(20000)}}).at(0).shape().at(0), 20000);
}

TEST(GlobalMemoryPool, is_shared_by_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      pyflame_rt::InferenceSession session(relu());
      for (int64_t i = 1; i < 50; ++i)
        EXPECT_EQ(session.run({}, {{"x", rows(i)}}).at(0).shape().at(0), i);
    });
  for (std::thread& each : threads) each.join();
}

}  // namespace
