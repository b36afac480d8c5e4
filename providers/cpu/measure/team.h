// SPDX-License-Identifier: Apache-2.0
//
// Threads that measure: each stays on a processor of its own, sleeps between tasks, and ends with
// the team. Used by one thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/base/status.h"

namespace pfrt::cpu {

// Lets threads wait for each other without sleeping, so that they go on at the same moment.
class Barrier {
 public:
  explicit Barrier(uint32_t width) : width_(width) {}
  void wait();

 private:
  const uint32_t width_;
  std::atomic<uint32_t> arrived_{0}, passed_{0};
};

class Team {
 public:
  // Starts a thread for each of |processors|, pinned where the system allows it.
  static Result<std::unique_ptr<Team>> make(std::span<const uint32_t> processors);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  uint32_t size() const { return static_cast<uint32_t>(threads_.size()); }
  bool pinned() const { return pinned_; }
  // Calls body(i) on thread i for every i < width; returns when all are done. |body| must not
  // throw.
  void run(uint32_t width, const std::function<void(uint32_t)>& body);

 private:
  Team() = default;
  void work(uint32_t index, uint32_t processor);
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable begins_, ends_;
  const std::function<void(uint32_t)>* body_ = nullptr;
  uint64_t task_ = 0;
  uint32_t width_ = 0, busy_ = 0;
  bool over_ = false;
  std::atomic<bool> pinned_{true};
};

}  // namespace pfrt::cpu
