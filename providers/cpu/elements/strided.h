// SPDX-License-Identifier: Apache-2.0
//
// A copy between two strided views of the same dimensions, the work behind most operators that move
// data: dimensions are merged where both sides allow, rows are copied whole, and where only another
// dimension is dense in the source the copy goes by square tiles. Elements are opaque. Immutable
// once made; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "providers/cpu/kernel/run.h"

namespace pfrt::cpu {

// Row-major strides of |dims|, in elements.
std::vector<int64_t> dense_strides(std::span<const int64_t> dims);

class StridedCopy {
 public:
  // |element_bytes| is 1, 2, 4, 8 or 16. Strides count elements and may be 0 or, in the source,
  // negative.
  StridedCopy(size_t element_bytes, std::span<const int64_t> dims,
              std::span<const int64_t> from_strides, std::span<const int64_t> to_strides);
  // |from| and |to| point at element 0 of each view. With |output|, |to| is that element of output
  // 0, and what is copied is final.
  void run(const Run& run, const void* from, void* to, std::optional<int64_t> output = {}) const;

 private:
  using Output = std::optional<int64_t>;
  void rows(const Run& run, const char* from, char* to, Output output) const;
  void tiles(const Run& run, const char* from, char* to, Output output) const;
  size_t bytes_;
  std::vector<int64_t> dims_, from_, to_;
  int64_t total_ = 1;
  size_t dense_ = 0;  // dimension that is dense in the source, when tiles are used
  bool tiled_ = false;
};

// Copies |bytes| bytes, in parallel; does nothing where both are the same memory.
void copy_bytes(const Run& run, const void* from, void* to, int64_t bytes);

}  // namespace pfrt::cpu
