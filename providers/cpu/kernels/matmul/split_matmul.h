// SPDX-License-Identifier: Apache-2.0
//
// float32 matmuls on bfloat16 tiles: each factor is split into three bfloat16 terms
// (split_terms.h), and six of the nine products of terms are summed in float32 (Henry, Tang,
// Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
// Computations, 2019). The error is that of plain float32 or smaller. Tiles treat some numbers
// otherwise (infinities, NaN, the very small): that is noticed, and the caller computes such a tile
// plainly. Products below the normal range count as 0. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernels/matmul/panel_source.h"

namespace pfrt::cpu {

// Whether the machine can do it.
bool split_matmul_usable();
// Whether products of that precision are split: where it can, but not for kIeee.
bool splits_products(Precision precision);
// Number of terms that a factor is split into; not for kIeee.
int terms_of(Precision precision);
// Whether split products are faster than the reference for this size.
bool split_matmul_wins(int64_t m, int64_t n, int64_t k);
// Rows and columns in multiples of which tiles of C are best cut.
inline constexpr int64_t kSplitUnit = 32;
// Bytes of scratch for tiles of up to |tile_cols| columns; a multiple of 64.
int64_t split_matmul_scratch(int64_t tile_cols, int64_t k);

// Computes what Gemm<float>::compute does; false where the tile has to be computed by the
// reference.
bool split_matmul(const Run& run, const GemmTile& tile, int64_t k, const PanelSource<float>& a,
                  const PanelSource<float>& b, float* c, int64_t ldc, void* scratch);

}  // namespace pfrt::cpu
