// SPDX-License-Identifier: Apache-2.0
//
// Pools of memory: the blocks that they give, refuse, and keep.
#include "core/memory/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/memory/global_pool.h"
#include "core/memory/tensor.h"

namespace pfrt {
namespace {

std::shared_ptr<MemoryPool> pool_of(PoolConfig config = {}, AllocatorPtr base = nullptr) {
  auto made = MemoryPool::create(std::move(config), std::move(base));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.take();
}

void* taken(MemoryPool& pool, uint64_t bytes, uint64_t alignment = 0) {
  auto got = pool.take(bytes, alignment);
  EXPECT_TRUE(got.ok()) << got.status().message();
  return got.ok() ? got.take() : nullptr;
}

// Gives at most |most| bytes at a time, and counts bytes and calls.
struct Base final : Allocator {
  uint64_t most, used = 0, calls = 0;
  explicit Base(uint64_t bytes) : most(bytes) {}
  void* allocate(uint64_t bytes, uint64_t alignment) override {
    if (used + bytes > most) return nullptr;
    used += bytes;
    ++calls;
    return std::aligned_alloc(alignment, bytes);
  }
  void free(void* data, uint64_t bytes) override {
    used -= bytes;
    std::free(data);
  }
};

TEST(MemoryPool, a_freed_block_is_the_next_of_its_class) {
  const auto pool = pool_of();
  void* const first = taken(*pool, 200);
  EXPECT_TRUE(pool->give(first).ok());
  EXPECT_EQ(taken(*pool, 256), first);
  const PoolStats stats = pool->stats();
  EXPECT_EQ(stats.num_allocations, 2u);
  EXPECT_EQ(stats.num_frees, 1u);
  EXPECT_EQ(stats.pool_hits, 1u);
  EXPECT_EQ(stats.pool_misses, 1u);
  EXPECT_EQ(stats.total_allocated, 456u);
  EXPECT_EQ(stats.total_freed, 200u);
  EXPECT_EQ(stats.current_usage, 256u);
  EXPECT_EQ(stats.peak_usage, 256u);
}

TEST(MemoryPool, blocks_are_aligned_and_apart) {
  const auto pool = pool_of();
  std::mt19937 random(5);
  std::vector<std::pair<uint8_t*, uint64_t>> blocks;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t bytes = random() % 3 ? random() % 5000 : random() % 200000;
    const uint64_t alignment = uint64_t{1} << random() % 13;
    auto* const data = static_cast<uint8_t*>(taken(*pool, bytes, alignment));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % alignment, 0u);
    std::memset(data, static_cast<int>(blocks.size() % 251), bytes);
    blocks.emplace_back(data, bytes);
    if (random() % 2) {
      const size_t at = random() % blocks.size();
      auto [freed, size] = blocks[at];
      if (!freed) continue;
      EXPECT_EQ(std::count(freed, freed + size, at % 251), static_cast<int64_t>(size));
      EXPECT_TRUE(pool->give(freed).ok());
      blocks[at].first = nullptr;
    }
  }
  for (size_t at = 0; at < blocks.size(); ++at)
    if (auto [data, size] = blocks[at]; data) {
      EXPECT_EQ(std::count(data, data + size, at % 251), static_cast<int64_t>(size));
      EXPECT_TRUE(pool->give(data).ok());
    }
  EXPECT_EQ(pool->stats().current_usage, 0u);
  pool->trim();
  EXPECT_EQ(pool->held(), 0u);
}

TEST(MemoryPool, what_is_no_block_of_it_is_refused) {
  const auto pool = pool_of();
  int elsewhere = 0;
  EXPECT_EQ(pool->give(&elsewhere).code(), Code::kNOT_FOUND);
  EXPECT_TRUE(pool->give(nullptr).ok());
  auto* const data = static_cast<char*>(taken(*pool, 100));
  EXPECT_EQ(pool->give(data + 1).code(), Code::kINVALID_ARGUMENT);
  EXPECT_TRUE(pool->give(data).ok());
  const Status twice = pool->give(data);
  EXPECT_EQ(twice.code(), Code::kINVALID_ARGUMENT);
  EXPECT_NE(twice.message().find("free already"), std::string::npos) << twice.message();
  EXPECT_EQ(pool->resize(&elsewhere, 5).status().code(), Code::kNOT_FOUND);
}

TEST(MemoryPool, the_smallest_free_block_that_fits_is_taken_and_neighbours_are_joined) {
  PoolConfig config;
  config.size_classes = {64};
  config.initial_pool_size = 64 << 10;
  config.auto_grow = false;
  const auto pool = pool_of(config);
  char* blocks[8];
  for (int i = 0; i < 8; ++i)
    blocks[i] = static_cast<char*>(taken(*pool, i == 3 ? 4096 : (8 << 10)));
  EXPECT_TRUE(pool->give(blocks[1]).ok());
  EXPECT_TRUE(pool->give(blocks[3]).ok());
  EXPECT_EQ(taken(*pool, 4000), blocks[3]) << "not the larger one";
  EXPECT_TRUE(pool->give(blocks[2]).ok());
  EXPECT_EQ(taken(*pool, 16 << 10), blocks[1]) << "two neighbours";
  const auto none = pool->take(32 << 10);
  EXPECT_EQ(none.status().code(), Code::kOUT_OF_MEMORY);
  EXPECT_NE(none.status().message().find("auto_grow"), std::string::npos);
}

TEST(MemoryPool, of_many_free_blocks_the_smallest_that_fits_is_taken) {
  PoolConfig config;
  config.size_classes = {64};
  config.initial_pool_size = 64 << 20;
  config.auto_grow = false;
  const auto pool = pool_of(config);
  std::mt19937 random(7);
  std::map<char*, uint64_t> blocks;  // free ones, with used ones between them
  for (int i = 0; i < 5000; ++i) {
    const uint64_t bytes = 64 * (2 + random() % 100);
    blocks[static_cast<char*>(taken(*pool, bytes))] = bytes;
    taken(*pool, 64);
  }
  std::multimap<uint64_t, char*> sizes;
  for (const auto& [data, bytes] : blocks) {
    ASSERT_TRUE(pool->give(data).ok());
    sizes.emplace(bytes, data);
  }
  for (int i = 0; i < 5000; ++i) {
    const uint64_t bytes = 64 * (2 + random() % 100);
    const auto best = sizes.lower_bound(bytes);
    if (best == sizes.end()) break;
    auto* const data = static_cast<char*>(taken(*pool, bytes));
    const auto at = blocks.find(data);
    ASSERT_NE(at, blocks.end()) << i;
    ASSERT_EQ(at->second, best->first) << i;
    const auto [first, last] = sizes.equal_range(best->first);
    sizes.erase(std::find_if(first, last, [&](const auto& e) { return e.second == data; }));
    const uint64_t left = at->second - bytes;
    blocks.erase(at);
    if (left) sizes.emplace(left, data + bytes), blocks[data + bytes] = left;
  }
}

TEST(MemoryPool, waiting_blocks_are_joined_before_it_is_out_of_memory) {
  PoolConfig config;
  config.initial_pool_size = config.memory_limit = 64 << 10;
  const auto pool = pool_of(config);
  std::vector<void*> small;
  for (int i = 0; i < 1024; ++i) small.push_back(taken(*pool, 64));
  EXPECT_EQ(pool->take(64).status().code(), Code::kOUT_OF_MEMORY);
  for (void* each : small) EXPECT_TRUE(pool->give(each).ok());
  EXPECT_NE(taken(*pool, 64 << 10), nullptr);
}

TEST(MemoryPool, a_limit_holds_and_is_named) {
  PoolConfig config;
  config.memory_limit = 1 << 20;
  const auto pool = pool_of(config);
  void* const half = taken(*pool, 512 << 10);
  const auto refused = pool->take(768 << 10);
  ASSERT_EQ(refused.status().code(), Code::kOUT_OF_MEMORY);
  EXPECT_NE(refused.status().message().find("memory_limit=1048576"), std::string::npos)
      << refused.status().message();
  EXPECT_TRUE(pool->give(half).ok());
  EXPECT_NE(taken(*pool, 768 << 10), nullptr) << "idle memory counts no longer";
  EXPECT_LE(pool->held(), config.memory_limit);
}

TEST(MemoryPool, of_ever_larger_blocks_nothing_is_left_behind) {
  const auto pool = pool_of();
  for (uint64_t mib = 5; mib < 40; ++mib) {
    EXPECT_TRUE(pool->give(taken(*pool, mib << 20)).ok());
    EXPECT_EQ(pool->held(), mib << 20);
  }
}

TEST(MemoryPool, resizing_keeps_contents) {
  const auto pool = pool_of();
  auto* data = static_cast<char*>(taken(*pool, 100));
  std::memset(data, 7, 100);
  auto stays = pool->resize(data, 120);
  ASSERT_TRUE(stays.ok());
  EXPECT_EQ(*stays, data) << "there is room";
  auto moves = pool->resize(data, 9 << 20);
  ASSERT_TRUE(moves.ok());
  data = static_cast<char*>(*moves);
  EXPECT_EQ(std::count(data, data + 100, 7), 100);
  EXPECT_EQ(pool->stats().current_usage, uint64_t{9} << 20);
  EXPECT_TRUE(pool->give(data).ok());
}

TEST(MemoryPool, reset_frees_all_and_trim_gives_back) {
  const auto base = std::make_shared<Base>(16 << 20);
  const auto pool = pool_of({}, base);
  void* const some = taken(*pool, 1000);
  taken(*pool, 6 << 20);
  EXPECT_GE(base->used, uint64_t{6} << 20);
  pool->reset();
  EXPECT_EQ(pool->give(some).code(), Code::kINVALID_ARGUMENT);
  EXPECT_EQ(pool->stats().current_usage, 0u);
  EXPECT_GE(pool->trim(), uint64_t{6} << 20);
  EXPECT_EQ(base->used, 0u);
}

TEST(MemoryPool, what_is_reserved_needs_nothing_from_below) {
  const auto base = std::make_shared<Base>(2 << 20);
  const auto pool = pool_of({}, base);
  ASSERT_TRUE(pool->reserve(1 << 20).ok());
  const uint64_t calls = base->calls;
  taken(*pool, 1 << 20);
  EXPECT_EQ(base->calls, calls);
  EXPECT_EQ(pool->stats().pool_hits, 1u);
  EXPECT_EQ(pool->reserve(4 << 20).code(), Code::kOUT_OF_MEMORY);
}

TEST(MemoryPool, a_base_without_memory_is_an_error) {
  const auto pool = pool_of({}, std::make_shared<Base>(0));
  EXPECT_EQ(pool->take(1).status().code(), Code::kOUT_OF_MEMORY);
  EXPECT_EQ(pool->allocate(64, 64), nullptr);
  EXPECT_EQ(pool->take(UINT64_MAX).status().code(), Code::kOUT_OF_MEMORY);
  EXPECT_EQ(pool->stats().num_allocations, 0u);
}

TEST(MemoryPool, wrong_configs_are_refused) {
  PoolConfig odd;
  odd.alignment = 48;
  EXPECT_EQ(MemoryPool::create(odd, nullptr).status().code(), Code::kINVALID_ARGUMENT);
  PoolConfig none;
  none.size_classes = {64, 0};
  EXPECT_EQ(MemoryPool::create(none, nullptr).status().code(), Code::kINVALID_ARGUMENT);
  PoolConfig more;
  more.initial_pool_size = 2;
  more.memory_limit = 1;
  EXPECT_EQ(MemoryPool::create(more, nullptr).status().code(), Code::kINVALID_ARGUMENT);
}

TEST(MemoryPool, threads_share_it) {
  const auto pool = pool_of();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      for (int i = 0; i < 2000; ++i) {
        const uint64_t bytes = 1 + random() % 9000;
        auto got = pool->take(bytes);
        ASSERT_TRUE(got.ok());
        std::memset(*got, t, bytes);
        const auto* const data = static_cast<char*>(*got);
        EXPECT_TRUE(std::all_of(data, data + bytes, [t](char c) { return c == t; }));
        EXPECT_TRUE(pool->give(*got).ok());
      }
    });
  for (std::thread& each : threads) each.join();
  const PoolStats stats = pool->stats();
  EXPECT_EQ(stats.num_allocations, 8000u);
  EXPECT_EQ(stats.num_frees, 8000u);
  EXPECT_EQ(stats.current_usage, 0u);
}

TEST(GlobalPool, threads_count_what_buffers_take) {
  auto pool = global_pool::pool();
  ASSERT_TRUE(pool.ok());
  const PoolStats before = global_pool::stats(**pool);
  {
    auto kept = Buffer::allocate(1000);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < 500; ++i) EXPECT_TRUE(Buffer::allocate(4096, false).ok());
      });
    for (std::thread& each : threads) each.join();
    EXPECT_TRUE(Buffer::allocate_pages(1 << 20).ok());
    const PoolStats now = global_pool::stats(**pool);
    EXPECT_EQ(now.num_allocations - before.num_allocations, 2002u);
    EXPECT_EQ(now.num_frees - before.num_frees, 2001u);
    EXPECT_EQ(now.current_usage - before.current_usage, 1024u);
    EXPECT_GE(now.peak_usage, before.current_usage + (1 << 20));
  }
  EXPECT_EQ(global_pool::stats(**pool).current_usage, before.current_usage);
}

}  // namespace
}  // namespace pfrt
