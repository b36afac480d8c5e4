// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting of any number of operands to one output: the output is walked in row-major order in
// runs, along which each operand either advances with the output or stays on one element.
// Neighbouring dimensions in which all operands behave alike are merged, so that operands of equal
// shape are a single run. Immutable; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "providers/cpu/elements/convert.h"

namespace pfrt::cpu {

class Broadcast {
 public:
  // Elements a task of a parallel loop takes.
  static constexpr int64_t kTask = 16 * kBlock;

  // SHAPE_MISMATCH when an operand does not broadcast to |out|.
  static Result<Broadcast> make(std::span<const int64_t> out,
                                const std::vector<std::span<const int64_t>>& operands);

  int64_t elements() const { return elements_; }
  size_t operands() const { return operands_; }
  // 1 when operand |i| advances along a run, 0 when it stays.
  int64_t step(size_t i) const { return inner_step_[i]; }

  // Calls fn(position, n, offsets) for the run [position, position + n) of the output, n <= kBlock,
  // with the offset at which each operand starts. Runs cover [begin, end) in order.
  template <typename Fn>
  void walk(int64_t begin, int64_t end, Fn&& fn) const {
    std::vector<int64_t> offsets(operands_);
    for (int64_t position = begin; position < end;) {
      const int64_t column = start(position, offsets.data());
      const int64_t n = std::min({inner_ - column, end - position, kBlock});
      fn(position, n, static_cast<const int64_t*>(offsets.data()));
      position += n;
    }
  }

 private:
  // Operand offsets at |position|; returns its place in its run.
  int64_t start(int64_t position, int64_t* offsets) const;

  size_t operands_ = 0;
  int64_t elements_ = 1;
  int64_t inner_ = 1;                // length of a run
  std::vector<int64_t> inner_step_;  // by operand
  std::vector<int64_t> outer_;       // extents outside the runs, innermost first
  std::vector<int64_t> strides_;     // [outer][operand]
};

}  // namespace pfrt::cpu
