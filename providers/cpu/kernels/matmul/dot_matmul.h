// SPDX-License-Identifier: Apache-2.0
//
// Matmuls of bytes with packed columns (dot_columns.h): how one is divided into tasks, and their
// sums. Immutable; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/jit/dot_tile_microkernel.h"
#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernels/matmul/dot_columns.h"

namespace pfrt::cpu {

class DotMatmul {
 public:
  // The microkernel that multiplies |m| rows on tiles of int8; nullptr where the machine has none
  // or the rows are too few.
  static const DotTileMicrokernel* tiles(int64_t m, const DotMicrokernel& microkernel);
  // Multiplies |m| rows of |k| by |n| columns, on |tiles| if not null.
  DotMatmul(int64_t m, int64_t n, int64_t k, const DotRows& rows, const DotMicrokernel& microkernel,
            const DotTileMicrokernel* tiles = nullptr);

  // Sums of rows [row, row + rows) and columns [col, col + cols), rows |stride| apart.
  struct Tile {
    int32_t* sums;
    int64_t stride, row, rows, col, cols;
  };
  bool on_tiles() const { return tiles_ != nullptr; }
  uint64_t scratch_bytes() const;
  int64_t scratch_elements() const;

  // Numbers that sums begin with: a column's, of which there are panels() * 16, plus, where |rows|
  // is not null, a row's.
  struct Start {
    const int32_t *columns, *rows;
  };
  // |rows| are row_bytes() apart. Where |direct| is not null sums go there, rows of n. put(tile,
  // worker) gets each sum once, in |direct| or in memory that is as large as a tile and free
  // afterwards; done(row, rows, col, cols) follows when all tiles of a task have been put.
  template <typename Put, typename Done>
  void run(const Run& run, const void* rows, const void* packed, const Start& start,
           int32_t* direct, Put&& put, Done&& done) const {
    if (m_ <= 0 || n_ <= 0) return;
    const int64_t task_cols = this->task_cols(run.workers());
    const int64_t row_tasks = ceil_div(m_, task_rows_);
    run.parallel(row_tasks * ceil_div(n_, task_cols), [&](int64_t i, uint32_t worker) {
      const int64_t row = i % row_tasks * task_rows_, col = i / row_tasks * task_cols;
      const int64_t count = std::min(task_rows_, m_ - row);
      const int64_t end = std::min(col + task_cols, n_);
      DotTileMicrokernel::Scope scope;
      for (Group g = first_group(count, col, end); g.col < end; g = next_group(count, g, end)) {
        if (run.stopped()) return;
        const bool in_place = direct != nullptr && g.cols(end) % kPanel == 0;
        int32_t* const sums = in_place ? direct + row * n_ + g.col : run.scratch<int32_t>(worker);
        const int64_t stride = in_place ? n_ : g.panels * kPanel;
        const int64_t panel_stride = in_place ? g.apart * kPanel : kPanel;
        if (tiles_ != nullptr)
          multiply_on_tiles(scope, rows, row, count, packed, start, g, sums, stride, panel_stride);
        else
          multiply(rows, row, count, packed, start, g, sums, stride, panel_stride);
        if (g.apart == 1) {
          put(Tile{sums, stride, row, count, g.col, g.cols(end)}, worker);
          continue;
        }
        for (int64_t p = 0; p < g.panels; ++p)
          put(Tile{sums + p * panel_stride, stride, row, count, g.col + p * g.apart * kPanel,
                   kPanel},
              worker);
      }
      done(row, count, col, end - col);
    });
  }

 private:
  static constexpr int64_t kPanel = DotMicrokernel::kPanel;
  // Panels that are multiplied together: neighbours, or |apart| panels from each other.
  struct Group {
    int64_t col, panels, apart, wide_end;  // columns before |wide_end| are read apart

    int64_t cols(int64_t end) const {
      return apart > 1 ? panels * kPanel : std::min(panels * kPanel, end - col);
    }
  };
  Group first_group(int64_t rows, int64_t col, int64_t end) const;
  Group next_group(int64_t rows, const Group& group, int64_t end) const;
  int64_t task_cols(int64_t workers) const;
  void multiply(const void* rows, int64_t row, int64_t count, const void* packed,
                const Start& start, const Group& group, int32_t* sums, int64_t stride,
                int64_t panel_stride) const;
  void multiply_on_tiles(DotTileMicrokernel::Scope& scope, const void* rows, int64_t row,
                         int64_t count, const void* packed, const Start& start, const Group& group,
                         int32_t* sums, int64_t stride, int64_t panel_stride) const;
  // Number of panels that are multiplied together.
  int64_t panels(int64_t rows) const;
  int64_t m_, n_, k_;
  DotRows rows_;
  const DotMicrokernel* microkernel_;
  const DotTileMicrokernel* tiles_;
  int64_t task_rows_ = 1;
};

}  // namespace pfrt::cpu
