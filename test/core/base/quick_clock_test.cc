// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/quick_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/base/os/cpu.h"

namespace pfrt::test {
namespace {

constexpr uint64_t kApart = 20'000;

// Expects a quick reading between two plain ones not to lie outside them, by more than kApart.
void expect_agreement(int readings) {
  for (int i = 0; i < readings; ++i) {
    const uint64_t before = os::monotonic_ns(), quick = os::quick_ns(), after = os::monotonic_ns();
    ASSERT_GE(quick + kApart, before);
    ASSERT_LE(quick, after + kApart);
  }
}

TEST(QuickClock, is_the_monotonic_clock) { expect_agreement(3'000'000); }

TEST(QuickClock, is_the_monotonic_clock_after_a_pause) {
  expect_agreement(1000);
  for (const int ms : {1, 5, 250}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    expect_agreement(1000);
  }
}

TEST(QuickClock, is_the_monotonic_clock_on_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([] { expect_agreement(500'000); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pfrt::test
