// SPDX-License-Identifier: Apache-2.0
#include "core/exec/run/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace pfrt {
namespace {

struct Loop {
  explicit Loop(uint64_t n, uint32_t width) : calls(n), busy(width) {}
  std::vector<std::atomic<int>> calls;
  std::vector<std::atomic<int>> busy;  // by worker; never two calls at once
  std::atomic<int> wrong{0};

  static void body(void* arg, uint64_t i, uint32_t worker) {
    auto& loop = *static_cast<Loop*>(arg);
    if (worker >= loop.busy.size() || loop.busy[worker].fetch_add(1) != 0) ++loop.wrong;
    ++loop.calls[i];
    if (worker < loop.busy.size()) loop.busy[worker].fetch_sub(1);
  }
};

TEST(ParallelFor, calls_every_index_once_with_a_worker_of_its_own) {
  for (const uint32_t width : {1u, 2u, 3u, 8u}) {
    for (const uint64_t n : {0u, 1u, 2u, 7u, 1000u}) {
      Loop loop(n, width);
      parallel_for(width, n, &Loop::body, &loop);
      EXPECT_EQ(loop.wrong.load(), 0) << width << " " << n;
      for (const auto& c : loop.calls) ASSERT_EQ(c.load(), 1);
    }
  }
}

TEST(ParallelFor, sees_what_the_caller_wrote_and_the_caller_what_it_writes) {
  struct Sums {
    std::vector<uint64_t> in, out;
  } sums{std::vector<uint64_t>(512), std::vector<uint64_t>(512)};
  for (uint64_t round = 1; round <= 50; ++round) {
    for (uint64_t& v : sums.in) v = round;
    parallel_for(
        4, 512,
        [](void* arg, uint64_t i, uint32_t) {
          auto& s = *static_cast<Sums*>(arg);
          s.out[i] = s.in[i] + i;
        },
        &sums);
    for (uint64_t i = 0; i < 512; ++i) ASSERT_EQ(sums.out[i], round + i);
  }
}

TEST(ParallelFor, serves_several_callers_at_once) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&wrong, t] {
      for (int round = 0; round < 20; ++round) {
        Loop loop(200, static_cast<uint32_t>(2 + t % 2));
        parallel_for(static_cast<uint32_t>(2 + t % 2), 200, &Loop::body, &loop);
        wrong += loop.wrong.load();
        for (const auto& c : loop.calls) wrong += c.load() != 1;
      }
    });
  for (std::thread& c : callers) c.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ParallelFor, may_stand_in_another_loop) {
  std::atomic<int> calls{0};
  parallel_for(
      3, 8,
      [](void* arg, uint64_t, uint32_t) {
        parallel_for(
            2, 8, [](void* inner, uint64_t, uint32_t) { ++*static_cast<std::atomic<int>*>(inner); },
            arg);
      },
      &calls);
  EXPECT_EQ(calls.load(), 64);
}

TEST(ParallelFor, starts_anew_after_its_threads_were_released) {
  for (int round = 0; round < 3; ++round) {
    retain_threads();
    Loop loop(100, 4);
    parallel_for(4, 100, &Loop::body, &loop);
    EXPECT_EQ(loop.wrong.load(), 0);
    release_threads();
  }
}

#if defined(PFRT_SANITIZE_THREAD)
// ThreadSanitizer sees the accesses of loop bodies: it reports a planted race between two of them,
// and ends the process with its own code.
TEST(RaceDeathTest, between_bodies_is_reported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        struct Shared {
          std::atomic<int> there{0};
          // ThreadSanitizer remembers four accesses to each 8 bytes; |there| must not use them up.
          alignas(64) int racy = 0;
        } shared;
        parallel_for(
            2, 2,
            [](void* arg, uint64_t, uint32_t) {
              auto& s = *static_cast<Shared*>(arg);
              s.there.fetch_add(1, std::memory_order_relaxed);
              while (s.there.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
              for (int i = 0; i < 1000; ++i) ++s.racy;
            },
            &shared);
        std::exit(0);
      },
      testing::ExitedWithCode(66), "data race");
}
#endif

}  // namespace
}  // namespace pfrt
