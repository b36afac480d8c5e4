// SPDX-License-Identifier: Apache-2.0
#include "core/base/made_once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace pfrt {
namespace {

using Values = MadeOnce<std::vector<int64_t>, std::shared_ptr<int>>;
const std::vector<int64_t> kOne = {1}, kTwo = {2}, kThree = {3};

Status goes_on() { return {}; }

// Returns the value of |key|; |made| counts how often it had to be made.
int value_of(Values& values, const std::vector<int64_t>& key, int* made = nullptr) {
  auto got = values.get(key, goes_on, [&]() -> Result<std::shared_ptr<int>> {
    if (made) ++*made;
    return std::make_shared<int>(static_cast<int>(key[0]) * 10);
  });
  return got.ok() ? **got : -1;
}

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

TEST(MadeOnce, makes_each_value_once) {
  Values values(2);
  int made = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(value_of(values, kOne, &made), 10);
    EXPECT_EQ(value_of(values, kTwo, &made), 20);
  }
  EXPECT_EQ(made, 2);
  EXPECT_EQ(*values.recent(), 20);
}

TEST(MadeOnce, finds_what_is_made) {
  Values values(2);
  EXPECT_EQ(values.find(kOne), nullptr);
  value_of(values, kOne);
  value_of(values, kTwo);
  ASSERT_NE(values.find(kOne), nullptr);
  EXPECT_EQ(*values.find(kOne), 10);
  value_of(values, kThree);  // pushes out kTwo, which was used less recently
  EXPECT_EQ(values.find(kTwo), nullptr);
  EXPECT_NE(values.find(kOne), nullptr);
}

TEST(MadeOnce, lets_the_least_recently_used_go) {
  Values values(2);
  int made = 0;
  value_of(values, kOne, &made);
  value_of(values, kTwo, &made);
  value_of(values, kOne, &made);
  EXPECT_EQ(values.dropped(), 0u);
  value_of(values, kThree, &made);
  EXPECT_EQ(values.dropped(), 1u);
  value_of(values, kOne, &made);
  EXPECT_EQ(made, 3);
  value_of(values, kTwo, &made);
  EXPECT_EQ(made, 4);
  values.clear();
  EXPECT_EQ(values.recent(), nullptr);
}

TEST(MadeOnce, hands_a_failure_on_and_tries_again) {
  Values values(2);
  const auto failed = values.get(
      kOne, goes_on, []() -> Result<std::shared_ptr<int>> { return error(Code::kIO, "no"); });
  EXPECT_EQ(failed.status().code(), Code::kIO);
  EXPECT_EQ(values.recent(), nullptr);
  EXPECT_EQ(value_of(values, kOne), 10);
}

TEST(MadeOnce, of_many_threads_one_makes_it) {
  Values values(4);
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const std::vector<int64_t> key = {i % 2};
      const auto got = values.get(key, goes_on, [&]() -> Result<std::shared_ptr<int>> {
        ++made;
        nap();
        return std::make_shared<int>(i % 2);
      });
      EXPECT_EQ(*got.value(), i % 2);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(made, 2);
}

TEST(MadeOnce, waiting_for_one_ends_when_it_is_told_to_and_holds_up_no_other) {
  Values values(4);
  value_of(values, kTwo);
  std::atomic<bool> begun{false}, go_on{false};
  std::thread slow([&] {
    const auto got = values.get(kOne, goes_on, [&]() -> Result<std::shared_ptr<int>> {
      begun = true;
      while (!go_on) nap();
      return std::make_shared<int>(7);
    });
    EXPECT_EQ(*got.value(), 7);
  });
  while (!begun) nap();
  EXPECT_EQ(value_of(values, kTwo), 20);
  EXPECT_EQ(value_of(values, kThree), 30);
  const auto stopped = values.get(
      kOne, [] { return error(Code::kDEADLINE, "over"); },
      []() -> Result<std::shared_ptr<int>> { return std::make_shared<int>(8); });
  EXPECT_EQ(stopped.status().code(), Code::kDEADLINE);
  values.clear();  // its maker still gets the value
  go_on = true;
  slow.join();
}

}  // namespace
}  // namespace pfrt
