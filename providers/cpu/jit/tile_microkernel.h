// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the matmul of two blocks of bfloat16 numbers on AMX tiles, with float32 sums. A
// factor may be given as several terms whose sum it is; then the largest products of terms are
// summed.
//
// A block of A is up to 32 rows by chunks of 32 k: a row of a chunk is 16 pairs of bfloat16, 64
// bytes, and the caller chooses which k are a pair. A block of B is up to 32 columns. A chunk of it
// is its terms one after another; a term is one or two tiles of 16 columns, and row j of a tile is
// pair j of its columns. Immutable; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

class TileMicrokernel {
 public:
  static constexpr int64_t kSide = 16;   // rows and columns of a tile
  static constexpr int64_t kBlock = 32;  // rows and columns of a block at most
  static constexpr int64_t kChunk = 32;  // k of a chunk
  static constexpr int64_t kTileBytes = 1024;
  static constexpr int kMostTerms = 3;

  // The one for factors in 1, 2 or 3 terms, largest first, of which 1, 3 or 6 products are summed.
  // nullptr where tiles cannot be used (amx_usable).
  static const TileMicrokernel* of_terms(int terms);

  struct Blocks {
    // Row r of term p of chunk i begins at a + a_chunks[i] + p * a_term_bytes + r * a_row_bytes.
    const void* a;
    const int64_t* a_chunks;
    int64_t a_row_bytes, a_term_bytes;
    const void* b;  // chunks follow each other
    int64_t chunks;
    // Row r of columns [16 t, 16 t + 16) of the sums goes to c + r * c_row_bytes + t *
    // c_tile_bytes.
    float* c;
    int64_t c_row_bytes, c_tile_bytes;
    // Meanwhile memory from here on is fetched into the second-level cache: two lines, ahead_step
    // apart, for each product of tiles. A step of 0 fetches nothing new.
    const void* ahead;
    int64_t ahead_step;
  };
  // Multiplies 16 or 32 rows by as many columns, one or two tiles each.
  void run(int64_t row_tiles, int64_t col_tiles, const Blocks& blocks) const {
    code_[row_tiles - 1][col_tiles - 1](&blocks);
  }

  // Bytes that a run over |chunks| fetches with a step of 64.
  static int64_t bytes_ahead(int terms, int64_t row_tiles, int64_t col_tiles, int64_t chunks);

  // This thread's tiles are set up while the object lives. run needs one on the same thread.
  class Scope {
   public:
    explicit Scope(const TileMicrokernel& microkernel);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

 private:
  friend class TileMicrokernelSet;
  using Code = void (*)(const Blocks* blocks);
  Code code_[2][2] = {};
};

}  // namespace pfrt::cpu
