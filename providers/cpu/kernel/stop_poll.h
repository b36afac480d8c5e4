// SPDX-License-Identifier: Apache-2.0
//
// Lets long loops ask whether the run is to stop, after every so much work, counted in
// multiply-adds, elements or anything else that takes about a nanosecond. Each worker has a Pace of
// its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "providers/cpu/kernel/run.h"

namespace pfrt::cpu {

class Pace {
 public:
  Pace() = default;  // of what nobody stops
  explicit Pace(const Run& run) : run_(&run) {}
  // Whether the run is to stop, before |work| more.
  bool stopped(int64_t work) {
    left_ -= work;
    if (left_ > 0) return false;
    if (run_ != nullptr && run_->stopped()) return true;  // and so at the next look, whenever it is
    left_ = kWork;
    return false;
  }

 private:
  static constexpr int64_t kWork = 1 << 18;
  const Run* run_ = nullptr;
  int64_t left_ = kWork;
};

// Calls fn(begin, end) for chunks of [0, n), until the run is to stop. A range shorter than a chunk
// is done whole.
template <typename Fn>
void in_chunks(Pace& pace, int64_t n, Fn&& fn) {
  constexpr int64_t kPaceChunk = 1 << 18;
  for (int64_t begin = 0; begin < n; begin += kPaceChunk) {
    const int64_t end = std::min(n, begin + kPaceChunk);
    if (pace.stopped(end - begin)) return;
    fn(begin, end);
  }
}

}  // namespace pfrt::cpu
