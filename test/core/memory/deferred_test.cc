// SPDX-License-Identifier: Apache-2.0
//
// Tensors whose bytes are made at the first use.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "core/memory/tensor.h"

namespace pfrt {
namespace {

constexpr int64_t kCount = 40000;  // float32: more than is filled at once

struct Counted {
  std::atomic<int> fills{0};

  Result<Tensor> tensor(int64_t count = kCount) {
    const auto fill = [this, count](void* out) {
      ++fills;
      auto* const at = static_cast<float*>(out);
      std::iota(at, at + count, 1.0f);
    };
    return Tensor::made_by(fill, PFRT_DTYPE_FLOAT32, {count}, nullptr);
  }
};

bool counts_up(const float* at) {
  for (int64_t i = 0; i < kCount; ++i)
    if (at[i] != static_cast<float>(i + 1)) return false;
  return true;
}

TEST(Deferred, bytes_are_made_once_for_who_keeps_them) {
  Counted counted;
  const Tensor tensor = counted.tensor().take();
  EXPECT_TRUE(tensor.deferred());
  EXPECT_EQ(counted.fills, 0);
  const void* const identity = tensor.buffer->identity();
  std::vector<const void*> seen(8);
  std::vector<std::thread> threads;
  for (const void*& data : seen) threads.emplace_back([&] { data = tensor.data(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted.fills, 1);
  for (const void* data : seen) EXPECT_EQ(data, seen[0]);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(seen[0]) % 64, 0u);
  EXPECT_TRUE(counts_up(tensor.as<float>()));
  EXPECT_FALSE(tensor.deferred());
  EXPECT_EQ(tensor.buffer->identity(), identity);
}

TEST(Deferred, reading_leaves_bytes_deferred) {
  Counted counted;
  const Tensor tensor = counted.tensor().take();
  {
    const Tensor copy = tensor.readable().take();
    EXPECT_TRUE(counts_up(copy.as<float>()));
  }
  std::vector<float> own(kCount);
  tensor.copy_to(own.data());
  EXPECT_TRUE(counts_up(own.data()));
  EXPECT_TRUE(tensor.deferred());
  EXPECT_EQ(counted.fills, 2);
  const void* const data = tensor.data();
  EXPECT_EQ(tensor.readable()->data(), data);  // bytes that exist are not copied
  std::fill(own.begin(), own.end(), 0.0f);
  tensor.copy_to(own.data());
  EXPECT_TRUE(counts_up(own.data()));
  EXPECT_EQ(counted.fills, 3);
}

TEST(Deferred, made_bytes_lie_nowhere_else) {
  Counted counted;
  const Tensor tensor = counted.tensor().take();
  EXPECT_TRUE(counts_up(static_cast<const float*>(tensor.at_any_address())));
  EXPECT_FALSE(tensor.deferred());
}

TEST(Deferred, little_is_made_at_once) {
  Counted counted;
  const Tensor tensor = counted.tensor(16).take();
  EXPECT_FALSE(tensor.deferred());
  EXPECT_EQ(counted.fills, 1);
  EXPECT_EQ(tensor.as<float>()[15], 16.0f);
}

TEST(Deferred, part_of_a_buffer_is_a_view) {
  Counted counted;
  Tensor tensor = counted.tensor().take();
  tensor.dims = {2};
  tensor.offset = 4 * sizeof(float);
  EXPECT_FALSE(tensor.deferred());
  const Tensor same = tensor.readable().take();
  EXPECT_EQ(same.as<float>()[0], 5.0f);
  EXPECT_EQ(same.as<float>()[1], 6.0f);
}

TEST(Deferred, memory_at_odd_addresses_is_released_with_the_tensor) {
  std::vector<char> bytes(kCount * sizeof(float) + 1);
  std::vector<float> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  std::memcpy(bytes.data() + 1, numbers.data(), bytes.size() - 1);
  int released = 0;
  Tensor tensor;
  tensor.dtype = PFRT_DTYPE_FLOAT32;
  tensor.dims = {kCount};
  tensor.buffer = Buffer::unaligned(bytes.data() + 1, bytes.size() - 1, [&] { ++released; }).take();
  EXPECT_EQ(tensor.origin(), bytes.data() + 1);
  EXPECT_EQ(tensor.at_any_address(), bytes.data() + 1);
  EXPECT_TRUE(tensor.deferred());
  EXPECT_TRUE(counts_up(tensor.as<float>()));
  EXPECT_EQ(tensor.at_any_address(), tensor.data());
  EXPECT_EQ(tensor.origin(), bytes.data() + 1);
  EXPECT_EQ(released, 0);
  tensor = Tensor();
  EXPECT_EQ(released, 1);
}

TEST(Deferred, what_cannot_be_made_now_can_be_later) {
  int fills = 0;
  const Tensor tensor = Tensor::made_by(
                            [&](void* out) {
                              if (++fills < 3) throw std::bad_alloc();
                              std::memset(out, 7, kCount);
                            },
                            PFRT_DTYPE_INT8, {2 * kCount}, nullptr)
                            .take();
  EXPECT_THROW((void)tensor.data(), std::bad_alloc);
  EXPECT_THROW((void)tensor.readable(), std::bad_alloc);
  EXPECT_TRUE(tensor.deferred());
  EXPECT_EQ(tensor.as<int8_t>()[1], 7);
}

}  // namespace
}  // namespace pfrt
