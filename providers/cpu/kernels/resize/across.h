// SPDX-License-Identifier: Apache-2.0
//
// The taps of the last axis of a Resize, arranged for vectors of eight outputs, and sums of lines.
// Immutable once made; thread-safe. The functions need avx2.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/resize/taps.h"

namespace pfrt::cpu {

class Across {
 public:
  // Lines have |inner| elements at each position. It is empty where they are too long.
  static Across make(const Taps& taps, int64_t inner);
  bool empty() const { return blocks_.empty(); }
  // The elements of a line that count: [low, high).
  int64_t low() const { return low_; }
  int64_t high() const { return high_; }
  // Elements that run() writes.
  int64_t written() const { return 8 * static_cast<int64_t>(blocks_.size()); }
  // y[j * inner + c] = sum over k of weight[j * count + k] * x[index[j * count + k] * inner + c].
  void run(const float* x, float* y) const;

  // Whether eight lines are better taken at once: outputs have many elements, far apart.
  bool by_eight() const { return far_ && count_ >= 4; }
  // Does the same to eight lines, and writes nothing behind them; output lines are |n| apart.
  // |scratch| has room for eight lines of the input.
  void run_eight(const float* const* x, float* scratch, float* y, int64_t n) const;

 private:
  // Elements of a block come to their lanes in one of these ways: by permutations of eight that are
  // contiguous, of sixteen, or each by itself.
  enum class Reach : uint8_t { kEight, kSixteen, kFar };
  struct Block {
    int64_t first;  // element of the line
    Reach reach;
  };
  struct Tap {
    float weight[8];
    int32_t from[8];  // counted from Block::first
  };
  template <int count>
  void run_taps(const float* x, float* y) const;

  int64_t count_ = 0, low_ = 0, high_ = 0;
  bool far_ = false;
  std::vector<Block> blocks_;
  std::vector<Tap> taps_;  // [blocks][count]
};

inline constexpr int64_t kMostLines = 16;
// Elements [0, n) of the sum of |count| lines, at most kMostLines, each with its weight.
void sum_lines(const float* const* lines, const float* weights, int64_t count, int64_t n, float* y);

}  // namespace pfrt::cpu
