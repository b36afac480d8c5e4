// SPDX-License-Identifier: Apache-2.0
#include "core/exec/host/prepared.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace pfrt::host {
namespace {

using Table = std::vector<int>;
using Made = Result<std::shared_ptr<const Table>>;

Made table(int number) { return std::make_shared<const Table>(3, number); }

TEST(Prepared, is_made_once_for_all_runs) {
  Prepared prepared;
  RunControl control;
  std::atomic<int> made{0};
  std::atomic<const Table*> first{nullptr};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const Made got = prepared.get<Table>(control, [&] { return table(++made); });
        ASSERT_TRUE(got.ok());
        const Table* expected = nullptr;
        if (!first.compare_exchange_strong(expected, got.value().get())) {
          EXPECT_EQ(expected, got.value().get());
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

TEST(Prepared, that_fails_leaves_nothing) {
  Prepared prepared;
  RunControl control;
  const auto fails = [&](Code code) {
    const Made got =
        prepared.get<Table>(control, [&]() -> Made { return error(code, "the words are gone"); });
    EXPECT_EQ(got.status().code(), code);
  };
  fails(Code::kINVALID_MODEL);
  fails(Code::kDEADLINE);
  EXPECT_THROW((void)prepared.get<Table>(control, [&]() -> Made { throw std::bad_alloc(); }),
               std::bad_alloc);
  const Made got = prepared.get<Table>(control, [&] { return table(7); });
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value()->front(), 7);
}

TEST(Prepared, lives_as_long_as_who_uses_it) {
  RunControl control;
  std::shared_ptr<const Table> kept;
  {
    Prepared prepared;
    Made got = prepared.get<Table>(control, [&] { return table(5); });
    ASSERT_TRUE(got.ok());
    kept = got.take();
    EXPECT_GT(kept.use_count(), 1);
  }
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(kept->back(), 5);
}

}  // namespace
}  // namespace pfrt::host
