// SPDX-License-Identifier: Apache-2.0
//
// The threads of an object that serves requests. The object may be ended by one of them, from
// within a request's callback: they then leave on their own, and the last one deletes it.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/base/status.h"
#include "core/exec/run/pool.h"
#include "core/session/session.h"

namespace pfrt {

class Crew {
 public:
  // |most| threads, made as those of the runs of |session| are.
  Crew(uint32_t most, const Session& session);
  // Nobody serves any more, or the calling thread is the last one to.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Whether this process has the threads: a forked child has not.
  bool is_here() const;
  // Whether the calling thread is one of them.
  bool has_caller() const;
  // Calls serve(index) on |count| threads of its own, until it returns there. |left| is called by
  // the last of them to leave. The result is how many there are, the first indices: fewer where
  // memory does not suffice. BUSY where there is none. The crew of before has left.
  Result<uint32_t> start(std::string_view doing, uint32_t count,
                         std::function<void(uint32_t index)> serve, std::function<void()> left);
  // Waits until all have left; returns at once on one of them.
  void wait_until_left();
  // Gives |owner|, which owns this crew, to the last thread to leave, which lets go of it.
  void own(std::shared_ptr<void> owner);

 private:
  struct Seat {
    Crew* crew;
    uint32_t index;
  };
  static void serve(void* seat);

  const uint32_t generation_;
  Pool pool_;
  mutable std::mutex mutex_;
  std::condition_variable all_left_;
  uint32_t serving_ = 0;
  std::function<void(uint32_t)> serve_;
  std::function<void()> left_;
  std::shared_ptr<void> owner_;
};

}  // namespace pfrt
