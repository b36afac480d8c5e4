// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/split_matmul.h"

#include <algorithm>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/jit/tile_microkernel.h"
#include "providers/cpu/kernels/matmul/split_terms.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kSide = TileMicrokernel::kSide, kBlock = TileMicrokernel::kBlock;
// Most k of a pass. Each pass is a sum of its own, which keeps errors small, and its terms stay in
// the cache.
constexpr int64_t kDepth = 512, kMostChunks = kDepth / TileMicrokernel::kChunk;

// Passes of equal length, whole chunks.
int64_t depth_of(int64_t k) {
  const int64_t passes = ceil_div(k, kDepth);
  return ceil_div(ceil_div(k, passes), TileMicrokernel::kChunk) * TileMicrokernel::kChunk;
}

int64_t side_of(int64_t left) { return left > kSide ? kBlock : kSide; }

struct Scratch {
  uint8_t *terms_b, *terms_a;
  float *panel, *lines, *block;

  Scratch(void* memory, int terms, int64_t tile_cols, int64_t depth) {
    terms_b = static_cast<uint8_t*>(memory);
    terms_a = terms_b + term_bytes(terms, ceil_div(tile_cols, kSide) * kSide, depth);
    panel = reinterpret_cast<float*>(terms_a + term_bytes(terms, kBlock, depth));
    lines = panel + depth * kBlock;
    block = lines + depth * kBlock;
  }
  int64_t bytes() const { return reinterpret_cast<uint8_t*>(block + kBlock * kBlock) - terms_b; }
};

class Pass {
 public:
  Pass(int terms, const PanelSource<float>& a, const PanelSource<float>& b, int64_t k0, int64_t kn,
       const Scratch& scratch)
      : terms_(terms), a_(a), b_(b), k0_(k0), kn_(kn), scratch_(scratch) {}

  bool split_b(uint8_t* out, int64_t side, int64_t first, int64_t count) const {
    int64_t stride = side;
    const float* from = b_.in_place(first, k0_, &stride);
    if (from == nullptr) {
      b_.pack(scratch_.panel, side, first, count, k0_, kn_);
      from = scratch_.panel;
    }
    return split_columns(terms_, out, side, from, stride, count, kn_);
  }

  bool split_a(int64_t side, int64_t first, int64_t count) const {
    int64_t stride = kn_;
    const float* from = a_.lines_in_place(first, k0_, &stride);
    if (from == nullptr) {
      a_.pack(scratch_.panel, count, first, count, k0_, kn_);
      for (int64_t r = 0; r < count; ++r)
        for (int64_t k = 0; k < kn_; ++k)
          scratch_.lines[r * kn_ + k] = scratch_.panel[k * count + r];
      from = scratch_.lines;
    }
    return split_rows(TermLayout::of_block(terms_, side), scratch_.terms_a, from, stride, count,
                      kn_);
  }

 private:
  int terms_;
  const PanelSource<float>&a_, &b_;
  int64_t k0_, kn_;
  const Scratch& scratch_;
};

}  // namespace

int terms_of(Precision precision) {
  switch (precision) {
    case Precision::kFast:
      return 2;
    case Precision::kBfloat16:
      return 1;
    default:
      return 3;
  }
}

bool split_matmul_usable() { return TileMicrokernel::of_terms(1) != nullptr; }

bool splits_products(Precision precision) { return !is_plain(precision) && split_matmul_usable(); }

bool split_matmul_wins(int64_t m, int64_t n, int64_t k) {
  if (m < 12 || n < 12 || k < 16 || !split_matmul_usable()) return false;
  // Tiles are computed whole, padding included, and splitting pays when terms are used a few times.
  const double whole = static_cast<double>(ceil_div(m, kSide) * ceil_div(n, kSide) * kSide * kSide);
  return static_cast<double>(m) * static_cast<double>(n) >= 0.6 * whole && m + n >= 64;
}

int64_t split_matmul_scratch(int64_t tile_cols, int64_t k) {
  const int64_t bytes =
      Scratch(nullptr, TileMicrokernel::kMostTerms, tile_cols, depth_of(k)).bytes();
  return ceil_div(bytes, 64) * 64;
}

bool split_matmul(const Run& run, const GemmTile& tile, int64_t k, const PanelSource<float>& a,
                  const PanelSource<float>& b, float* c, int64_t ldc, void* memory) {
  const int terms = terms_of(run.precision());
  const TileMicrokernel& microkernel = *TileMicrokernel::of_terms(terms);
  const int64_t depth = depth_of(k);
  const Scratch scratch(memory, terms, tile.cols, depth);
  {
    const TileMicrokernel::Scope scope(microkernel);
    for (int64_t k0 = 0; k0 < k; k0 += depth) {
      const int64_t kn = std::min(depth, k - k0), chunks = chunks_of(kn);
      const Pass pass(terms, a, b, k0, kn, scratch);
      uint8_t* to = scratch.terms_b;
      for (int64_t j = 0; j < tile.cols; j += kBlock) {
        const int64_t cols = std::min(kBlock, tile.cols - j), side = side_of(cols);
        if (!pass.split_b(to, side, tile.col + j, cols)) return false;
        to += term_bytes(terms, side, kn);
      }
      for (int64_t i = 0; i < tile.rows; i += kBlock) {
        if (run.stopped()) return true;
        const int64_t rows = std::min(kBlock, tile.rows - i), height = side_of(rows);
        if (!pass.split_a(height, tile.row + i, rows)) return false;
        const TermLayout layout = TermLayout::of_block(terms, height);
        int64_t a_chunks[kMostChunks];
        for (int64_t i_chunk = 0; i_chunk < chunks; ++i_chunk)
          a_chunks[i_chunk] = i_chunk * layout.chunk_bytes;
        TileMicrokernel::Blocks blocks{};
        blocks.a = scratch.terms_a;
        blocks.a_chunks = a_chunks;
        blocks.a_row_bytes = 64;
        blocks.a_term_bytes = layout.term_bytes;
        blocks.chunks = chunks;
        blocks.c_tile_bytes = 4 * kSide;
        const uint8_t* from = scratch.terms_b;
        for (int64_t j = 0; j < tile.cols; j += kBlock) {
          const int64_t cols = std::min(kBlock, tile.cols - j), width = side_of(cols);
          float* const out = c + i * ldc + j;
          const bool direct = k0 == 0 && rows == height && cols == width;
          blocks.b = from;
          blocks.c = direct ? out : scratch.block;
          blocks.c_row_bytes = 4 * (direct ? ldc : kBlock);
          microkernel.run(height / kSide, width / kSide, blocks);
          if (!direct) add_block(out, ldc, scratch.block, kBlock, rows, cols, k0 == 0);
          from += term_bytes(terms, width, kn);
        }
      }
    }
  }
  bool right = true;
  for (int64_t i = 0; i < tile.rows && right; ++i) right = sums_are_right(c + i * ldc, tile.cols);
  return right;
}

}  // namespace pfrt::cpu
