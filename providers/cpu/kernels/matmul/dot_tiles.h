// SPDX-License-Identifier: Apache-2.0
//
// Rows of bytes by packed columns (dot_columns.h) on tiles: how k is divided between products of
// tiles and passes, and what is fetched meanwhile. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/jit/dot_tile_microkernel.h"

namespace pfrt::cpu {

// Tiles gain from so many rows on; fewer are read sooner by vectors.
inline constexpr int64_t kLeastTileRows = 8;

// Number of panels that are multiplied together with so many rows.
inline int64_t tile_panels(int64_t rows) {
  constexpr int64_t kMost = DotTileMicrokernel::kMostPanels;
  return rows <= DotTileMicrokernel::kSide ? kMost : kMost / 2;
}

// Sums of 1 to 32 rows, as DotTileProduct has them, before the first product: what their column and
// their row begin with.
void begin_tile_sums(const int32_t* start, const int32_t* row_start, int64_t rows, int64_t panels,
                     int64_t stride, int64_t panel_stride, int32_t* sums);

struct DotTileProduct {
  const char* rows;  // |count| of them, row_bytes apart, each of |steps| steps
  int64_t count, row_bytes, steps;
  bool signed_rows;
  const char* columns;  // |panels| panels, as many as tile_panels allows, panel_bytes apart
  int64_t panels, panel_bytes;
  const char* next;          // the panels that are read next, as many; null: none
  const int32_t* start;      // 16 a panel
  const int32_t* row_start;  // added to the beginning of each row's sums; null: nothing
  int32_t* sums;             // rows |stride| apart, panels |panel_stride|
  int64_t stride, panel_stride;
};
void multiply_tiles(const DotTileMicrokernel& microkernel, DotTileMicrokernel::Scope& scope,
                    const DotTileProduct& product);

}  // namespace pfrt::cpu
