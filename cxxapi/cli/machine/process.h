// SPDX-License-Identifier: Apache-2.0
//
// Work in a forked child, so that a crash or a hang stays there. Fork from one thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace cli {

struct ChildResult {
  bool ok = false;  // the work returned
  bool timed_out = false;
  std::string output;  // what the work returned
  std::string reason;  // when not ok: the exception's text, the signal, or the timeout
};

// Forks, runs |work| there, and waits for it at most |timeout|. The child is killed when it takes
// longer or when this process dies.
ChildResult run_in_child(const std::function<std::string()>& work,
                         std::chrono::milliseconds timeout);

// Peak resident memory of this process in bytes (VmHWM); 0 when it cannot be read.
uint64_t peak_memory();

}  // namespace cli
