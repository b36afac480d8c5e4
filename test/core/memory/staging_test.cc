// SPDX-License-Identifier: Apache-2.0
#include "core/memory/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace pfrt {
namespace {

constexpr uint64_t kLarge = uint64_t{20} << 20, kSmall = uint64_t{100} << 10;

Tensor deferred(uint64_t bytes, int mark) {
  const auto fill = [bytes, mark](void* out) {
    std::fill_n(static_cast<char*>(out), bytes, static_cast<char>(mark));
  };
  return Tensor::made_by(fill, PFRT_DTYPE_INT8, {static_cast<int64_t>(bytes)}, nullptr).take();
}

bool is_all(const Tensor& tensor, int mark) {
  const char* const at = tensor.as<const char>();
  return std::all_of(at, at + tensor.bytes(), [&](char c) { return c == static_cast<char>(mark); });
}

TEST(Staging, copies_of_a_turn_are_apart) {
  Staging staging;
  const Tensor first = deferred(kSmall, 1), second = deferred(kLarge, 2),
               third = deferred(70000, 3);
  const Tensor a = staging.readable(first).take(), b = staging.readable(second).take(),
               c = staging.readable(third).take();
  EXPECT_EQ(a.dims, first.dims);
  EXPECT_EQ(b.dtype, second.dtype);
  EXPECT_TRUE(is_all(a, 1));
  EXPECT_TRUE(is_all(b, 2));
  EXPECT_TRUE(is_all(c, 3));
  EXPECT_TRUE(first.deferred());
}

TEST(Staging, memory_is_used_again_and_grows) {
  Staging staging;
  const void* data = nullptr;
  for (const uint64_t bytes : {kSmall, 2 * kSmall, kSmall}) {
    staging.clear();
    const Tensor copy = staging.readable(deferred(bytes, 4)).take();
    EXPECT_TRUE(is_all(copy, 4));
    if (data != nullptr) {
      EXPECT_EQ(copy.data(), data);
    }
    data = copy.data();
  }
  staging.clear();
  EXPECT_TRUE(is_all(staging.readable(deferred(kLarge, 5)).take(), 5));
}

TEST(Staging, what_is_there_is_not_copied) {
  Staging staging;
  const Tensor tensor = Tensor::of_float({1, 2, 3}).take();
  EXPECT_EQ(staging.readable(tensor)->data(), tensor.data());
}

TEST(Staging, a_copy_that_failed_leaves_room_for_the_next) {
  Staging staging;
  bool fails = true;
  const auto fill = [&](void* out) {
    if (fails) throw std::bad_alloc();
    std::fill_n(static_cast<char*>(out), kSmall, char{6});
  };
  const Tensor tensor =
      Tensor::made_by(fill, PFRT_DTYPE_INT8, {static_cast<int64_t>(kSmall)}, nullptr).take();
  EXPECT_THROW((void)staging.readable(tensor), std::bad_alloc);
  fails = false;
  EXPECT_TRUE(is_all(staging.readable(tensor).take(), 6));
}

// Counts allocations, like an environment's own allocator.
class Counting final : public Allocator {
 public:
  explicit Counting(bool lasts) : lasts_(lasts) {}
  void* allocate(uint64_t bytes, uint64_t alignment) override {
    ++asked;
    return std::aligned_alloc(alignment, bytes);
  }
  void free(void* data, uint64_t) override { std::free(data); }
  bool lasting() const override { return lasts_; }
  int asked = 0;

 private:
  const bool lasts_;
};

TEST(Staging, memory_is_the_environments_unless_that_is_for_what_lasts) {
  for (const bool lasts : {false, true}) {
    const auto allocator = std::make_shared<Counting>(lasts);
    const Tensor tensor = deferred(kSmall, 7);
    {
      const MemoryScope scope({allocator, nullptr});
      Staging staging;
      EXPECT_TRUE(is_all(staging.readable(tensor).take(), 7));
    }
    EXPECT_EQ(allocator->asked, lasts ? 0 : 1);
  }
}

}  // namespace
}  // namespace pfrt
