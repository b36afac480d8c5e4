// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace pfrt {
namespace {

// What a log function is given as its user.
struct Taker {
  Logger* logger = nullptr;
  Taker* next = nullptr;  // takes the lines after this one's first
  std::atomic<int> lines{0};
  bool gone = false;  // is written when no call may be under way any more
};

Taker& taker(void* user) { return *static_cast<Taker*>(user); }

void count(void* user, pfrt_log_level, pfrt_string) {
  EXPECT_FALSE(taker(user).gone);
  ++taker(user).lines;
}

// Another thread learns of the call at its beginning.
void count_slowly(void* user, pfrt_log_level, pfrt_string) {
  ++taker(user).lines;
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  EXPECT_FALSE(taker(user).gone);
}

void hand_over(void* user, pfrt_log_level, pfrt_string) {
  Taker& self = taker(user);
  ++self.lines;
  self.logger->set_sink(&count, self.next);
}

void write_again(void* user, pfrt_log_level, pfrt_string) {
  Taker& self = taker(user);
  ++self.lines;
  self.logger->log(PFRT_LOG_ERROR, "from within");
}

TEST(Log, is_set_by_its_own_function) {
  Logger logger;
  Taker second;
  Taker first{&logger, &second};
  logger.set_sink(&hand_over, &first);
  for (int i = 0; i < 3; ++i) logger.log(PFRT_LOG_ERROR, "line");
  EXPECT_EQ(first.lines, 1);
  EXPECT_EQ(second.lines, 2);
}

TEST(Log, of_a_session_takes_the_lines_of_its_scope) {
  Logger logger, session(&logger), silent(&logger), other;
  Taker common, own;
  logger.set_sink(&count, &common);
  other.set_sink(&count, &common);
  session.set_sink(&count, &own);
  session.set_level(PFRT_LOG_DEBUG);
  session.log(PFRT_LOG_DEBUG, "line");
  EXPECT_EQ(own.lines, 1);
  {
    const Logger::Scope scope(&session);
    const Logger::Scope nothing(nullptr);
    logger.log(PFRT_LOG_DEBUG, "by the session's level");
    EXPECT_EQ(own.lines, 2);
    EXPECT_EQ(common.lines, 0);
    other.log(PFRT_LOG_ERROR, "no parent of the session's");
    EXPECT_EQ(common.lines, 1);
    std::thread([&] { logger.log(PFRT_LOG_ERROR, "no thread of the scope's"); }).join();
    EXPECT_EQ(common.lines, 2);
    {
      const Logger::Scope inner(&silent);
      logger.log(PFRT_LOG_ERROR, "a session without a function");
      EXPECT_EQ(common.lines, 3);
    }
    session.set_level(PFRT_LOG_ERROR);
    logger.log(PFRT_LOG_WARNING, "line");
    EXPECT_EQ(own.lines, 2);
  }
  logger.log(PFRT_LOG_DEBUG, "line");
  logger.log(PFRT_LOG_ERROR, "line");
  EXPECT_EQ(common.lines, 4);
  EXPECT_EQ(own.lines, 2);
}

TEST(Log, lines_of_a_log_function_go_to_stderr) {
  Logger logger, session(&logger);
  Taker self{&logger};
  logger.set_sink(&write_again, &self);
  testing::internal::CaptureStderr();
  session.log(PFRT_LOG_ERROR, "line");
  logger.log(PFRT_LOG_ERROR, "line");
  const std::string line = "pyflame_rt error: from within\n";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), line + line);
  EXPECT_EQ(self.lines, 2);
}

TEST(Log, an_exception_of_its_function_ends_the_call) {
  Logger logger;
  logger.set_sink([](void*, pfrt_log_level, pfrt_string) { throw 7; }, nullptr);
  logger.log(PFRT_LOG_ERROR, "line");
  Taker next;
  logger.set_sink(&count, &next);  // does not wait for the call that threw
  logger.log(PFRT_LOG_ERROR, "line");
  EXPECT_EQ(next.lines, 1);
}

TEST(Log, is_set_while_threads_write) {
  Logger logger;
  auto now = std::make_unique<Taker>();
  logger.set_sink(&count_slowly, now.get());
  std::atomic<bool> done{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t)
    writers.emplace_back([&] {
      while (!done) {
        logger.log(PFRT_LOG_ERROR, "line");
        std::this_thread::yield();
      }
    });
  int lines = 0;
  for (int i = 0; i < 50; ++i) {
    while (now->lines == 0) std::this_thread::yield();
    auto next = std::make_unique<Taker>();
    logger.set_sink(&count_slowly, next.get());
    now->gone = true;  // a race, were a call still under way
    lines += now->lines;
    now = std::move(next);
  }
  done = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_GE(lines, 50);
}

TEST(Log, is_set_by_functions_on_several_threads) {
  Logger logger;
  Taker last;
  Taker second{&logger, &last}, first{&logger, &second};
  logger.set_sink(
      [](void* user, pfrt_log_level, pfrt_string) {
        Taker& self = taker(user);
        ++self.lines;
        self.logger->set_sink(&hand_over, self.next);
      },
      &first);
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) logger.log(PFRT_LOG_ERROR, "line");
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(first.lines + second.lines + last.lines, 4000);
  EXPECT_GE(first.lines, 1);
  EXPECT_GE(second.lines, 1);
}

}  // namespace
}  // namespace pfrt
