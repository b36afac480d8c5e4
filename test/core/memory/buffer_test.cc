// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a buffer, wherever they lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/memory/tensor.h"

namespace pfrt {
namespace {

TEST(Buffers, of_any_size_are_aligned_zeroed_and_apart) {
  std::vector<std::shared_ptr<Buffer>> all;
  for (uint64_t bytes = 0; bytes < 1500; ++bytes) {
    auto made = Buffer::allocate(bytes);
    ASSERT_TRUE(made.ok());
    all.push_back(made.take());
    auto* const data = static_cast<uint8_t*>(all.back()->data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    EXPECT_EQ(all.back()->bytes(), bytes);
    EXPECT_TRUE(all.back()->owned());
    EXPECT_EQ(std::count(data, data + bytes, 0), static_cast<int64_t>(bytes));
    std::fill_n(data, bytes, static_cast<uint8_t>(bytes % 251 + 1));
  }
  for (const auto& buffer : all) {
    const auto* const data = static_cast<const uint8_t*>(buffer->data());
    const auto value = static_cast<uint8_t>(buffer->bytes() % 251 + 1);
    EXPECT_EQ(std::count(data, data + buffer->bytes(), value),
              static_cast<int64_t>(buffer->bytes()));
  }
}

TEST(Buffers, of_a_scope_come_from_its_allocator) {
  struct Counting final : Allocator {
    int64_t alive = 0;
    void* allocate(uint64_t bytes, uint64_t alignment) override {
      ++alive;
      return std::aligned_alloc(alignment, bytes);
    }
    void free(void* data, uint64_t) override {
      --alive;
      std::free(data);
    }
  };
  const auto counting = std::make_shared<Counting>();
  {
    const MemoryScope scope({counting, nullptr});
    const auto small = Buffer::allocate(8), large = Buffer::allocate(4096);
    ASSERT_TRUE(small.ok() && large.ok());
    EXPECT_EQ(counting->alive, 2);
  }
  EXPECT_EQ(counting->alive, 0);
}

TEST(Buffers, keep_the_texts_they_are_given) {
  constexpr uint64_t kCount = 3000;
  auto made = Buffer::strings(kCount);
  ASSERT_TRUE(made.ok());
  Buffer& buffer = **made;
  const auto* elements = static_cast<const pfrt_string*>(buffer.data());
  const auto text = [](uint64_t i, uint64_t turn) {
    return std::string((i * 37 + turn * 101) % 2000, static_cast<char>('a' + (i + turn) % 26));
  };
  // A string that is set anew, longer or shorter, moves no other, and a NUL follows each.
  for (uint64_t turn = 0; turn < 3; ++turn)
    for (uint64_t i = turn; i < kCount; i += turn + 1)
      ASSERT_TRUE(buffer.set_string(i, text(i, turn)).ok());
  for (uint64_t i = 0; i < kCount; ++i) {
    uint64_t turn = 2;
    while (i < turn || (i - turn) % (turn + 1) != 0) --turn;
    ASSERT_EQ(std::string_view(elements[i].data, elements[i].size), text(i, turn)) << i;
    ASSERT_EQ(elements[i].data[elements[i].size], 0);
  }
  ASSERT_TRUE(buffer.set_string(0, std::string(5 << 20, 'x')).ok());
  EXPECT_EQ(elements[0].size, size_t{5} << 20);
  EXPECT_FALSE(buffer.set_string(kCount, "x").ok());
}

TEST(Buffers, sizes_beyond_62_bits_are_no_sizes) {
  constexpr int64_t kLargest = int64_t{1} << 62;
  const int64_t at_limit[] = {int64_t{1} << 31, int64_t{1} << 31};
  const int64_t beyond[] = {int64_t{1} << 31, (int64_t{1} << 31) + 1};
  const int64_t wraps[] = {int64_t{1} << 62, 4, 3}, empty[] = {0, INT64_MAX};
  const int64_t empty_beyond[] = {0, INT64_MAX, 2};
  EXPECT_EQ(element_count(at_limit, 2), kLargest);
  EXPECT_EQ(element_count(beyond, 2), -1);
  EXPECT_EQ(element_count(wraps, 3), -1);
  EXPECT_EQ(element_count(empty, 2), -1);
  EXPECT_EQ(element_count(empty_beyond, 3), -1);
  EXPECT_EQ(tensor_bytes(PFRT_DTYPE_FLOAT32, kLargest / 32), uint64_t{1} << 59);
  EXPECT_EQ(tensor_bytes(PFRT_DTYPE_FLOAT32, kLargest / 32 + 1), UINT64_MAX);
  EXPECT_EQ(tensor_bytes(PFRT_DTYPE_UINT8, kLargest), UINT64_MAX);
}

}  // namespace
}  // namespace pfrt
