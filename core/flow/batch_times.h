// SPDX-License-Identifier: Apache-2.0
//
// A table of how long runs take by their rows, measured while they happen: what a
// batcher decides by. Sizes between two that were measured are interpolated; beyond the largest, a
// row costs what it costs there. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace pfrt {

class BatchTimes {
 public:
  // A run of |rows| rows has taken |ns|. Times of one size are smoothed, so that the table follows
  // a machine that becomes slower.
  void add(int64_t rows, double ns);
  bool known() const { return !sizes_.empty(); }
  // Nanoseconds of a run of |rows| rows; 0 where nothing is known.
  double of(int64_t rows) const;
  // Nanoseconds that are worth waiting for one more row, with |rows| here: until then, the rows
  // leave sooner together than apart, counted by the rate at which they leave. 0 where a batch
  // gains nothing.
  double worth_waiting(int64_t rows) const;

  struct Size {
    int64_t rows;
    double ns;
    uint64_t runs;
  };
  const std::vector<Size>& sizes() const { return sizes_; }

 private:
  std::vector<Size> sizes_;  // in order
};

}  // namespace pfrt
