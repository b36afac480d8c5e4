// SPDX-License-Identifier: Apache-2.0
#include "core/exec/block_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/os/cpu.h"
#include "core/environment/maintenance.h"

namespace pfrt {
namespace {

TEST(BlockPool, frees_what_was_given_before_a_time) {
  BlockPool pool;
  const uint64_t before = os::recent_ns();
  auto first = pool.take(1000), second = pool.take(2000), third = pool.take(3000);
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  pool.give(first.take(), 1000);
  pool.give(second.take(), 2000);
  EXPECT_EQ(pool.trim(before), 0u) << "they were given afterwards";
  EXPECT_EQ(pool.usage().idle, 3000u);
  uint64_t after = before;
  while (after <= before || os::recent_ns() == after) after = os::recent_ns();
  while (os::recent_ns() == after) std::this_thread::yield();
  pool.give(third.take(), 3000);
  EXPECT_EQ(pool.trim(after + 1), 3000u);
  EXPECT_EQ(pool.usage().idle, 3000u) << "the last one";
  auto again = pool.take(2500);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value()->buffer->bytes(), 3000u);
  pool.give(again.take(), 2500, false);
  EXPECT_EQ(pool.usage().idle, 0u) << "it was not to be kept";
  EXPECT_EQ(pool.usage().in_use, 0u);
}

TEST(Keeper, tends_until_it_goes) {
  std::atomic<int> calls{0};
  {
    Keeper keeper([&] { ++calls; });
    EXPECT_TRUE(keeper.start());
    EXPECT_TRUE(keeper.start());
    while (calls.load() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const int last = calls.load();
  Keeper idle([&] { ++calls; });
  EXPECT_EQ(calls.load(), last);
}

}  // namespace
}  // namespace pfrt
