// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/dot_matmul.h"

#include <algorithm>

#include "providers/cpu/kernels/matmul/dot_tiles.h"

namespace pfrt::cpu {
namespace {

// A panel's part of so many steps of k stays in a cache while all rows of a task read it: in the
// second, or in the first where a step takes less time than it takes to come from the second.
constexpr int64_t kByteSteps = 1024, kInt16Steps = 384;
constexpr int64_t kTaskBytes = 256 << 10;  // of rows, which stay in the second-level cache
// The first of so many would wait for its columns, which are large as int16.
constexpr int64_t kLeastRowBlocks = 4;
constexpr int64_t kLine = DotMicrokernel::kPanel * DotMicrokernel::kStepBytes;
constexpr int64_t kTaskRows = 128, kLeastTaskCols = 64, kTaskCols = 1024, kWantedTasks = 8;

}  // namespace

const DotTileMicrokernel* DotMatmul::tiles(int64_t m, const DotMicrokernel& microkernel) {
  return m >= kLeastTileRows && microkernel.bytes() ? DotTileMicrokernel::get() : nullptr;
}

DotMatmul::DotMatmul(int64_t m, int64_t n, int64_t k, const DotRows& rows,
                     const DotMicrokernel& microkernel, const DotTileMicrokernel* tiles)
    : m_(m), n_(n), k_(k), rows_(rows), microkernel_(&microkernel), tiles_(tiles) {
  if (m <= 0) return;
  const int64_t block = tiles != nullptr ? 2 * DotTileMicrokernel::kSide : microkernel.rows();
  const int64_t fit =
      std::clamp(kTaskBytes / std::max<int64_t>(rows.row_bytes(), 1), 2 * block, kTaskRows);
  // Dividing twice makes tasks of about equal size.
  task_rows_ = ceil_div(ceil_div(m, ceil_div(m, fit)), block) * block;
}

int64_t DotMatmul::task_cols(int64_t workers) const {
  const int64_t wanted = workers == 1 ? 1 : std::max(kWantedTasks, 2 * workers);
  const int64_t cols = ceil_div(n_, ceil_div(wanted, ceil_div(m_, task_rows_)));
  return ceil_div(std::clamp(cols, kLeastTaskCols, kTaskCols), 4 * kPanel) * 4 * kPanel;
}

int64_t DotMatmul::scratch_elements() const {
  return std::min(task_rows_, std::max<int64_t>(m_, 1)) * DotMicrokernel::kMostPanels * kPanel;
}
uint64_t DotMatmul::scratch_bytes() const {
  return static_cast<uint64_t>(scratch_elements()) * sizeof(int32_t);
}

int64_t DotMatmul::panels(int64_t rows) const {
  return tiles_ != nullptr ? tile_panels(rows)
                           : microkernel_->panels(microkernel_->row_blocks(rows).first());
}

// Takes as many whole panels as can be read together, from as many places.
DotMatmul::Group DotMatmul::first_group(int64_t rows, int64_t col, int64_t end) const {
  const int64_t panels = this->panels(rows);
  const int64_t apart = (end - col) / (panels * kPanel);
  if (tiles_ == nullptr && rows <= 4 && panels > 1 && apart > 1)
    return {col, panels, apart, col + apart * kPanel};
  return {col, std::min(panels, ceil_div(end - col, kPanel)), 1, col};
}

DotMatmul::Group DotMatmul::next_group(int64_t rows, const Group& g, int64_t end) const {
  if (g.apart > 1) {
    if (g.col + kPanel < g.wide_end) return {g.col + kPanel, g.panels, g.apart, g.wide_end};
    const int64_t col = g.wide_end + (g.panels - 1) * g.apart * kPanel;
    return {col, std::min(g.panels, std::max<int64_t>(ceil_div(end - col, kPanel), 0)), 1, col};
  }
  const int64_t panels = this->panels(rows);
  const int64_t col = g.col + g.panels * kPanel;
  return {col, std::min(panels, std::max<int64_t>(ceil_div(end - col, kPanel), 0)), 1, col};
}

void DotMatmul::multiply(const void* rows, int64_t row, int64_t count, const void* packed,
                         const Start& start, const Group& g, int32_t* sums, int64_t stride,
                         int64_t panel_stride) const {
  constexpr int64_t kOffset = 0;
  const int64_t steps = microkernel_->steps(k_);
  const int64_t panel_bytes = steps * kPanel * DotMicrokernel::kStepBytes;
  const int64_t most = microkernel_->bytes() ? kByteSteps : kInt16Steps;
  const int64_t passes = ceil_div(steps, most), pass = ceil_div(steps, 2 * passes) * 2;
  const DotMicrokernel::RowBlocks row_blocks = microkernel_->row_blocks(count);
  for (int64_t s = 0; s < steps; s += pass) {
    DotMicrokernel::Blocks p{};
    p.a = static_cast<const char*>(rows) + row * rows_.row_bytes() + s * DotMicrokernel::kStepBytes;
    p.offsets = &kOffset;
    p.a_row = rows_.row_bytes();
    p.chunks = 1;
    p.depth = std::min(pass, steps - s);
    p.b = static_cast<const char*>(packed) + g.col / kPanel * panel_bytes +
          s * kPanel * DotMicrokernel::kStepBytes;
    p.b_panel = g.apart * panel_bytes;
    p.c = sums;
    p.c_row = stride;
    p.c_panel = panel_stride;
    p.start = s == 0 ? start.columns + g.col : nullptr;
    p.start_panel = g.apart * kPanel;
    p.row_start = start.rows != nullptr ? start.rows + row : nullptr;
    if (microkernel_->crosswise() && row_blocks.count >= kLeastRowBlocks) {
      // The part of the panel after this one, or the first of the next panels.
      const bool last = s + pass >= steps;
      p.next = static_cast<const char*>(p.b) +
               (last ? g.panels * panel_bytes - s * kLine : pass * kLine);
      const int64_t next = last ? std::min(pass, steps) : std::min(pass, steps - s - pass);
      p.next_lines = ceil_div(g.panels * next, row_blocks.count);
    }
    microkernel_->run(row_blocks, g.panels, rows_.flipped(), p);
  }
}

void DotMatmul::multiply_on_tiles(DotTileMicrokernel::Scope& scope, const void* rows, int64_t row,
                                  int64_t count, const void* packed, const Start& start,
                                  const Group& g, int32_t* sums, int64_t stride,
                                  int64_t panel_stride) const {
  DotTileProduct p{};
  p.rows = static_cast<const char*>(rows) + row * rows_.row_bytes();
  p.count = count;
  p.row_bytes = rows_.row_bytes();
  p.steps = microkernel_->steps(k_);
  p.signed_rows = rows_.is_signed();
  p.panels = g.panels;
  p.panel_bytes = p.steps * kPanel * DotMicrokernel::kStepBytes;
  p.columns = static_cast<const char*>(packed) + g.col / kPanel * p.panel_bytes;
  const int64_t whole = n_ / kPanel;
  if (g.col / kPanel + 2 * g.panels <= whole) p.next = p.columns + g.panels * p.panel_bytes;
  p.start = start.columns + g.col;
  p.row_start = start.rows == nullptr ? nullptr : start.rows + row;
  p.sums = sums;
  p.stride = stride;
  p.panel_stride = panel_stride;
  multiply_tiles(*tiles_, scope, p);
}

}  // namespace pfrt::cpu
