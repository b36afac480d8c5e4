// SPDX-License-Identifier: Apache-2.0
//
// Constants that steps read unaligned, in place in a file.
#include <gtest/gtest.h>

#include <cstring>

#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

constexpr int64_t kRows = 40, kWidth = 33, kTaken = 3;

class Unaligned : public testing::Test {
 protected:
  void SetUp() override {
    Random random(3);
    Data table = random.data(PFRT_DTYPE_FLOAT32, {kRows, kWidth});
    table.constant = true;
    table_ = graph_.add(table);
    rows_ = graph_.add(Data{PFRT_DTYPE_INT64, {kTaken}, {7, -1, 39}});
    gathered_ = graph_.add("Gather", {table_, rows_}, {kTaken, kWidth}, {{"axis", int64_t{0}}});
    graph_.outputs = {gathered_};
  }
  // Expects |bytes| to be the gathered rows.
  void check(const std::vector<char>& bytes) const {
    ASSERT_EQ(bytes.size(), kTaken * kWidth * sizeof(float));
    const int64_t taken[] = {7, 39, 39};
    for (int64_t i = 0; i < kTaken * kWidth; ++i) {
      float got;
      std::memcpy(&got, bytes.data() + i * static_cast<int64_t>(sizeof got), sizeof got);
      const auto at = static_cast<size_t>(taken[i / kWidth] * kWidth + i % kWidth);
      EXPECT_EQ(got, static_cast<float>(graph_.values[table_].values[at]));
    }
  }
  Graph graph_;
  uint32_t table_ = 0, rows_ = 0, gathered_ = 0;
};

TEST_F(Unaligned, rows_are_gathered_from_where_the_table_lies) {
  const GraphOutcome outcome = run(graph_);
  ASSERT_EQ(outcome.fault, "");
  EXPECT_EQ(outcome.unaligned, 1u);
  check(outcome.outputs[0]);
}

TEST_F(Unaligned, other_readers_of_the_table_have_it_aligned) {
  graph_.outputs.push_back(graph_.add("Softmax", {table_}, {kRows, kWidth}));
  const GraphOutcome outcome = run(graph_);
  ASSERT_EQ(outcome.fault, "");
  EXPECT_EQ(outcome.unaligned, 0u);
  check(outcome.outputs[0]);
}

TEST_F(Unaligned, a_sub_buffer_of_the_table_is_aligned) {
  const uint32_t row = graph_.add(Data{PFRT_DTYPE_INT64, {1}, {4}, true});
  const uint32_t part = graph_.add("Gather", {table_, row}, {1, kWidth}, {{"axis", int64_t{0}}});
  graph_.outputs.push_back(graph_.add("Softmax", {part}, {1, kWidth}));
  const GraphOutcome outcome = run(graph_);
  ASSERT_EQ(outcome.fault, "");
  EXPECT_EQ(outcome.unaligned, 0u);
  check(outcome.outputs[0]);
}

}  // namespace
}  // namespace pfrt::test
