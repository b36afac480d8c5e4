// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the product of two blocks of bfloat16 numbers on AMX tiles, with float32 sums.
// A factor may be given as several planes whose sum it is; then the sum of the products of planes
// is made that the kind names.
//
// A block of A is up to 32 rows by a multiple of 32 of k, in chunks of 32 k; a chunk is its planes,
// a plane one or two tiles of 16 rows, a row of a tile 16 pairs of bfloat16: pair j holds the k's
// that the caller put there. A block of B is up to 32 columns: row j of a tile holds the same pairs
// j of 16 columns. Immutable; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

class TileProduct {
 public:
  static constexpr int64_t kSide = 16;   // rows and columns of a tile
  static constexpr int64_t kBlock = 32;  // rows and columns of a block at most
  static constexpr int64_t kChunk = 32;  // k of a chunk
  static constexpr int64_t kTileBytes = 1024;
  static constexpr int64_t kPlanes = 3;

  // The one for factors in three planes, largest first, of which the six products above 2^-24 of
  // the largest are summed. nullptr where tiles cannot be used (amx_usable).
  static const TileProduct* of_three_planes();

  // c[i * ldc + j] = sums, for 16 or 32 rows and columns. |ldc| in elements.
  void run(int64_t row_tiles, int64_t col_tiles, const void* a, const void* b, int64_t chunks,
           float* c, int64_t ldc) const {
    code_[row_tiles - 1][col_tiles - 1](a, b, chunks, c, ldc * 4);
  }

  // The same with a B that lies as an image does: the tiles of chunk i begin at b + offsets[i],
  // rows of tiles are |row_bytes| apart, planes |plane_bytes|, and the second tile follows the
  // first row by row.
  struct Spread {
    const void* a;
    const void* b;
    const int64_t* offsets;  // one more than chunks: what is likely to be read next
    int64_t chunks, row_bytes, plane_bytes;
    float* c;
    int64_t ldc_bytes;
  };
  void run(int64_t row_tiles, int64_t col_tiles, const Spread& spread) const {
    spread_code_[row_tiles - 1][col_tiles - 1](&spread);
  }

  // Sets this thread's tiles up while it lives. run needs one; do not let threads change inside.
  class Scope {
   public:
    explicit Scope(const TileProduct& product);
    ~Scope() { product_.release_(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const TileProduct& product_;
  };

 private:
  using Code = void (*)(const void* a, const void* b, int64_t chunks, float* c, int64_t ldc_bytes);
  using SpreadCode = void (*)(const Spread* spread);
  Code code_[2][2] = {};
  SpreadCode spread_code_[2][2] = {};
  void (*configure_)(const void* palette) = nullptr;
  void (*release_)() = nullptr;
};

}  // namespace pfrt::cpu
