// SPDX-License-Identifier: Apache-2.0
//
// Turns: those who share stand together, those who do not stand alone, and nobody overtakes.
#include "core/session/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace pfrt {
namespace {

constexpr Turns::Use kAlone = Turns::Use::kAlone, kShared = Turns::Use::kShared;

// Each question is a thread's of its own, which stays: its number could come again.
class Askers {
 public:
  ~Askers() {
    over_.set_value();
    for (std::thread& thread : threads_) thread.join();
  }
  Code operator()(Turns& turns, const Turns::Place& place) {
    std::promise<Code> heard;
    std::future<Code> code = heard.get_future();
    threads_.emplace_back([&turns, &place, over = stay_, heard = std::move(heard)]() mutable {
      const Stop at_once = [] { return error(Code::kCANCELLED, "it has not come"); };
      heard.set_value(turns.wait(place, at_once, "asking").code());
      over.wait();
    });
    return code.get();
  }

 private:
  std::promise<void> over_;
  const std::shared_future<void> stay_ = over_.get_future().share();
  std::vector<std::thread> threads_;
};

TEST(Turns, are_shared_by_those_who_follow_each_other) {
  Turns turns;
  Askers asked;
  EXPECT_TRUE(turns.empty());
  auto first = turns.join(kShared), second = turns.join(kShared), writer = turns.join(kAlone),
       third = turns.join(kShared), last = turns.join(kAlone);
  EXPECT_EQ(asked(turns, first), Code::kOK);
  EXPECT_EQ(asked(turns, second), Code::kOK);
  EXPECT_EQ(asked(turns, writer), Code::kCANCELLED);
  EXPECT_EQ(asked(turns, third), Code::kCANCELLED) << "nobody overtakes one who waits";
  first.leave();
  EXPECT_EQ(asked(turns, writer), Code::kCANCELLED) << "the second has not left";
  second.leave();
  EXPECT_EQ(asked(turns, writer), Code::kOK);
  EXPECT_EQ(asked(turns, third), Code::kCANCELLED);
  writer.leave();
  EXPECT_EQ(asked(turns, third), Code::kOK);
  EXPECT_EQ(asked(turns, last), Code::kCANCELLED);
  third.leave();
  EXPECT_EQ(asked(turns, last), Code::kOK);
  EXPECT_TRUE(turns.wanted_alone());
  last.leave();
  EXPECT_TRUE(turns.empty());
}

TEST(Turns, come_when_one_who_waits_leaves) {
  Turns turns;
  Askers asked;
  auto reader = turns.join(kShared), writer = turns.join(kAlone), other = turns.join(kShared);
  EXPECT_TRUE(turns.wanted_alone());
  EXPECT_EQ(asked(turns, other), Code::kCANCELLED);
  writer.leave();
  EXPECT_FALSE(turns.wanted_alone());
  EXPECT_EQ(asked(turns, other), Code::kOK);
}

TEST(Turns, are_called_when_they_come) {
  Turns turns;
  std::vector<int> called;
  std::optional<Turns::Place> writer = turns.join(kAlone);
  auto first = turns.join(kShared), second = turns.join(kShared), next = turns.join(kAlone);
  EXPECT_FALSE(turns.call_later(*writer, [&] { called.push_back(0); })) << "it has come";
  EXPECT_TRUE(turns.call_later(next, [&] { called.push_back(3); }));
  EXPECT_TRUE(turns.call_later(second, [&] { called.push_back(2); }));
  EXPECT_TRUE(turns.call_later(first, [&] {
    called.push_back(1);
    first.leave();
  }));
  EXPECT_EQ(called, std::vector<int>());
  writer = std::nullopt;
  EXPECT_EQ(called, (std::vector<int>{1, 2})) << "both, and in their order";
  second.leave();
  EXPECT_EQ(called, (std::vector<int>{1, 2, 3}));
}

// The last one called may end what the row belongs to.
TEST(Turns, may_end_with_the_last_who_is_called) {
  auto turns = std::make_unique<Turns>();
  auto writer = turns->join(kAlone);
  std::vector<Turns::Place> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(turns->join(kShared));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(turns->call_later(readers[i], [&, i] {
      readers[i].leave();
      if (i == 2) turns = nullptr;
    }));
  writer.leave();
  EXPECT_EQ(turns, nullptr);
}

TEST(Turns, are_busy_where_a_thread_waits_for_itself) {
  Turns turns;
  Askers asked;
  auto reader = turns.join(kShared);
  ASSERT_TRUE(turns.wait(reader, {}, "reading").ok());
  auto within = turns.join(kShared);
  EXPECT_TRUE(turns.wait(within, {}, "reading within").ok()) << "they share it";
  auto writer = turns.join(kAlone);
  EXPECT_EQ(turns.wait(writer, {}, "writing within").code(), Code::kBUSY);
  EXPECT_EQ(asked(turns, writer), Code::kCANCELLED) << "another thread could wait";
  auto behind = turns.join(kShared);
  EXPECT_EQ(turns.wait(behind, {}, "reading").code(), Code::kBUSY)
      << "the writer waits for this thread too";
}

TEST(Turns, threads_stand_alone_or_together) {
  constexpr int kThreads = 4, kRounds = 300;
  Turns turns;
  std::atomic<int> readers{0}, faults{0};
  int written = 0;  // by one thread at a time
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const bool writes = (i + t) % 3 == 0;
        auto place = turns.join(writes ? kAlone : kShared);
        if (!turns
                 .wait(
                     place, [] { return Status(); }, "waiting")
                 .ok())
          ++faults;
        if (writes) {
          if (readers != 0) ++faults;
          ++written;
        } else {
          ++readers;
          if (written > kThreads * kRounds) ++faults;
          --readers;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(written, kThreads * kRounds / 3);
}

}  // namespace
}  // namespace pfrt
