// SPDX-License-Identifier: Apache-2.0
//
// Matmuls with constant columns of bfloat16 (columns_16bit.h) by dot products of pairs: the rows
// are rounded to bfloat16 once a run, in the step's memory, and sums are float32. Products
// below the normal range count as 0. Sums that are not finite are computed again from the rows as
// they are, and so are those of rows and columns whose numbers are all below 2^-100. For
// AVX512-BF16. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/matmul/constant_columns.h"
#include "providers/cpu/kernels/matmul/panels.h"

namespace pfrt::cpu {

// Whether products of the node, a matmul or a convolution, are dot products of pairs: where it may
// round its factors, or has them in bfloat16, the machine can do it, and has no tiles.
bool takes_bf16_dot(const SnapshotNode& node);

class Bf16DotMatmul {
 public:
  // Multiplies |m| contiguous rows of k elements.
  Bf16DotMatmul(int64_t m, const Columns& columns);
  Parameters parameters() const { return matmul_.parameters(); }
  // This matmul with other blockings, for Kernel::alternatives.
  std::vector<Bf16DotMatmul> others(bool all) const;

  uint64_t scratch_bytes() const { return matmul_.scratch_bytes(); }
  uint64_t shared_bytes() const;
  // Input 0 by input 1 to output 0, both dense.
  void run(const Run& run, const Finish& finish) const;

 private:
  int64_t m_;
  int64_t n_, k_, pairs_;
  PanelMatmul matmul_;  // of pairs
};

}  // namespace pfrt::cpu
