// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/gemm.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/kernels/matmul/transpose.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kDepth = Gemm<float>::kDepth;
constexpr int64_t kLookDepth = 64 * kDepth;  // k of lines between looks at the run
constexpr int64_t kTileRows = 480;           // at most
constexpr int64_t kTileCols = 384;
constexpr int64_t kWideTileCols = 2048;  // for a few rows, which read lines of B
// Of a B beyond the caches, a few rows read no fewer columns at a time: each line of a tile lies on
// other pages, and shorter parts of them cost more than the memory's rate (2,048 of 4,096 columns:
// 25 ms; 256: 80).
constexpr int64_t kFarTileCols = 1024, kFarElements = 2 << 20, kWantedFarTiles = 4;
constexpr int64_t kRowsTogether = 96;
constexpr int64_t kLeastDepthOfRows = 16;  // with less, a call takes longer than its products
// Writing takes longer than multiplying there, and goes faster row by row.
constexpr int64_t kFarRow = 512, kLeastDepthOfFarRows = 192;
constexpr int64_t kTransposed = 4;  // lines of k at a time
constexpr int64_t kMinTileWork =
    1 << 20;  // multiply-adds below which a tile is not cut for parallelism
constexpr int64_t kWantedTiles = 16;

template <typename T>
pfrt_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) return PFRT_DTYPE_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return PFRT_DTYPE_FLOAT64;
  if constexpr (std::is_same_v<T, uint32_t>) return PFRT_DTYPE_UINT32;
  return PFRT_DTYPE_UINT64;
}

template <typename T>
pfrt_dtype signed_dtype_of() {
  if constexpr (std::is_same_v<T, uint32_t>) return PFRT_DTYPE_INT32;
  if constexpr (std::is_same_v<T, uint64_t>) return PFRT_DTYPE_INT64;
  return dtype_of<T>();
}

// Scratch for packed panels of B and A, and for an edge of C.
template <typename T>
int64_t scratch_elements(const MicroKernels<T>& micro, int64_t tile_cols, int64_t k, bool split) {
  const int64_t depth = std::clamp<int64_t>(k, 1, kDepth);
  const int64_t width = std::max(micro.cols, micro.wide_cols);
  const int64_t plain = ceil_div(depth * (tile_cols + micro.rows) + micro.rows * width, 64) * 64;
  if (!split) return plain;
  return std::max(plain, split_matmul_scratch(tile_cols, std::max<int64_t>(k, 1)) /
                             static_cast<int64_t>(sizeof(float)));
}

}  // namespace

template <typename T>
StridedSource<T>::StridedSource(const void* data, pfrt_dtype dtype, int64_t offset,
                                int64_t outer_stride, int64_t k_stride)
    : data_(data),
      load_(load_fn<T>(dtype)),
      widen_lines_(std::is_same_v<T, float> ? widen_lines_fn(dtype) : nullptr),
      offset_(offset),
      outer_stride_(outer_stride),
      k_stride_(k_stride),
      same_type_(dtype == dtype_of<T>() || dtype == signed_dtype_of<T>()) {}

template <typename T>
const T* StridedSource<T>::in_place(int64_t first, int64_t k0, int64_t* k_stride) const {
  if (!same_type_ || outer_stride_ != 1 || zero_) return nullptr;
  *k_stride = k_stride_;
  return static_cast<const T*>(data_) + offset_ + first + k0 * k_stride_;
}

template <typename T>
const T* StridedSource<T>::lines_in_place(int64_t first, int64_t k0, int64_t* outer_stride) const {
  if (!same_type_ || k_stride_ != 1 || zero_) return nullptr;
  *outer_stride = outer_stride_;
  return static_cast<const T*>(data_) + offset_ + first * outer_stride_ + k0;
}

template <typename T>
void StridedSource<T>::pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
                            int64_t kn) const {
  const int64_t start = offset_ + first * outer_stride_ + k0 * k_stride_;
  constexpr int64_t kLine = 16;  // of a panel, copied as a few vectors
  if (outer_stride_ == 1 && same_type_ && count == kLine) {
    const T* const from = static_cast<const T*>(data_) + start;
    for (int64_t k = 0; k < kn; ++k)
      std::memcpy(out + k * width, from + k * k_stride_, kLine * sizeof(T));
  } else if (outer_stride_ == 1 && widen_lines_ != nullptr) {
    if constexpr (std::is_same_v<T, float>)
      widen_lines_(static_cast<const uint16_t*>(data_) + start, k_stride_, out, width, kn, count);
  } else if (outer_stride_ == 1) {
    for (int64_t k = 0; k < kn; ++k) load_(out + k * width, data_, start + k * k_stride_, 1, count);
  } else if (std::is_same_v<T, float> && same_type_ && k_stride_ == 1) {
    if constexpr (std::is_same_v<T, float>)
      transpose(static_cast<const float*>(data_) + start, outer_stride_, count, kn, out, width);
  } else {
    T line[kTransposed * kDepth];
    for (int64_t from = 0; from < kn; from += kDepth) {
      const int64_t n = std::min(kDepth, kn - from);
      int64_t j = 0;
      if constexpr (std::is_same_v<T, float>)
        for (; j + kTransposed <= count; j += kTransposed) {
          for (int64_t i = 0; i < kTransposed; ++i)
            load_(line + i * kDepth, data_, start + (j + i) * outer_stride_ + from * k_stride_,
                  k_stride_, n);
          transpose(line, kDepth, kTransposed, n, out + from * width + j, width);
        }
      for (; j < count; ++j) {
        load_(line, data_, start + j * outer_stride_ + from * k_stride_, k_stride_, n);
        for (int64_t k = 0; k < n; ++k) out[(from + k) * width + j] = line[k];
      }
    }
  }
  if (zero_) {
    for (int64_t k = 0; k < kn; ++k)
      for (int64_t j = 0; j < count; ++j) out[k * width + j] -= zero_[(first + j) * zero_stride_];
  }
  if (count < width) {
    for (int64_t k = 0; k < kn; ++k)
      std::fill(out + k * width + count, out + (k + 1) * width, T{0});
  }
}

const PanelMicrokernel* rows_microkernel() {
  const PanelMicrokernel* const microkernel = PanelMicrokernel::get();
  return microkernel != nullptr && microkernel->takes_plain() ? microkernel : nullptr;
}

template <typename T>
Gemm<T>::Gemm(const Gemm& like, int64_t m, int64_t n, int64_t k, int64_t batch)
    : micro_(like.micro_),
      dots_(like.dots_),
      lines_(like.lines_),
      panels_(like.panels_),
      m_(m),
      n_(n),
      k_(k) {
  if (m <= 0 || n <= 0) return;
  // Sizes that fit as they are, as in small matmuls, need no divisions.
  const auto fit = [](int64_t size, int64_t most, int64_t unit) {
    if (size <= unit && unit <= most) return unit;
    const int64_t part = size <= most ? size : ceil_div(size, ceil_div(size, most));
    return ceil_div(part, unit) * unit;
  };
  const auto count = [](int64_t size, int64_t of) { return size <= of ? 1 : ceil_div(size, of); };
  if constexpr (std::is_same_v<T, float>) split_ = split_matmul_wins(m, n, k);
  const int64_t unit_rows = split_ ? kSplitUnit : micro_->rows;
  const int64_t unit_cols = split_ ? kSplitUnit : micro_->cols;
  int64_t rows = kTileRows, cols = kTileCols;
  if (std::is_same_v<T, float> && !split_ && m <= LineKernels::kMaxRows)
    cols = std::clamp(ceil_div(n, kWantedTiles), kTileCols, kWideTileCols);
  const bool far = std::is_same_v<T, float> && !split_ && m <= LineKernels::kMaxRows &&
                   n >= 2 * kFarTileCols && k > kFarElements / n;
  if (far) cols = std::clamp(ceil_div(n, kWantedFarTiles), kFarTileCols, kWideTileCols);
  for (;;) {
    tile_rows_ = fit(m, rows, unit_rows);
    tile_cols_ = fit(n, cols, unit_cols);
    row_tiles_ = count(m, tile_rows_);
    col_tiles_ = count(n, tile_cols_);
    if (far || tiles() * std::max<int64_t>(batch, 1) >= kWantedTiles) break;
    if (tile_rows_ * tile_cols_ / 2 < kMinTileWork / std::max<int64_t>(k, 1)) break;
    if (tile_cols_ >= tile_rows_ && tile_cols_ > unit_cols) {
      cols = std::max(unit_cols, tile_cols_ / 2);
    } else if (tile_rows_ > unit_rows) {
      rows = std::max(unit_rows, tile_rows_ / 2);
    } else {
      break;
    }
  }
  scratch_ = scratch_elements(*micro_, std::min(tile_cols_, kTileCols), k, split_);
}

template <typename T>
uint64_t Gemm<T>::most_scratch_bytes(int64_t n, int64_t k) {
  const MicroKernels<T>& micro = micro_kernels<T>();
  const int64_t cols = ceil_div(std::clamp<int64_t>(n, 1, kTileCols), micro.cols) * micro.cols;
  const bool split = std::is_same_v<T, float> && split_matmul_usable();
  return static_cast<uint64_t>(scratch_elements(micro, cols, k, split)) * sizeof(T);
}

template <typename T>
GemmTile Gemm<T>::tile(int64_t index) const {
  // Tiles with neighbouring indices share columns, since B is often the larger factor.
  GemmTile t{};
  t.row = index % row_tiles_ * tile_rows_;
  t.col = index / row_tiles_ * tile_cols_;
  t.rows = std::min(tile_rows_, m_ - t.row);
  t.cols = std::min(tile_cols_, n_ - t.col);
  return t;
}

template <typename T>
void Gemm<T>::compute(const Run& run, const GemmTile& t, const PanelSource<T>& a,
                      const PanelSource<T>& b, T* c, int64_t ldc, T* scratch) const {
  if constexpr (std::is_same_v<T, float>) {
    if (splits(run.precision()) && split_matmul(run, t, k_, a, b, c, ldc, scratch)) return;
  }
  compute_reference(run, t, a, b, c, ldc, scratch);
}

template <typename T>
void Gemm<T>::compute_reference(const Run& run, const GemmTile& t, const PanelSource<T>& a,
                                const PanelSource<T>& b, T* c, int64_t ldc, T* scratch) const {
  if (k_ <= 0) {
    for (int64_t i = 0; i < t.rows; ++i) std::fill(c + i * ldc, c + i * ldc + t.cols, T{0});
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    // Its sums are added otherwise than those of more rows.
    const bool as_many_rows = run.precision() == Precision::kRowsAlone;
    if (!as_many_rows && m_ <= DotKernels::kMaxRows && multiply_lines(run, t, a, b, c, ldc)) return;
    if (m_ <= LineKernels::kMaxRows && multiply_columns(run, t, a, b, c, ldc, scratch)) return;
  }
  for (int64_t j = 0; j < t.cols; j += kTileCols) {
    const GemmTile part{t.row, t.rows, t.col + j, std::min(kTileCols, t.cols - j)};
    for (int64_t k0 = 0; k0 < k_ && !run.stopped(); k0 += kDepth)
      multiply(run, part, k0, std::min(kDepth, k_ - k0), a, b, c + j, ldc, scratch);
  }
}

template <typename T>
bool Gemm<T>::multiply_lines(const Run& run, const GemmTile& t, const PanelSource<float>& a,
                             const PanelSource<float>& b, float* c, int64_t ldc) const {
  int64_t lda = 0, ldb = 0;
  if (dots_->one[0] == nullptr || a.lines_in_place(t.row, 0, &lda) == nullptr ||
      b.lines_in_place(t.col, 0, &ldb) == nullptr)
    return false;
  const auto row = static_cast<size_t>(t.rows - 1);
  const int64_t cols = dots_->cols[row];
  // A few lines at a time, each to its end: memory is read ahead of them.
  for (int64_t j = 0; j < t.cols && !run.stopped();) {
    const bool wide = j + cols <= t.cols;
    const DotFn dot = wide ? dots_->wide[row] : dots_->one[row];
    for (int64_t k0 = 0; k0 < k_ && !run.stopped(); k0 += kLookDepth) {
      dot(std::min(kLookDepth, k_ - k0), a.lines_in_place(t.row, k0, &lda), lda,
          b.lines_in_place(t.col + j, k0, &ldb), ldb, c + j, ldc, k0 > 0);
    }
    j += wide ? cols : 1;
  }
  return true;
}

template <typename T>
bool Gemm<T>::multiply_columns(const Run& run, const GemmTile& t, const PanelSource<float>& a,
                               const PanelSource<float>& b, float* c, int64_t ldc,
                               float* scratch) const {
  int64_t ldb = 0;
  const LinesFn lines = lines_->rows[t.rows - 1];
  if (lines == nullptr || b.in_place(t.col, 0, &ldb) == nullptr) return false;
  float* const sums = scratch + kDepth * t.rows;
  for (int64_t k0 = 0; k0 < k_ && !run.stopped(); k0 += kDepth) {
    const int64_t kn = std::min(kDepth, k_ - k0);
    a.pack(scratch, t.rows, t.row, t.rows, k0, kn);
    const float* const from = b.in_place(t.col, k0, &ldb);
    if (k0 == 0) {
      lines(kn, scratch, from, ldb, t.cols, c, ldc);
      continue;
    }
    lines(kn, scratch, from, ldb, t.cols, sums, t.cols);
    for (int64_t r = 0; r < t.rows; ++r)
      for (int64_t j = 0; j < t.cols; ++j) c[r * ldc + j] += sums[r * t.cols + j];
  }
  return true;
}

template <typename T>
bool Gemm<T>::multiply_rows(const Run& run, const GemmTile& t, int64_t k0, int64_t kn,
                            const PanelSource<float>& a, const PanelSource<float>& b, float* c,
                            int64_t ldc, float* scratch) const {
  constexpr float kZeros[PanelMicrokernel::kPanel] = {};
  const int64_t panel = micro_->cols, half_panel = micro_->half_cols;
  PanelMicrokernel::Blocks p{};
  if (panels_ == nullptr || t.cols < half_panel || k_ < kLeastDepthOfRows) return false;
  if (ldc >= kFarRow && k_ < kLeastDepthOfFarRows) return false;
  const float* const rows = a.lines_in_place(t.row, 0, &p.a_row);
  if (rows == nullptr) return false;
  const float* const lines = b.in_place(t.col, 0, &p.b_row);
  const bool packs =
      lines == nullptr ||
      (t.rows > micro_->rows && !PanelMicrokernel::stays_near(p.b_row, std::min(kDepth, k_)));
  const int64_t parts = ceil_div(t.rows, kRowsTogether);
  const int64_t together = ceil_div(ceil_div(t.rows, parts), micro_->rows) * micro_->rows;
  for (int64_t i = 0; i < t.rows; i += together) {
    for (int64_t j = 0; j < t.cols && !run.stopped();) {
      const bool half = t.cols - j <= half_panel || t.cols < panel;
      const int64_t width = half ? half_panel : panel, first = std::min(j, t.cols - width);
      // The last columns are taken together with some before them, which get the same sums again:
      // with the last pass, since that is when those are complete.
      const bool again = first != j;
      const int64_t count = std::min(panel, t.cols), from = std::min(j, t.cols - count);
      float* const packed = scratch + (k_ > kDepth || count < panel ? 0 : j * kn);
      for (int64_t k = again ? 0 : k0; k < k0 + kn && (!again || k0 + kn == k_); k += kDepth) {
        PanelMicrokernel::Blocks part = p;
        part.depth = std::min(kDepth, k_ - k);
        if (!packs) {
          part.b = lines + first + k * p.b_row;
        } else {
          if (i == 0 || k_ > kDepth) b.pack(packed, panel, t.col + from, count, k, part.depth);
          part.b = packed + first - from, part.b_row = panel;
        }
        part.a = rows + i * p.a_row + k;
        part.c = c + i * ldc + first, part.c_row = ldc;
        part.start = k == 0 ? kZeros : nullptr;
        panels_->run_plain(std::min(together, t.rows - i), half, part);
      }
      j = first + width;
    }
  }
  return true;
}

template <typename T>
void Gemm<T>::multiply(const Run& run, const GemmTile& t, int64_t k0, int64_t kn,
                       const PanelSource<T>& a, const PanelSource<T>& b, T* c, int64_t ldc,
                       T* scratch) const {
  if constexpr (std::is_same_v<T, float>)
    if (multiply_rows(run, t, k0, kn, a, b, c, ldc, scratch)) return;
  const bool accumulate = k0 > 0;
  T* const packed_b = scratch;
  T* const packed_a = packed_b + kn * std::min(tile_cols_, kTileCols);
  T* const edge = packed_a + kn * micro_->rows;
  const auto width_of = [&](int64_t left) {
    return left <= micro_->half_cols ? micro_->half_cols : micro_->cols;
  };

  // With one panel of rows each element of B is used once, and packing it would not pay.
  int64_t stride = 0;
  const bool in_place = t.rows <= micro_->rows && b.in_place(t.col, k0, &stride) != nullptr;
  if (!in_place) {
    T* to = packed_b;
    for (int64_t j = 0; j < t.cols; j += micro_->cols) {
      const int64_t width = width_of(t.cols - j);
      b.pack(to, width, t.col + j, std::min(width, t.cols - j), k0, kn);
      to += kn * width;
    }
  }
  for (int64_t i = 0; i < t.rows; i += micro_->rows) {
    if (run.stopped()) return;
    const int64_t rows = std::min(micro_->rows, t.rows - i);
    a.pack(packed_a, rows, t.row + i, rows, k0, kn);
    const T* panel = packed_b;
    for (int64_t j = 0; j < t.cols;) {
      const int64_t left = t.cols - j;
      T* to = c + i * ldc + j;
      if (in_place && rows <= micro_->wide_rows && left >= micro_->wide_cols) {
        micro_->wide[rows - 1](kn, packed_a, b.in_place(t.col + j, k0, &stride), stride, to, ldc,
                               accumulate);
        j += micro_->wide_cols;
        continue;
      }
      const int64_t width = width_of(left);
      const MicroFn<T> micro =
          width == micro_->cols ? micro_->full[rows - 1] : micro_->half[rows - 1];
      int64_t ldb = width;
      const T* from = panel;
      if (in_place) {
        if (left >= width) {
          from = b.in_place(t.col + j, k0, &ldb);
        } else {
          b.pack(packed_b, width, t.col + j, left, k0, kn);
          from = packed_b;
        }
      }
      if (left >= width) {
        micro(kn, packed_a, from, ldb, to, ldc, accumulate);
      } else {
        micro(kn, packed_a, from, ldb, edge, width, false);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t x = 0; x < left; ++x) {
            T& element = to[r * ldc + x];
            element = accumulate ? element + edge[r * width + x] : edge[r * width + x];
          }
      }
      panel += kn * width;
      j += width;
    }
  }
}

template class StridedSource<float>;
template class StridedSource<double>;
template class StridedSource<uint32_t>;
template class StridedSource<uint64_t>;
template class Gemm<float>;
template class Gemm<double>;
template class Gemm<uint32_t>;
template class Gemm<uint64_t>;

}  // namespace pfrt::cpu
