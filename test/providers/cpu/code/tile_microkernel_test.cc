// SPDX-License-Identifier: Apache-2.0
//
// The innermost product of bfloat16 numbers on tiles, emulated where the machine has none. It sums
// the right products of terms, for any number of chunks, and touches nothing but its operands. The
// numbers have exact sums.
#include "providers/cpu/jit/tile_microkernel.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "test/providers/cpu/code/tile_emulator.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

using cpu::TileMicrokernel;

// Numbers of A or B: |lines| rows, or columns, of each term, in chunks of 32 k.
class TermNumbers {
 public:
  TermNumbers(int terms, int64_t chunks, int64_t lines, uint64_t seed)
      : terms_(terms), lines_(lines), random_(seed) {
    for (int64_t i = 0; i < terms * chunks * lines * TileMicrokernel::kChunk; ++i)
      numbers_.push_back(static_cast<int>(random_() % 9) - 4);
  }
  int at(int64_t chunk, int term, int64_t line, int64_t k) const {
    return numbers_[static_cast<size_t>(
        ((chunk * terms_ + term) * lines_ + line) * TileMicrokernel::kChunk + k)];
  }
  uint16_t bits(int64_t chunk, int term, int64_t line, int64_t k) const {
    return static_cast<uint16_t>(
        std::bit_cast<uint32_t>(static_cast<float>(at(chunk, term, line, k))) >> 16);
  }

 private:
  int terms_;
  int64_t lines_;
  std::mt19937_64 random_;
  std::vector<int> numbers_;
};

// True when the product of terms |a| and |b| is summed.
bool is_summed(int terms, int a, int b) { return a + b < terms; }

void check_tiles(int terms, int64_t row_tiles, int64_t col_tiles, int64_t chunks) {
  const TileMicrokernel& microkernel = *TileMicrokernel::of_terms(terms);
  const int64_t rows = row_tiles * 16, cols = col_tiles * 16;
  const TermNumbers a(terms, chunks, rows, 1), b(terms, chunks, cols, 2);
  const int64_t a_row = 70, a_term = rows * a_row + 6, a_chunk = terms * a_term;
  Guarded of_a(static_cast<size_t>(a_chunk * chunks)),
      of_b(static_cast<size_t>(chunks * terms * col_tiles * TileMicrokernel::kTileBytes));
  std::vector<int64_t> offsets;
  for (int64_t c = 0; c < chunks; ++c) {
    offsets.push_back((chunks - 1 - c) * a_chunk);
    for (int p = 0; p < terms; ++p)
      for (int64_t k = 0; k < TileMicrokernel::kChunk; ++k) {
        for (int64_t r = 0; r < rows; ++r) {
          const uint16_t bits = a.bits(c, p, r, k);
          std::memcpy(of_a.data() + offsets.back() + p * a_term + r * a_row + 2 * k, &bits, 2);
        }
        for (int64_t j = 0; j < cols; ++j) {
          const uint16_t bits = b.bits(c, p, j, k);
          const int64_t tile = (c * terms + p) * col_tiles + j / 16;
          std::memcpy(of_b.data() + tile * TileMicrokernel::kTileBytes + k / 2 * 64 + j % 16 * 4 +
                          k % 2 * 2,
                      &bits, 2);
        }
      }
  }
  of_a.make_read_only(), of_b.make_read_only();
  Guarded of_c(static_cast<size_t>(rows * cols * 4), Placed::kAtEnd, 4);
  TileMicrokernel::Blocks blocks{};
  blocks.a = of_a.data();
  blocks.a_chunks = offsets.data();
  blocks.a_row_bytes = a_row, blocks.a_term_bytes = a_term;
  blocks.b = of_b.data();
  blocks.chunks = chunks;
  blocks.c = reinterpret_cast<float*>(of_c.data());
  blocks.c_row_bytes = cols * 4, blocks.c_tile_bytes = 64;
  blocks.ahead = of_b.data();
  blocks.ahead_step = 64;
  {
    const TileMicrokernel::Scope scope(microkernel);
    microkernel.run(row_tiles, col_tiles, blocks);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < cols; ++j) {
      int want = 0;
      for (int64_t c = 0; c < chunks; ++c)
        for (int p = 0; p < terms; ++p)
          for (int q = 0; q < terms; ++q)
            for (int64_t k = 0; is_summed(terms, p, q) && k < TileMicrokernel::kChunk; ++k)
              want += a.at(c, p, r, k) * b.at(c, q, j, k);
      float got;
      std::memcpy(&got, of_c.data() + (r * cols + j) * 4, sizeof got);
      ASSERT_EQ(got, static_cast<float>(want))
          << terms << " terms, " << row_tiles << " x " << col_tiles << " tiles, " << chunks
          << " chunks, at " << r << ", " << j;
    }
}

TEST(TileMicrokernel, sums_the_products_of_terms) {
  const TileEmulator emulator;
  if (TileMicrokernel::of_terms(1) == nullptr) GTEST_SKIP() << "PFRT_ISA excludes tiles";
  const uint64_t before = TileEmulator::bfloat16_products();
  for (int terms = 1; terms <= TileMicrokernel::kMostTerms; ++terms)
    for (int64_t row_tiles = 1; row_tiles <= 2; ++row_tiles)
      for (int64_t col_tiles = 1; col_tiles <= 2; ++col_tiles)
        for (const int64_t chunks : {1, 3}) check_tiles(terms, row_tiles, col_tiles, chunks);
  if (!emulator.native()) {
    EXPECT_GT(TileEmulator::bfloat16_products(), before);
  }
}

}  // namespace
}  // namespace pfrt::test
