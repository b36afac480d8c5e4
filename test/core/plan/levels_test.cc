// SPDX-License-Identifier: Apache-2.0
#include "core/plan/levels.h"

#include <gtest/gtest.h>

namespace pfrt {
namespace {

using Levels = std::vector<uint32_t>;

TEST(StepLevels, steps_wait_for_what_they_read) {
  EXPECT_EQ(levels({}), Levels{});
  EXPECT_EQ(levels({{{0}, {1}}, {{0}, {2}}, {{1, 2}, {3}}, {{0}, {4}}}), (Levels{0, 0, 1, 0}));
  EXPECT_EQ(levels({{{}, {1}}, {{1}, {2}}, {{2}, {3}}, {{1}, {4}}}), (Levels{0, 1, 2, 1}));
}

TEST(StepLevels, writers_wait_for_readers_and_writers) {
  // The second writer of buffer 1 comes after the reader of the first writer's contents.
  EXPECT_EQ(levels({{{}, {1}}, {{1}, {2}}, {{}, {1}}, {{1}, {3}}}), (Levels{0, 1, 2, 3}));
  EXPECT_EQ(levels({{{}, {1}}, {{}, {1}}}), (Levels{0, 1}));
  EXPECT_EQ(levels({{{1}, {1}}, {{1}, {1}}}), (Levels{0, 1}));
}

}  // namespace
}  // namespace pfrt
