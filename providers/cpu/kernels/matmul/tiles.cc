// SPDX-License-Identifier: Apache-2.0
//
// The parts of a product of m rows of A by n columns of B; each is within the one before:
//   band   up to 256 rows of A by one whole pass of k or more. All threads split it into terms, up
//          to 1 MiB in the step's shared memory. Bands of the same rows follow each other along k.
//   task   a band by 64 to 512 columns, an eighth of n if that is between. One thread computes it.
//   block  up to 32 x 32 sums of a task. A |side| of a block, 16 or 32, is one tile or two.
//   pass   up to 16 chunks of k. One call of the microkernel sums a pass of a block from 0; the
//          sum is written to C by the first pass of k and added to C by others.
//   chunk  32 k, the depth of a tile.
// A task goes through its columns by blocks, for each of these through the passes of the band, and
// for each pass through the rows by blocks. The host has split B block by block of columns.
#include "providers/cpu/kernels/matmul/tiles.h"

#include <algorithm>
#include <vector>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/source_behind.h"
#include "providers/cpu/jit/tile_microkernel.h"
#include "providers/cpu/kernels/matmul/panels.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/kernels/matmul/split_terms.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kSide = TileMicrokernel::kSide, kBlock = TileMicrokernel::kBlock,
                  kChunk = TileMicrokernel::kChunk;
constexpr int64_t kHead = 64;  // bytes: whether the columns could be split
constexpr int64_t kPassChunks =
    16;  // most chunks of a sum before it is added to others, which keeps errors small
constexpr int64_t kBandRows = 256;       // rows of a band: columns are read once a band
constexpr int64_t kBandBytes = 1 << 20;  // of terms: they stay in the cache
constexpr int64_t kTaskCols = 512, kWantedTasks = 8;

int64_t side_of(int64_t left) { return left > kSide ? kBlock : kSide; }

// Bytes of blocks of 32 columns, the last of 16 if that is enough; each has all of k.
int64_t columns_bytes(int terms, const Columns& c) {
  return term_bytes(terms, ceil_div(c.n, kSide) * kSide, c.k);
}

}  // namespace

// With few rows, reading float32 columns takes less time.
bool tiles_win(int64_t m, const Columns& c) {
  constexpr int64_t kLeastRows = 32;
  return m >= kLeastRows && split_matmul_wins(m, c.n, c.k);
}

int64_t panels_behind_tiles(Precision precision, const Columns& c) {
  return source_behind(kHead + columns_bytes(terms_of(precision), c));
}

std::optional<PackedInput> pack_tile_columns(const SnapshotNode& node, int64_t m, bool any,
                                             const Columns& c) {
  // Large columns are not kept twice. Rows that only a run knows may be as many as fill tiles.
  constexpr int64_t kMostElements = 32 << 20, kManyRows = 128;
  if (node.input_dtype(0) != PFRT_DTYPE_FLOAT32 || !node.is_constant(1) ||
      is_plain(node.precision()) || c.n * c.k > kMostElements ||
      !tiles_win(any ? std::max(m, kManyRows) : m, c))
    return std::nullopt;
  const int terms = terms_of(node.precision());
  PackedInput packed;
  packed.input = 1;
  packed.recipe =
      message(kTileColumns, terms, "/", c.n, "x", c.k, "/", c.outer_stride, "/", c.k_stride);
  const int64_t panels = panels_behind_tiles(node.precision(), c);
  packed.bytes = static_cast<uint64_t>(panels) + panel_bytes(c);
  packed.pack = [=](const void* source, void* memory) {
    const StridedSource<float> columns(source, PFRT_DTYPE_FLOAT32, 0, c.outer_stride, c.k_stride);
    uint8_t* const head = static_cast<uint8_t*>(memory);
    pack_panels(source, PFRT_DTYPE_FLOAT32, c, reinterpret_cast<float*>(head + panels));
    uint8_t* to = head + kHead;
    std::vector<float> panel(static_cast<size_t>(c.k * kBlock));
    bool fit = true;
    for (int64_t first = 0; first < c.n; first += kBlock) {
      const int64_t count = std::min(kBlock, c.n - first), side = side_of(count);
      columns.pack(panel.data(), side, first, count, 0, c.k);
      fit &= split_columns(terms, to, side, panel.data(), side, count, c.k);
      to += term_bytes(terms, side, c.k);
    }
    std::fill_n(head, kHead, static_cast<uint8_t>(fit));
  };
  return packed;
}

// Rows [row, row + rows) and chunks [chunk, chunk + chunks) of A, split.
struct TileMatmul::Band {
  int64_t row, rows, chunk, chunks;
  TermLayout layout;
  const uint8_t *terms, *columns;  // columns: without the head
};

TileMatmul::TileMatmul(int64_t m, const Columns& columns, Precision precision)
    : m_(m),
      columns_(columns),
      terms_(terms_of(precision)),
      microkernel_(TileMicrokernel::of_terms(terms_)),
      chunks_(chunks_of(columns.k)),
      reference_(m, columns.n, columns.k) {
  m = std::max<int64_t>(m, 1);
  pass_chunks_ = ceil_div(chunks_, ceil_div(chunks_, kPassChunks));
  band_rows_ = ceil_div(ceil_div(m, ceil_div(m, kBandRows)), kBlock) * kBlock;
  const int64_t pass_bytes = band_rows_ * pass_chunks_ * terms_ * 64;
  band_chunks_ = pass_chunks_ * std::max<int64_t>(1, kBandBytes / pass_bytes);
  band_chunks_ = std::min(band_chunks_, chunks_);
  task_cols_ = ceil_div(ceil_div(columns.n, kWantedTasks), kBlock) * kBlock;
  task_cols_ = std::clamp(task_cols_, 2 * kBlock, kTaskCols);
}

uint64_t TileMatmul::scratch_bytes() const {
  return std::max<uint64_t>(reference_.scratch_bytes(), kBlock * kBlock * sizeof(float));
}

uint64_t TileMatmul::shared_bytes() const {
  const int64_t flags = ceil_div(chunks_, band_chunks_) * ceil_div(band_rows_, kBlock);
  return static_cast<uint64_t>(band_rows_ * band_chunks_ * terms_ * 64 + ceil_div(flags, 64) * 64);
}

void TileMatmul::run(const Run& run, const Finish& finish) const {
  const uint8_t* const packed = run.packed<uint8_t>();
  uint8_t* const terms = run.shared<uint8_t>();
  uint8_t* const fit = terms + band_rows_ * band_chunks_ * terms_ * 64;
  const int64_t row_blocks = ceil_div(band_rows_, kBlock);
  for (int64_t row = 0; row < m_; row += band_rows_) {
    const int64_t rows = std::min(band_rows_, m_ - row);
    std::fill_n(fit, ceil_div(chunks_, band_chunks_) * row_blocks, uint8_t{1});
    for (int64_t chunk = 0; chunk < chunks_ && !run.stopped(); chunk += band_chunks_) {
      Band band{row, rows,  chunk,         std::min(band_chunks_, chunks_ - chunk),
                {},  terms, packed + kHead};
      band.layout = {terms_, 64 * band_rows_, terms_ * 64 * band_rows_};
      if (microkernel_ != nullptr)
        run.parallel(ceil_div(rows, kBlock), [&](int64_t i, uint32_t) {
          const int64_t k0 = chunk * kChunk;
          fit[chunk / band_chunks_ * row_blocks + i] = split_rows(
              band.layout, terms + 64 * i * kBlock,
              run.input<float>(0) + (row + i * kBlock) * columns_.k + k0, columns_.k,
              std::min(kBlock, rows - i * kBlock), std::min(band.chunks * kChunk, columns_.k - k0));
        });
      const bool last = chunk + band.chunks == chunks_;
      const bool all_fit = microkernel_ != nullptr && *packed != 0 &&
                           std::all_of(fit, fit + ceil_div(chunks_, band_chunks_) * row_blocks,
                                       [](uint8_t f) { return f; });
      run.parallel(ceil_div(columns_.n, task_cols_), [&](int64_t i, uint32_t worker) {
        if (run.stopped()) return;
        const int64_t first = i * task_cols_, cols = std::min(task_cols_, columns_.n - first);
        if (all_fit) multiply(run, band, first, cols, run.scratch<float>(worker));
        if (last) complete(run, band, all_fit, first, cols, finish, run.scratch<float>(worker));
      });
    }
  }
}

void TileMatmul::multiply(const Run& run, const Band& band, int64_t first, int64_t cols,
                          float* block) const {
  const TileMicrokernel& microkernel = *microkernel_;
  int64_t offsets[kPassChunks];
  TileMicrokernel::Blocks blocks{};
  blocks.a_row_bytes = 64;
  blocks.a_term_bytes = band.layout.term_bytes;
  blocks.c_tile_bytes = 4 * kSide;
  const TileMicrokernel::Scope scope(microkernel);
  for (int64_t j = first; j < first + cols; j += kBlock) {
    const int64_t width = std::min(kBlock, columns_.n - j), side = side_of(width);
    const uint8_t* from = band.columns + term_bytes(terms_, j, columns_.k) +
                          term_bytes(terms_, side, band.chunk * kChunk);
    for (int64_t c = 0; c < band.chunks; c += pass_chunks_) {
      blocks.chunks = std::min(pass_chunks_, band.chunks - c);
      for (int64_t p = 0; p < blocks.chunks; ++p) offsets[p] = (c + p) * band.layout.chunk_bytes;
      blocks.a_chunks = offsets;
      blocks.b = from;
      const int64_t bytes = term_bytes(terms_, side, kChunk * blocks.chunks);
      from += bytes;
      int64_t fetched = 0;
      const bool set = band.chunk + c == 0;
      for (int64_t i = 0; i < band.rows; i += kBlock) {
        const int64_t rows = std::min(kBlock, band.rows - i), height = side_of(rows);
        float* const out = run.output<float>(0) + (band.row + i) * columns_.n + j;
        const bool direct = set && rows == height && width == side;
        blocks.a = band.terms + 64 * i;
        blocks.c = direct ? out : block;
        blocks.c_row_bytes = 4 * (direct ? columns_.n : kBlock);
        blocks.ahead = from + fetched;
        blocks.ahead_step = fetched < bytes ? 64 : 0;
        fetched +=
            TileMicrokernel::bytes_ahead(terms_, height / kSide, side / kSide, blocks.chunks);
        microkernel.run(height / kSide, side / kSide, blocks);
        if (!direct) add_block(out, columns_.n, block, kBlock, rows, width, set);
      }
    }
  }
}

// Finishes rows of a band whose sums are all there: those that are not to be trusted are computed
// again by the reference.
void TileMatmul::complete(const Run& run, const Band& band, bool fit, int64_t first, int64_t cols,
                          const Finish& finish, float* scratch) const {
  float* const out = run.output<float>(0);
  const int64_t n = columns_.n;
  bool right = fit;
  for (int64_t i = 0; i < band.rows && right; ++i)
    right = sums_are_right(out + (band.row + i) * n + first, cols);
  if (!right) {
    const StridedSource<float> a(run.input(0), PFRT_DTYPE_FLOAT32, 0, columns_.k, 1);
    const uint8_t* const panels =
        run.packed<uint8_t>() + source_behind(kHead + columns_bytes(terms_, columns_));
    const PackedPanels b(reinterpret_cast<const float*>(panels), columns_.k);
    for (int64_t j = first; j < first + cols; j += reference_.tile_cols())
      for (int64_t i = band.row; i < band.row + band.rows; i += reference_.tile_rows()) {
        const GemmTile tile{i, std::min(reference_.tile_rows(), band.row + band.rows - i), j,
                            std::min(reference_.tile_cols(), first + cols - j)};
        reference_.compute_reference(run, tile, a, b, out + i * n + j, n, scratch);
      }
  }
  for (int64_t i = band.row; i < band.row + band.rows; ++i) {
    if (finish) finish(out + i * n + first, i, first, cols);
    if (cols < n) run.apply_epilogue(i * n + first, i * n + first + cols);
  }
  if (cols == n) run.apply_epilogue(band.row * n, (band.row + band.rows) * n);
}

}  // namespace pfrt::cpu
