// SPDX-License-Identifier: Apache-2.0
#include "core/plan/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace pfrt {
namespace {

uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// The most bytes alive at one step; no placement needs less.
uint64_t lower_bound(const std::vector<BlockItem>& items, uint32_t steps) {
  uint64_t most = 0;
  for (uint32_t s = 0; s < steps; ++s) {
    uint64_t sum = 0;
    for (const BlockItem& i : items)
      if (i.first <= s && s <= i.last) sum += i.bytes;
    most = std::max(most, sum);
  }
  return most;
}

TEST(Blocks, that_live_together_do_not_overlap) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    constexpr uint32_t kSteps = 24;
    std::vector<BlockItem> items(1 + random() % 40);
    uint64_t sum = 0;
    for (BlockItem& i : items) {
      i.bytes = random() % 8 == 0 ? 0 : random() % 5000;
      i.first = static_cast<uint32_t>(random() % kSteps);
      i.last = std::min(kSteps - 1, i.first + static_cast<uint32_t>(random() % 6));
      sum += aligned(i.bytes);
    }
    const uint64_t bytes = place(items);
    EXPECT_GE(bytes, lower_bound(items, kSteps));
    EXPECT_LE(bytes, sum);
    for (size_t a = 0; a < items.size(); ++a) {
      EXPECT_EQ(items[a].offset % items[a].alignment, 0u);
      EXPECT_LE(items[a].offset + items[a].bytes, bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool together = items[a].first <= items[b].last && items[b].first <= items[a].last;
        const bool overlap = items[a].offset < items[b].offset + items[b].bytes &&
                             items[b].offset < items[a].offset + items[a].bytes;
        ASSERT_FALSE(together && overlap && items[a].bytes && items[b].bytes)
            << "round " << round << ": " << a << " and " << b;
      }
    }
  }
}

TEST(Blocks, of_a_chain_share_memory) {
  std::vector<BlockItem> items;
  for (uint32_t i = 0; i < 100; ++i) items.push_back({1024, 64, i, i + 1, 0});
  EXPECT_EQ(place(items), 2048u);
}

TEST(Blocks, none_need_no_memory) {
  std::vector<BlockItem> items;
  EXPECT_EQ(place(items), 0u);
}

TEST(Blocks, that_overflow_are_reported) {
  std::vector<BlockItem> items(3, {UINT64_MAX / 2, 64, 0, 0, 0});
  EXPECT_EQ(place(items), UINT64_MAX);
  items = {{UINT64_MAX - 8, 64, 0, 0, 0}, {64, 64, 0, 0, 0}};
  EXPECT_EQ(place(items), UINT64_MAX);
}

}  // namespace
}  // namespace pfrt
