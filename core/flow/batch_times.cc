// SPDX-License-Identifier: Apache-2.0
#include "core/flow/batch_times.h"

#include <algorithm>

namespace pfrt {
namespace {

constexpr double kWeight = 0.125;  // of a new measurement among those of its size

}  // namespace

void BatchTimes::add(int64_t rows, double ns) {
  const auto at = std::ranges::lower_bound(sizes_, rows, {}, &Size::rows);
  if (at == sizes_.end() || at->rows != rows) {
    sizes_.insert(at, {rows, ns, 1});
    return;
  }
  // The first run of a size plans it, and tells nothing of the later ones.
  at->ns = ++at->runs == 2 ? ns : at->ns + kWeight * (ns - at->ns);
}

double BatchTimes::of(int64_t rows) const {
  if (sizes_.empty() || rows <= 0) return 0;
  const auto above = std::ranges::lower_bound(sizes_, rows, {}, &Size::rows);
  if (above != sizes_.end() && above->rows == rows) return above->ns;
  if (above == sizes_.begin()) return above->ns;
  const Size& below = above[-1];
  if (above == sizes_.end())
    return below.ns * static_cast<double>(rows) / static_cast<double>(below.rows);
  const double part =
      static_cast<double>(rows - below.rows) / static_cast<double>(above->rows - below.rows);
  return below.ns + part * (above->ns - below.ns);
}

double BatchTimes::worth_waiting(int64_t rows) const {
  if (!known() || rows <= 0) return 0;
  const auto n = static_cast<double>(rows);
  // With w to wait, n + 1 rows leave in w + t(n + 1); without, n leave in t(n).
  return std::max(0.0, (n + 1) / n * of(rows) - of(rows + 1));
}

}  // namespace pfrt
