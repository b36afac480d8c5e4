// SPDX-License-Identifier: Apache-2.0
//
// A band of a plane under a two-dimensional window, for kernels that only add up taps: depthwise
// convolutions, average pooling. Rows are padded with zeros, and with a stride s the columns c, c +
// s, c + 2 s and so on of a row are contiguous, so that a tap of 8 neighbouring positions is one
// load. For AVX2. Immutable; thread-safe.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernels/window/nchw16c_row.h"
#include "providers/cpu/kernels/window/window.h"

namespace pfrt::cpu {

class PlaneBand {
 public:
  static constexpr int64_t kLanes = 8, kTogether = 4;  // positions of a vector; vectors

  explicit PlaneBand(const Window& window);

  int64_t rows() const { return band_; }  // of positions
  int64_t length() const { return length_; }
  int64_t vectors() const { return (length_ + kLanes - 1) / kLanes; }  // of a row
  uint64_t bytes() const {
    return static_cast<uint64_t>(band_rows_ * pitch_ + kSlack) * sizeof(float);
  }
  // Writes the band for |rows| rows of positions from |top| on.
  void fill(const float* plane, int64_t top, int64_t rows, float* out) const;

  int64_t row_step() const { return row_step_; }  // from one row of positions to the next
  const std::vector<int64_t>& offsets() const { return offsets_; }  // of taps

 private:
  static constexpr int64_t kSlack = 2 * kLanes;  // elements that may be written beyond a row
  struct Phase {
    int64_t begin, count, column;  // of the pixels, and where they are in their row
  };
  std::vector<Phase> phases_;
  int64_t height_, width_, pad_y_, pad_x_, stride_y_, stride_x_, reach_;
  int64_t length_, phase_pitch_, pitch_;
  int64_t band_, band_rows_, row_step_;
  std::vector<int64_t> offsets_;
};

constexpr size_t kManyTaps = 4096;

// V vectors of R rows of positions, |step| apart in the band and |out_step| in |out|.
template <int R, int V, typename Op>
PFRT_AVX2_FMA inline void band_piece(const std::vector<int64_t>& offsets, const float* in,
                                     int64_t step, const Op* ops, int64_t position, float* out,
                                     int64_t out_step) {
  typename Op::Sum sum[R][V];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[r][v] = ops[r].start();
  const size_t taps = offsets.size();
  for (size_t t = 0; t < taps; ++t) {
    const auto tap = ops[0].tap(t);
    const float* const at = in + offsets[t];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        sum[r][v] =
            ops[r].add(sum[r][v], _mm256_loadu_ps(at + r * step + v * PlaneBand::kLanes), tap);
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      _mm256_storeu_ps(out + r * out_step + v * PlaneBand::kLanes,
                       ops[r].finish(sum[r][v], position + v * PlaneBand::kLanes));
}

// Computes rows [top, top + rows) of positions from |lines|, which fill wrote; |out| is the first
// row. |op_of(row)| makes the Op of a row: a type Sum and start(), tap(index), add(sum, pixels,
// tap) for each tap in order, with zeros for pixels beside the image, and finish(sum, first
// position). Leaves early when |run| is stopped.
template <typename OpOf>
void band_rows(const Run& run, const PlaneBand& band, int64_t top, int64_t rows, const float* lines,
               float* out, const OpOf& op_of) {
  using Op = decltype(op_of(int64_t{0}));
  constexpr int64_t kLanes = PlaneBand::kLanes, kTogether = PlaneBand::kTogether;
  const std::vector<int64_t>& offsets = band.offsets();
  const int64_t length = band.length(), step = band.row_step();
  const int64_t all = band.vectors(), end = rows * length;
  // With so many taps, looking at the run once a vector costs nothing.
  const bool large = offsets.size() > kManyTaps;
  const auto vectors = [&](int64_t n, const float* in, const Op* op, int64_t at, float* to) {
    if (large && run.stopped()) return;
    switch (n) {
      case 1:
        return band_piece<1, 1>(offsets, in, 0, op, at, to, 0);
      case 2:
        return band_piece<1, 2>(offsets, in, 0, op, at, to, 0);
      case 3:
        return band_piece<1, 3>(offsets, in, 0, op, at, to, 0);
      default:
        return band_piece<1, 4>(offsets, in, 0, op, at, to, 0);
    }
  };
  for (int64_t r = 0; r < rows && !(large && run.stopped());) {
    const float* const in = lines + r * step;
    float* const to = out + r * length;
    // Vectors that are written beyond a row are overwritten by the next rows.
    const auto fits = [&](int64_t n) { return (r + n - 1) * length + all * kLanes <= end; };
    if (all == 1 && fits(4)) {
      const Op ops[] = {op_of(top + r), op_of(top + r + 1), op_of(top + r + 2), op_of(top + r + 3)};
      band_piece<4, 1>(offsets, in, step, ops, 0, to, length);
      r += 4;
      continue;
    }
    if (all <= 2 && fits(2)) {
      const Op ops[] = {op_of(top + r), op_of(top + r + 1)};
      if (all == 1)
        band_piece<2, 1>(offsets, in, step, ops, 0, to, length);
      else
        band_piece<2, 2>(offsets, in, step, ops, 0, to, length);
      r += 2;
      continue;
    }
    const Op op = op_of(top + r);
    const int64_t whole = fits(1) ? all : all - 1;
    for (int64_t v = 0; v < whole; v += kTogether)
      vectors(std::min(kTogether, whole - v), in + v * kLanes, &op, v * kLanes, to + v * kLanes);
    if (whole < all) {
      float rest[kLanes];
      vectors(1, in + whole * kLanes, &op, whole * kLanes, rest);
      std::copy_n(rest, length - whole * kLanes, to + whole * kLanes);
    }
    ++r;
  }
}

}  // namespace pfrt::cpu
