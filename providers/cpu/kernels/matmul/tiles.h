// SPDX-License-Identifier: Apache-2.0
//
// Products of float32 rows with constant columns on bfloat16 tiles (split_matmul.h). The columns
// are split once, by the host; the rows once a run, a band of them at a time, which all columns
// then use. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/matmul/constant_columns.h"
#include "providers/cpu/kernels/matmul/gemm.h"

namespace pfrt::cpu {

// Packs |columns|, input 1 of the node, where a product of |m| rows is better off on tiles; with
// |any|, one of more rows. Panels (panels.h) stand behind: for fewer rows, and for sums that tiles
// get wrong.
std::optional<PackedInput> pack_tile_columns(const SnapshotNode& node, int64_t m, bool any,
                                             const Columns& columns);

inline constexpr std::string_view kTileColumns = "tiles_and_panels/";  // beginning of its recipe

// Whether a product of |m| rows is better off on the tiles than on the panels behind.
bool tiles_win(int64_t m, const Columns& columns);
// Offset of the panels in bytes.
int64_t panels_behind_tiles(Precision precision, const Columns& columns);

class TileMicrokernel;

class TileMatmul {
 public:
  // Multiplies |m| contiguous rows of k elements.
  TileMatmul(int64_t m, const Columns& columns, Precision precision);

  uint64_t scratch_bytes() const;
  uint64_t shared_bytes() const;
  // Input 0 by input 1 to output 0, both dense.
  void run(const Run& run, const Finish& finish) const;

 private:
  struct Band;
  void multiply(const Run& run, const Band& band, int64_t first, int64_t cols, float* block) const;
  void complete(const Run& run, const Band& band, bool fit, int64_t first, int64_t cols,
                const Finish& finish, float* scratch) const;

  int64_t m_;
  Columns columns_;
  int terms_;
  const TileMicrokernel* microkernel_;  // null: computed by the reference
  int64_t pass_chunks_, chunks_;        // chunks of k summed apart, and in all
  int64_t band_rows_, band_chunks_;     // of A, split at a time
  int64_t task_cols_;
  Gemm<float> reference_;  // for what tiles get wrong
};

}  // namespace pfrt::cpu
