// SPDX-License-Identifier: Apache-2.0
//
// Matmuls of a few float32 rows with constant columns in 16 bits (columns_16bit.h): such a product
// takes as long as its columns take to read, and they are half as long. The rows are exact and sums
// are float32. For AVX2 and up. Immutable; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernels/matmul/columns_16bit.h"
#include "providers/cpu/kernels/matmul/constant_columns.h"

namespace pfrt::cpu {

class Rows16Bit {
 public:
  static constexpr int64_t kMostRows = 4;
  // Multiplies |m| contiguous rows of k elements, kMostRows at most.
  Rows16Bit(int64_t m, const Columns& columns, ColumnType type);

  uint64_t scratch_bytes() const { return 0; }
  uint64_t shared_bytes() const { return 0; }
  // Input 0 by input 1 to output 0, both dense.
  void run(const Run& run, const Finish& finish) const;
  // Multiplies a row by columns [j, j + n) of bfloat16, from a panel's first on, to |out|.
  static void multiply_row(const float* row, const Columns16Bit& columns, int64_t j, int64_t n,
                           float* out);

 private:
  int64_t m_, n_, k_;
  ColumnType type_;
  int64_t task_cols_;
};

}  // namespace pfrt::cpu
