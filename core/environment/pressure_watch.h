// SPDX-License-Identifier: Apache-2.0
//
// Whether memory is about to run out: what the system has available and the cgroups around the
// process still allow, and what the system and these say of what stalls for memory (PSI).
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

  // Why memory is short, as a sentence; empty = it is not, or was looked at lately.
  std::string look();
  // There was nothing to give back: it is not worth while to look again soon.
  void rest();

 private:
  const std::string root_;
  std::atomic<uint64_t> next_ns_{0};
};

}  // namespace pfrt
