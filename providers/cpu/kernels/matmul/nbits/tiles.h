// SPDX-License-Identifier: Apache-2.0
//
// MatMulNBits of many int8 rows on tiles, with the bits that the vectors of
// jit/nbits_microkernel.h give: weights less their zero points are widened to bytes once for up to
// 256 rows; the sums of a block of k become float32 before they are scaled and added up. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "providers/cpu/jit/dot_tile_microkernel.h"
#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernels/matmul/nbits/weights.h"

namespace pfrt::cpu {

class NBitsTileMatmul {
 public:
  // Whether |m| rows are multiplied on tiles: where tiles of int8 are usable, rows are rounded to
  // int8, and weights less their zero points fit into a byte.
  static bool takes(int64_t m, const NBitsWeights& weights);
  // |bias| is the type of the bias, UNSET where there is none.
  NBitsTileMatmul(int64_t m, std::shared_ptr<const NBitsWeights> weights, pfrt_dtype bias);

  uint64_t shared_bytes() const;   // packed rows
  uint64_t scratch_bytes() const;  // weights of a pass, and sums
  pfrt_code run(const Run& run) const;

 private:
  int64_t widened_bytes() const;  // of a pass of one panel
  int64_t sums() const;           // of a task's rows by two panels
  void pack_rows(const Run& run) const;
  void multiply(const Run& run, int64_t row, int64_t rows, int64_t panel, int64_t panels,
                float* scratch) const;
  // Multiplies |rows| rows by |blocks| blocks of k from |pass| on, and adds the products to |c|.
  void multiply_pass(const Run& run, DotTileMicrokernel::Scope& scope, int64_t row, int64_t rows,
                     int64_t panel, int64_t panels, int64_t pass, int64_t blocks,
                     const char* widened, float* c) const;
  void put(const Run& run, int64_t row, int64_t rows, int64_t panel, int64_t panels,
           const float* c) const;

  int64_t m_;
  std::shared_ptr<const NBitsWeights> w_;
  pfrt_dtype bias_;
  const DotTileMicrokernel* microkernel_;
  int64_t row_bytes_, task_rows_, task_panels_, pass_;
};

}  // namespace pfrt::cpu
