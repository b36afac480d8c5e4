// SPDX-License-Identifier: Apache-2.0
//
// Sorting that a stopped run leaves early. The standard's algorithms have no other way out than an
// exception from the comparison; it does not leave this header.
#pragma once

#include <cstdint>

#include "providers/cpu/kernel/run.h"

namespace pfrt::cpu {

// Calls work(compare), where compare is |less| with a look at the run now and then. False when the
// run was stopped: the order is then anything.
template <typename Less, typename Work>
bool sort_unless_stopped(const Run& run, const Less& less, Work&& work) {
  struct Stopped {};
  constexpr uint64_t kBetween = 1 << 14;
  uint64_t calls = 0;
  try {
    work([&](const auto& a, const auto& b) {
      if (++calls % kBetween == 0 && run.stopped()) throw Stopped{};
      return less(a, b);
    });
    return true;
  } catch (const Stopped&) {
    return false;
  }
}

}  // namespace pfrt::cpu
