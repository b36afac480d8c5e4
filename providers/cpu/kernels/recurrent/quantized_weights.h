// SPDX-License-Identifier: Apache-2.0
//
// Products of DynamicQuantizeLSTM: rows of floats, quantized by their common range, times W or R in
// bytes with a scale and a zero point a column. Sums are exact; dot products in vectors where the
// machine has them. Immutable but for Levels; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/matmul/dot_matmul.h"
#include "providers/cpu/kernels/quantize/byte_steps.h"

namespace pfrt::cpu {

// Functions for each row, by PFRT_ISA as it is when a plan is made.
struct QuantizedFns {
  RangeFn range;
  ByteStepsFn steps;
  // to[j] += (sums[j] - total * zeros[j]) * (scale * scales[j]); |zeros| null: all are 0.
  void (*add)(const int32_t* sums, int32_t total, const int32_t* zeros, float scale,
              const float* scales, int64_t n, float* to);

  static QuantizedFns here();
};

// Rows of floats as steps of their common range, which holds 0: value = (step - zero) * scale.
struct Levels {
  std::vector<uint8_t> steps;
  float scale = 1;
  int32_t zero = 0;

  void fill(const QuantizedFns& by, const float* x, int64_t n);
};

// W or R of all directions.
class QuantizedWeights {
 public:
  // Input |input| is [directions, depth, columns], int8 or uint8.
  static Result<QuantizedWeights> make(const SnapshotNode& node, uint32_t input, uint32_t scale,
                                       uint32_t zero);

  // Bytes of a direction in the layout of the microkernel, a multiple of 64; 0 where there is none.
  uint64_t packed_bytes() const;
  // Names that layout completely; empty where there is none.
  std::string recipe() const;
  void pack(const void* source, int64_t direction, void* out) const;
  const QuantizedFns& fns() const { return fns_; }

  // Matmuls of |rows| rows by the weights, and the memory that they take.
  class Product {
   public:
    Product(const QuantizedWeights& weights, int64_t rows);
    uint64_t scratch_bytes() const { return matmul_ ? matmul_->scratch_bytes() : 0; }

    // Columns of a direction, known in a run.
    struct Columns {
      int64_t direction;
      const void* packed;          // null where nothing is
      std::vector<int32_t> zeros;  // as elements count
      std::vector<float> scales;
      bool any_zero = false;
      std::vector<int32_t> start;  // memory for what sums begin with
    };
    Columns columns(const Run& run, int64_t direction, const void* packed) const;
    // to(row)[j] += (row of |levels|) . (column j), as floats.
    template <typename To>
    void add(const Run& run, Columns& columns, const Levels& levels, To&& to) const;

   private:
    void begin_with(Columns& columns, int32_t row_zero) const;
    void add_plainly(const Run& run, int64_t direction, const Levels& levels, int64_t row,
                     int64_t begin, int64_t end, float* out) const;
    const QuantizedWeights* weights_;
    int64_t rows_;
    std::optional<DotMatmul> matmul_;
  };

 private:
  QuantizedWeights(uint32_t input, uint32_t scale, uint32_t zero)
      : input_(input), scale_input_(scale), zero_input_(zero) {}
  QuantizedFns fns_ = QuantizedFns::here();
  uint32_t input_, scale_input_, zero_input_;
  pfrt_dtype dtype_ = PFRT_DTYPE_UNSET;
  int64_t depth_ = 0, columns_ = 0, parameters_ = 1;  // a direction
  std::optional<DotColumns> dot_columns_;
  std::optional<DotRows> dot_rows_;
};

template <typename To>
void QuantizedWeights::Product::add(const Run& run, Columns& columns, const Levels& levels,
                                    To&& to) const {
  constexpr int64_t kColumns = 256;
  const QuantizedWeights& w = *weights_;
  if (!matmul_) {
    const int64_t stretches = ceil_div(w.columns_, kColumns);
    run.parallel(rows_ * stretches, [&](int64_t task, uint32_t) {
      if (run.stopped()) return;
      const int64_t begin = task % stretches * kColumns, row = task / stretches;
      add_plainly(run, columns.direction, levels, row, begin,
                  std::min(w.columns_, begin + kColumns), to(row));
    });
    return;
  }
  begin_with(columns, levels.zero);
  const DotRows& dot_rows = *w.dot_rows_;
  const uint8_t* rows = levels.steps.data();
  std::vector<uint8_t> copied;
  std::vector<int32_t> totals(columns.any_zero ? static_cast<size_t>(rows_) : 0);
  std::vector<int32_t> starts(w.dot_columns_->crosswise() ? static_cast<size_t>(rows_) : 0);
  if (!dot_rows.in_place()) copied.resize(static_cast<size_t>(rows_ * dot_rows.row_bytes()));
  if (columns.any_zero || !copied.empty())
    for (int64_t r = 0; r < rows_ && !run.stopped(); ++r) {
      const uint8_t* const row = rows + r * w.depth_;
      uint32_t own = 0;
      if (!copied.empty()) own = dot_rows.copy(row, copied.data() + r * dot_rows.row_bytes());
      if (!starts.empty()) starts[static_cast<size_t>(r)] = static_cast<int32_t>(0 - own);
      // Less the row's own zero point, as the sums are.
      if (columns.any_zero)
        totals[static_cast<size_t>(r)] =
            dot_rows.sum(row) - static_cast<int32_t>(w.depth_) * levels.zero;
    }
  if (!copied.empty()) rows = copied.data();
  matmul_->run(
      run, rows, columns.packed, {columns.start.data(), starts.empty() ? nullptr : starts.data()},
      nullptr,
      [&](const DotMatmul::Tile& tile, uint32_t) {
        for (int64_t i = 0; i < tile.rows; ++i) {
          const int64_t row = tile.row + i;
          w.fns_.add(tile.sums + i * tile.stride,
                     columns.any_zero ? totals[static_cast<size_t>(row)] : 0,
                     columns.any_zero ? columns.zeros.data() + tile.col : nullptr, levels.scale,
                     columns.scales.data() + tile.col, tile.cols, to(row) + tile.col);
        }
      },
      [](int64_t, int64_t, int64_t, int64_t) {});
}

}  // namespace pfrt::cpu
