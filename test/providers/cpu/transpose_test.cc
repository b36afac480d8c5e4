// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/transpose.h"

#include <gtest/gtest.h>

#include <random>

#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

constexpr float kBefore = -1;

TEST(Transpose, rows_of_all_lengths_become_columns) {
  std::mt19937 random(5);
  const auto one_of = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(n));
  };
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t count = one_of(20), n = one_of(40), stride = n + one_of(3),
                  width = count + one_of(9);
    if (count == 0 || n == 0) continue;
    const auto placed = trial % 2 == 0 ? Placed::kAtEnd : Placed::kAtStart;
    Guarded from(static_cast<size_t>((count - 1) * stride + n) * sizeof(float), placed, 4);
    Guarded to(static_cast<size_t>((n - 1) * width + count) * sizeof(float), placed, 4);
    auto* const in = reinterpret_cast<float*>(from.data());
    auto* const out = reinterpret_cast<float*>(to.data());
    for (size_t i = 0; i < from.size() / sizeof(float); ++i) in[i] = static_cast<float>(i);
    for (size_t i = 0; i < to.size() / sizeof(float); ++i) out[i] = kBefore;
    from.make_read_only();
    cpu::transpose(in, stride, count, n, out, width);
    for (int64_t i = 0; i < static_cast<int64_t>(to.size() / sizeof(float)); ++i) {
      const int64_t k = i / width, j = i % width;
      ASSERT_EQ(out[i], j < count ? in[j * stride + k] : kBefore)
          << count << " rows of " << n << ", " << stride << " apart, to " << width;
    }
  }
}

}  // namespace
}  // namespace pfrt::test
