// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/transpose.h"

#include <gtest/gtest.h>

#include <random>

#include "test/providers/cpu/graph.h"
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

// The sizes give squares and lines of vectors, and rests beside them. Buffers end at guard pages.
TEST(Transpose, bytes_are_turned_and_lines_copied) {
  std::mt19937 random(6);
  const auto up_to = [&](int64_t n) {
    return 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(n));
  };
  const std::vector<std::vector<int64_t>> orders{{0, 2, 1}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}};
  for (int trial = 0; trial < 120; ++trial) {
    const std::vector<int64_t>& order = orders[static_cast<size_t>(trial) % orders.size()];
    const Dims dims{up_to(5), up_to(trial % 3 == 0 ? 300 : 70), up_to(trial % 5 == 0 ? 300 : 70)};
    const int64_t steps[] = {dims[1] * dims[2], dims[2], 1};
    Data x{PFRT_DTYPE_UINT8, dims, {}};
    for (int64_t i = 0; i < dims[0] * steps[0]; ++i)
      x.values.push_back(static_cast<double>(random() % 256));
    const std::vector<double> source = x.values;
    Dims turned;
    for (const int64_t d : order) turned.push_back(dims[static_cast<size_t>(d)]);
    Graph g;
    const uint32_t y = g.add("Transpose", {g.add(std::move(x))}, turned, {{"perm", order}});
    g.values[y].dtype = PFRT_DTYPE_UINT8;
    g.outputs = {y};
    const GraphOutcome outcome = run(g, 2);
    ASSERT_EQ(outcome.fault, "");
    size_t at = 0;
    for (int64_t i = 0; i < turned[0]; ++i)
      for (int64_t j = 0; j < turned[1]; ++j)
        for (int64_t k = 0; k < turned[2]; ++k, ++at)
          ASSERT_EQ(static_cast<uint8_t>(outcome.outputs[0][at]),
                    source[static_cast<size_t>(i * steps[order[0]] + j * steps[order[1]] +
                                               k * steps[order[2]])])
              << dims[0] << "x" << dims[1] << "x" << dims[2] << " by " << order[0] << order[1];
  }
}

}  // namespace
}  // namespace pfrt::test
