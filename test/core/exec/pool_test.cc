// SPDX-License-Identifier: Apache-2.0
#include "core/exec/run/pool.h"

#include <dirent.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace pfrt {
namespace {

int threads_now() {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (folder && readdir(folder)) ++count;
  if (folder) closedir(folder);
  return count - 2;
}

// A thread that was joined is listed for a moment longer.
bool falls_to(int count) {
  for (int ms = 0; ms < 10'000 && threads_now() > count; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return threads_now() <= count;
}

struct Calls {
  explicit Calls(uint64_t n, uint32_t width) : of(n), busy(width) {}
  std::vector<std::atomic<int>> of, busy;
  std::atomic<int> wrong{0};
  static void body(void* arg, uint64_t i, uint32_t worker) {
    auto& self = *static_cast<Calls*>(arg);
    if (worker >= self.busy.size() || self.busy[worker].fetch_add(1) != 0) ++self.wrong;
    ++self.of[i];
    if (worker < self.busy.size()) self.busy[worker].fetch_sub(1);
  }
  bool right() const {
    for (const auto& c : of)
      if (c.load() != 1) return false;
    return wrong.load() == 0;
  }
};

TEST(Pool, calls_every_index_once_with_a_worker_of_its_own) {
  Pool pool;
  for (int round = 0; round < 20; ++round)
    for (const uint32_t width : {1u, 2u, 3u, 8u})
      for (const uint64_t n : {0u, 1u, 2u, 7u, 1000u}) {
        Calls calls(n, width);
        EXPECT_TRUE(pool.loop(width, n, &Calls::body, &calls));
        ASSERT_TRUE(calls.right()) << width << " " << n;
      }
}

// The two bodies wait for each other, so they must run at once, on two threads.
TEST(Pool, is_parallel) {
  Pool pool;
  struct Meeting {
    std::mutex mutex;
    std::condition_variable came;
    int there = 0;
  } meeting;
  pool.loop(
      2, 2,
      [](void* arg, uint64_t, uint32_t) {
        auto& m = *static_cast<Meeting*>(arg);
        std::unique_lock lock(m.mutex);
        ++m.there;
        m.came.notify_all();
        EXPECT_TRUE(m.came.wait_for(lock, std::chrono::seconds(60), [&] { return m.there == 2; }));
      },
      &meeting);
}

TEST(Pool, has_no_more_threads_than_its_widest_loop_needs) {
  std::thread([] {}).join();  // a sanitizer may start a thread of its own with the first
  const int before = threads_now();
  Pool pool;
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        Calls calls(100, 4);
        pool.loop(4, 100, &Calls::body, &calls);
        wrong += calls.right() ? 0 : 1;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_LE(threads_now(), before + 3);
}

// A source that can give |left| threads.
struct FewThreads {
  std::atomic<int> left, asked{0};
  ThreadSource source() {
    ThreadSource made = system_threads();
    made.start = [this, start = made.start](void (*main)(void*), void* arg, void** thread) {
      ++asked;
      return left.fetch_sub(1) > 0 && start(main, arg, thread);
    };
    return made;
  }
};

TEST(Pool, works_with_the_threads_there_are) {
  for (const int there_are : {0, 1, 2}) {
    FewThreads few{there_are};
    Pool pool(few.source());
    for (int round = 0; round < 20; ++round) {
      Calls calls(100, 8);
      EXPECT_TRUE(pool.loop(8, 100, &Calls::body, &calls));
      ASSERT_TRUE(calls.right()) << there_are;
    }
    EXPECT_LT(few.asked.load(), 20) << "asked for a thread in every loop";
  }
}

TEST(Pool, without_a_thread_refuses_a_task_and_takes_it_once_there_is_one) {
  FewThreads few{0};
  std::atomic<int> done{0};
  {
    Pool pool(few.source());
    const Task task = [](void* arg) { ++*static_cast<std::atomic<int>*>(arg); };
    EXPECT_EQ(pool.submit(task, &done).code(), Code::kOUT_OF_MEMORY);
    few.left = 1;
    EXPECT_TRUE(pool.submit(task, &done).ok());
  }
  EXPECT_EQ(done.load(), 1);
}

TEST(Pool, loops_may_stand_in_loops) {
  Pool pool;
  struct Nest {
    Pool& pool;
    std::atomic<int> calls{0};
  } nest{pool};
  pool.loop(
      3, 8,
      [](void* arg, uint64_t, uint32_t) {
        static_cast<Nest*>(arg)->pool.loop(
            3, 8, [](void* inner, uint64_t, uint32_t) { ++static_cast<Nest*>(inner)->calls; }, arg);
      },
      &nest);
  EXPECT_EQ(nest.calls.load(), 64);
}

TEST(Pool, runs_its_tasks_before_it_ends) {
  std::thread([] {}).join();  // a sanitizer may start a thread of its own with the first
  const int before = threads_now();
  std::atomic<int> done{0};
  {
    Pool pool;
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(
          pool.submit([](void* arg) { ++*static_cast<std::atomic<int>*>(arg); }, &done).ok());
    EXPECT_LE(threads_now(), before + 4);
  }
  EXPECT_EQ(done.load(), 100);
  EXPECT_TRUE(falls_to(before));
}

TEST(Pool, may_be_destroyed_by_a_task) {
  std::thread([] {}).join();  // a sanitizer may start a thread of its own with the first
  const int before = threads_now();
  for (int round = 0; round < 10; ++round) {
    auto* pool = new Pool;
    struct End {
      Pool* pool;
      std::atomic<bool> over{false};
    } end{pool};
    ASSERT_TRUE(pool->submit(
                        [](void* arg) {
                          auto& e = *static_cast<End*>(arg);
                          delete e.pool;
                          e.over = true;
                        },
                        &end)
                    .ok());
    while (!end.over) std::this_thread::yield();
  }
  join_leavers(10'000);
  EXPECT_TRUE(falls_to(before));
}

}  // namespace
}  // namespace pfrt
