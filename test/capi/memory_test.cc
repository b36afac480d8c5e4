// SPDX-License-Identifier: Apache-2.0
//
// The table of memory pools, and what sessions and environments say of and give back of memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

pfrt_pool_config config_of(uint64_t limit) {
  pfrt_pool_config config{};
  config.struct_size = sizeof config;
  config.memory_limit = limit;
  return config;
}

pfrt_pool_stats stats_of(pfrt_memory_pool* pool) {
  pfrt_pool_stats stats{};
  stats.struct_size = sizeof stats;
  EXPECT_EQ(api().memory->pool_stats(pool, &stats), nullptr);
  return stats;
}

// The code of |status|, which is released.
pfrt_code code_of(pfrt_status* status) {
  const pfrt_code code = api().status->code(status);
  api().status->release(status);
  return code;
}

TEST(PoolTable, gives_and_takes) {
  pfrt_memory_pool* pool = nullptr;
  const pfrt_pool_config config = config_of(1 << 20);
  ASSERT_EQ(api().memory->create_pool(&config, nullptr, &pool), nullptr);
  void* data = nullptr;
  ASSERT_EQ(api().memory->allocate(pool, 100, 4096, &data), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0u);
  std::memset(data, 1, 100);
  void* larger = nullptr;
  ASSERT_EQ(api().memory->reallocate(pool, data, 300000, &larger), nullptr);
  EXPECT_EQ(static_cast<char*>(larger)[99], 1);
  void* none = &none;
  EXPECT_EQ(code_of(api().memory->allocate(pool, 2 << 20, 0, &none)), PFRT_CODE_OUT_OF_MEMORY);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(code_of(api().memory->deallocate(pool, data)), PFRT_CODE_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(api().memory->deallocate(pool, &none)), PFRT_CODE_NOT_FOUND);
  EXPECT_EQ(stats_of(pool).current_usage, 300000u);
  EXPECT_EQ(api().memory->reset(pool), nullptr);
  EXPECT_EQ(stats_of(pool).current_usage, 0u);
  uint64_t bytes = 0;
  EXPECT_EQ(api().memory->trim(pool, &bytes), nullptr);
  EXPECT_GE(bytes, 300000u);
  EXPECT_EQ(api().memory->reserve(pool, 1000), nullptr);
  EXPECT_EQ(api().memory->reset_stats(pool), nullptr);
  EXPECT_EQ(stats_of(pool).num_allocations, 0u);
  api().memory->release_pool(pool);
}

TEST(PoolTable, refuses_what_it_does_not_know) {
  pfrt_memory_pool* pool = nullptr;
  pfrt_pool_config config = config_of(0);
  config.flags = 64;
  EXPECT_EQ(code_of(api().memory->create_pool(&config, nullptr, &pool)), PFRT_CODE_UNSUPPORTED);
  config = config_of(0);
  config.size_class_count = 2;
  EXPECT_EQ(code_of(api().memory->create_pool(&config, nullptr, &pool)),
            PFRT_CODE_INVALID_ARGUMENT);
  EXPECT_EQ(pool, nullptr);
  config = config_of(0);
  config.flags = PFRT_POOL_ONE_THREAD;
  EXPECT_EQ(code_of(api().memory->set_global_pool(&config)), PFRT_CODE_INVALID_ARGUMENT);
  void* data = nullptr;
  EXPECT_EQ(code_of(api().memory->allocate(nullptr, 1, 0, &data)), PFRT_CODE_INVALID_ARGUMENT);
  ASSERT_EQ(api().memory->global_pool(&pool), nullptr);
  EXPECT_EQ(code_of(api().memory->reset(pool)), PFRT_CODE_UNSUPPORTED);
  api().memory->release_pool(pool);
  api().memory->release_pool(nullptr);
}

// An allocator that has nothing, and counts what becomes of it.
struct Nothing {
  int asked = 0, released = 0;
  pfrt_allocator table() {
    pfrt_allocator out{};
    out.struct_size = sizeof out;
    out.user = this;
    out.allocate = [](void* user, uint64_t, uint64_t) -> void* {
      ++static_cast<Nothing*>(user)->asked;
      return nullptr;
    };
    out.free = [](void*, void*, uint64_t) { ADD_FAILURE() << "nothing was given"; };
    out.release = [](void* user) { ++static_cast<Nothing*>(user)->released; };
    return out;
  }
};

TEST(PoolTable, takes_from_the_allocator_below) {
  Nothing nothing;
  const pfrt_allocator below = nothing.table();
  pfrt_memory_pool* pool = nullptr;
  ASSERT_EQ(api().memory->create_pool(nullptr, &below, &pool), nullptr);
  void* data = nullptr;
  EXPECT_EQ(code_of(api().memory->allocate(pool, 10, 0, &data)), PFRT_CODE_OUT_OF_MEMORY);
  EXPECT_GT(nothing.asked, 0);
  EXPECT_EQ(nothing.released, 0);
  api().memory->release_pool(pool);
  EXPECT_EQ(nothing.released, 1);
  const pfrt_pool_config config = [] {
    pfrt_pool_config out = config_of(0);
    out.initial_pool_size = 4096;
    return out;
  }();
  EXPECT_EQ(code_of(api().memory->create_pool(&config, &below, &pool)), PFRT_CODE_OUT_OF_MEMORY);
  EXPECT_EQ(nothing.released, 2) << "also when the call fails";
}

}  // namespace
}  // namespace pfrt_test
