// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/fabric/grid.h"

#include <algorithm>

namespace pfrt::wse {

double Grid::at(int64_t x, int64_t y) const {
  const int64_t width = wide_ ? columns_ : 1;
  return times_[static_cast<size_t>((tall_ ? y * width : 0) + (wide_ ? x : 0))];
}

double Grid::finish() const { return *std::max_element(times_.begin(), times_.end()); }
double Grid::start() const { return *std::min_element(times_.begin(), times_.end()); }

void Grid::work(double cycles) {
  for (double& t : times_) t += cycles;
}

void Grid::spread(bool over_columns, bool over_rows) {
  const bool wide = wide_ || over_columns, tall = tall_ || over_rows;
  if (wide == wide_ && tall == tall_) return;
  const int64_t width = wide ? columns_ : 1, height = tall ? rows_ : 1;
  std::vector<double> times;
  times.reserve(static_cast<size_t>(width * height));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) times.push_back(at(x, y));
  wide_ = wide;
  tall_ = tall;
  times_ = std::move(times);
}

void Grid::each_line(Axis axis, const std::function<void(std::span<double>)>& fn) {
  spread(axis == Axis::kX, axis == Axis::kY);
  if (axis == Axis::kX) {
    const auto width = static_cast<size_t>(columns_);
    for (size_t at = 0; at < times_.size(); at += width) fn({times_.data() + at, width});
    return;
  }
  const size_t width = wide_ ? static_cast<size_t>(columns_) : 1;
  std::vector<double> line(static_cast<size_t>(rows_));
  for (size_t x = 0; x < width; ++x) {
    for (size_t y = 0; y < line.size(); ++y) line[y] = times_[y * width + x];
    fn(line);
    for (size_t y = 0; y < line.size(); ++y) times_[y * width + x] = line[y];
  }
}

void Grid::all(const std::function<void(std::span<double>)>& fn) {
  spread(true, true);
  fn(times_);
}

}  // namespace pfrt::wse
