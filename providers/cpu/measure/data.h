// SPDX-License-Identifier: Apache-2.0
//
// The data that a thread reads when it measures: random numbers of each kind, in memory of its own.
// Used by that thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "providers/cpu/jit/peak_loops.h"

namespace pfrt::cpu {

class MeasureData {
 public:
  // Makes at least |bytes| bytes of |kind|; false where there is no memory. To be called on the
  // thread that will read them, whose processor's memory they then are.
  bool fill(PeakData kind, int64_t bytes);
  // Runs |loop| over |blocks| blocks of the first |bytes|, from where it stopped last.
  void go_through(const PeakLoop& loop, int64_t bytes, int64_t blocks);

 private:
  struct Free {
    void operator()(uint8_t* data) const { std::free(data); }
  };
  struct Block {
    std::unique_ptr<uint8_t, Free> data;
    int64_t bytes = 0, position = 0;
  };
  static constexpr size_t kKinds = 3;
  std::array<Block, kKinds> blocks_;
};

}  // namespace pfrt::cpu
