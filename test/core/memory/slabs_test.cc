// SPDX-License-Identifier: Apache-2.0
#include "core/memory/slabs.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/base/os/pages.h"
#include "core/memory/tensor.h"

namespace pfrt {
namespace {

// Large pages may reach beyond the last byte, and are given back with the rest.
TEST(Pages, mappings_of_all_sizes_are_zero_and_go_as_a_whole) {
  constexpr uint64_t kPage = 4096, kLarge = 2u << 20;
  const std::pair<uint64_t, uint64_t> cases[] = {
      {1, kPage},
      {kLarge / 2 - kPage, kLarge / 2 - kPage},
      {kLarge / 2, kLarge},
      {kLarge - 1, kLarge},
      {kLarge, kLarge},
      {kLarge + 1, kLarge + kPage},
      {3 * kLarge / 2, 2 * kLarge},
      {4 * kLarge - 5, 4 * kLarge},
  };
  for (const auto& [bytes, mapped] : cases) {
    auto* const data = static_cast<char*>(os::map_memory(bytes));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(data[0] | data[bytes / 2] | data[bytes - 1], 0);
    std::memset(data, 1, bytes);
    os::unmap_memory(data, bytes);
    unsigned char resident = 0;
    for (uint64_t at = 0; at < mapped; at += kPage) {
      ASSERT_EQ(::mincore(data + at, kPage, &resident), -1) << bytes << " at " << at;
      ASSERT_EQ(errno, ENOMEM);
    }
  }
}

TEST(Slabs, blocks_of_all_sizes_keep_their_bytes) {
  Slabs slabs;
  std::mt19937 random(11);
  struct Block {
    char* data;
    uint64_t bytes;
    int mark;
  };
  std::vector<Block> blocks;
  const auto check = [](const Block& b) {
    for (uint64_t i = 0; i < b.bytes; i += 1021)
      if (b.data[i] != static_cast<char>(b.mark)) return false;
    return b.data[b.bytes - 1] == static_cast<char>(b.mark);
  };
  for (int i = 0; i < 600; ++i) {
    if (blocks.size() > 20 && random() % 2 == 0) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      ASSERT_TRUE(check(blocks.back())) << i;
      slabs.free(blocks.back().data, blocks.back().bytes);
      blocks.pop_back();
      continue;
    }
    const uint64_t most = i % 50 == 0 ? 40u << 20 : i % 3 == 0 ? 3u << 20 : 100u << 10;
    const uint64_t alignment = 64, bytes = (random() % most / alignment + 1) * alignment;
    auto* data = static_cast<char*>(slabs.allocate(bytes, alignment));
    ASSERT_NE(data, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % alignment, 0u);
    std::memset(data, i, static_cast<size_t>(bytes));
    blocks.push_back({data, bytes, i});
  }
  for (const Block& block : blocks) {
    EXPECT_TRUE(check(block));
    slabs.free(block.data, block.bytes);
  }
}

TEST(Slabs, what_no_machine_has_is_refused) {
  Slabs slabs;
  EXPECT_EQ(slabs.allocate(uint64_t{1} << 62, 64), nullptr);
  EXPECT_EQ(slabs.allocate((uint64_t{1} << 63) + 64, 64), nullptr);
  const auto own = std::make_shared<Slabs>();
  const MemoryScope scope({own, nullptr});
  EXPECT_EQ(Buffer::allocate(uint64_t{1} << 61).status().code(), Code::kOUT_OF_MEMORY);
}

TEST(Slabs, buffers_outlive_the_scope_they_were_made_in) {
  std::vector<std::shared_ptr<Buffer>> buffers;
  {
    const MemoryScope scope({std::make_shared<Slabs>(), nullptr});
    for (int i = 0; i < 12; ++i) {
      auto made = Buffer::allocate(2u << 20);
      ASSERT_TRUE(made.ok());
      buffers.push_back(made.take());
    }
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < buffers.size(); i += 4) {
        std::memset(buffers[i]->data(), 7, 2u << 20);
        buffers[i].reset();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pfrt
