// SPDX-License-Identifier: Apache-2.0
//
// The phase engine's clock: for each PE of a rectangle the cycle from which it is free. If all rows
// (or columns) have equal times, one stands for all of them, so that a phase costs as much as there
// are PEs that differ. Phases (collectives.h, exchange.h) move the times on; their costs are in
// ../README.md. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace pfrt::wse {

enum class Axis : uint8_t { kX, kY };  // along a row, along a column

class Grid {
 public:
  Grid(int64_t columns, int64_t rows) : columns_(columns), rows_(rows), times_(1, 0.0) {}

  int64_t columns() const { return columns_; }
  int64_t rows() const { return rows_; }
  // PEs on a line along |axis|.
  int64_t length(Axis axis) const { return axis == Axis::kX ? columns_ : rows_; }

  double at(int64_t x, int64_t y) const;
  // When the last PE is free.
  double finish() const;
  double start() const;  // ... and the first
  bool uniform() const { return times_.size() == 1; }

  // All PEs work for |cycles|.
  void work(double cycles);
  // fn changes the times of the PEs of one line along |axis|; each line that differs is given once.
  void each_line(Axis axis, const std::function<void(std::span<double>)>& fn);
  // fn changes the times of all PEs, row by row.
  void all(const std::function<void(std::span<double>)>& fn);

 private:
  void spread(bool over_columns, bool over_rows);

  int64_t columns_, rows_;
  bool wide_ = false, tall_ = false;  // columns differ, rows differ
  std::vector<double> times_;
};

}  // namespace pfrt::wse
