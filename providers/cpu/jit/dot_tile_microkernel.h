// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the innermost product of bytes on AMX tiles: rows of A, with or without sign and
// read where they lie, by panels of 16 columns of B as DotMicrokernel has them for bytes: 16 steps
// of such a panel are a tile. Sums are int32 modulo 2^32, the bits that DotMicrokernel gives.
// Immutable; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

class DotTileMicrokernel {
 public:
  static constexpr int64_t kSide = 16;       // most rows of a tile; columns of a panel
  static constexpr int64_t kMostSteps = 16;  // of a product of tiles
  // Most panels with one tile of rows; with two there are half as many.
  static constexpr int64_t kMostPanels = 4;

  // nullptr where tiles of int8 cannot be used (amx_int8_usable), or code not be made executable.
  static const DotTileMicrokernel* get();

  // A step is four bytes of a row and of a column. A chunk of k is |parts| times |depth| steps. Row
  // r of chunk c of tile t of A begins at a + offsets[c] + t * a_tile + r * a_row, in bytes. Step s
  // of k of column j of panel p of B is at b + p * b_panel + (s * 16 + j) * 4. C's element is
  // c[t * c_tile + r * c_row + p * c_panel + j].
  struct Blocks {
    const void* a;
    const int64_t* offsets;
    int64_t a_row, a_tile;
    int64_t chunks, parts, depth;  // all 1 or more, depth at most kMostSteps
    const void* b;
    int64_t b_panel;
    int32_t* c;
    int64_t c_row, c_tile, c_panel;
    // The sums are added to these: 16 a panel, panels |start_panel| apart, equal for all rows;
    // null: to what C holds.
    const int32_t* start;
    int64_t start_panel;
    // Meanwhile memory from here on is fetched into the second-level cache: two lines, ahead_step
    // bytes apart, for each product of tiles. A step of 0 fetches nothing new.
    const void* ahead;
    int64_t ahead_step;
  };

  // This thread's tiles: in their shapes from the first run with it on until it ends.
  class Scope {
   public:
    Scope() = default;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class DotTileMicrokernel;
    // Tiles of rows |first| and |second|, 1 to 16; to set them up takes as long as a few products.
    void shape(int64_t first, int64_t second, int64_t depth);
    int64_t first_ = 0, second_ = 0, depth_ = 0;
  };

  // Multiplies a tile of |first| rows, 1 to 16, and then one of |second|, 0 to 16, by 1 to 4
  // panels; by 1 or 2 where there is a second tile. Rows are int8 or uint8, columns int8.
  void run(Scope& scope, int64_t first, int64_t second, int64_t panels, bool signed_rows,
           const Blocks& blocks) const;
  // Bytes that a run fetches with a step of 64.
  static int64_t bytes_ahead(int64_t row_tiles, int64_t panels, int64_t products_of_k);

 private:
  friend class DotTileMicrokernelSet;
  using Code = void (*)(const Blocks* blocks);
  Code code_[2][2][kMostPanels] = {};  // by the sign of rows, tiles of rows less 1, panels less 1
};

}  // namespace pfrt::cpu
