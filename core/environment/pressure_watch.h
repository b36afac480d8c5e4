// SPDX-License-Identifier: Apache-2.0
//
// Finds whether memory is about to run out, by the memory that the system has available and the
// cgroups around the process still allow, and by their reports of time stalled for memory (PSI).
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace pfrt {

class PressureWatch {
 public:
  // |root| stands before every path that is read, for tests.
  explicit PressureWatch(std::string root) : root_(std::move(root)) {}

  // A sentence that says why memory is short; empty = it is not, or this was checked recently.
  std::string look();
  // Is called when there was nothing to give back: the next check comes later.
  void rest();

 private:
  const std::string root_;
  std::atomic<uint64_t> next_ns_{0};
};

}  // namespace pfrt
