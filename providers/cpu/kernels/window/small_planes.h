// SPDX-License-Identifier: Apache-2.0
//
// Windows over small planes, for kernels that only add up taps: 16 planes are reordered to lines of
// 16 channels, padded with zeros, so that no lane of a vector is idle, and the results are
// reordered to planes. For AVX2. Immutable; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernels/window/nchw16c_row.h"
#include "providers/cpu/kernels/window/reorder.h"

namespace pfrt::cpu {

class SmallPlanes {
 public:
  // Takes two-dimensional windows over |planes| planes whose lines fit the second-level cache.
  static bool takes(const Window& window, int64_t planes);
  explicit SmallPlanes(const Window& window);

  uint64_t scratch_bytes() const;  // a worker
  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }  // of a row of positions
  // Elements of an image from one row of positions to the next, from one position to the next, and
  // from a position's first pixel to that of each tap.
  int64_t row_step() const { return row_step_; }
  int64_t step() const { return step_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }

  // |plane_of(p)| is the plane of the image that plane |p| of output 0 sees; |compute(first, count,
  // image, out)| makes the lines of |count| planes, 16 or fewer, from |first| on.
  template <typename PlaneOf, typename Compute>
  void run(const Run& run, int64_t planes, const PlaneOf& plane_of, const Compute& compute) const {
    const int64_t positions = rows_ * length_;
    run.parallel((planes + kBlockChannels - 1) / kBlockChannels, [&](int64_t i, uint32_t worker) {
      if (run.stopped()) return;
      const int64_t first = i * kBlockChannels, count = std::min(planes - first, kBlockChannels);
      float* const image = run.scratch<float>(worker);
      float* const lines = image + padded_elements();
      float* const out = run.output<float>(0) + first * positions;
      const float* from[kBlockChannels];
      for (int64_t p = 0; p < count; ++p) from[p] = plane_of(first + p);
      fill(from, count, image);
      compute(first, count, image, lines);
      reorder_to_planes(out, positions, lines, count, positions);
      run.apply_epilogue(first * positions, (first + count) * positions);
    });
  }

  // Row |row| of positions: |op| is for 8 channels, as that of nchw16c_row, and sees zeros beside
  // the image. |image| and |out| are of these channels; |out| is the first row's.
  template <typename Op>
  PFRT_AVX2_FMA void row(int64_t row, const float* image, float* out, const Op& op) const {
    // Number of sums at once: as many as registers hold.
    constexpr int64_t kTogether = sizeof(typename Op::Sum) > sizeof(__m256) ? 4 : 8;
    const float* const in = image + row * row_step_;
    float* const to = out + row * length_ * kBlockChannels;
    for (int64_t p = 0, n; p < length_; p += n) {
      const int64_t left = length_ - p;
      n = left >= kTogether ? kTogether : left >= 4 ? 4 : left;
      if (n == kTogether)
        positions<kTogether>(in, p, to, op);
      else if (n == 4)
        positions<4>(in, p, to, op);
      else if (n == 3)
        positions<3>(in, p, to, op);
      else if (n == 2)
        positions<2>(in, p, to, op);
      else
        positions<1>(in, p, to, op);
    }
  }

 private:
  template <int N, typename Op>
  PFRT_AVX2_FMA_INLINE void positions(const float* row, int64_t p, float* out, const Op& op) const {
    typename Op::Sum sum[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) sum[i] = op.start();
    const auto taps = static_cast<int64_t>(offsets_.size());
    const float* const from = row + p * step_;
    for (int64_t t = 0; t < taps; ++t) {
      const float* const at = from + offsets_[static_cast<size_t>(t)];
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) sum[i] = op.add(sum[i], _mm256_loadu_ps(at + i * step_), t);
    }
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i)
      _mm256_storeu_ps(out + kBlockChannels * (p + i), op.finish(sum[i], p + i));
  }
  int64_t padded_elements() const { return height_ * width_ * kBlockChannels; }
  void fill(const float* const* planes, int64_t count, float* out) const;

  int64_t image_height_, image_width_, top_, left_;
  int64_t height_, width_;  // with padding
  int64_t rows_, length_, row_step_, step_;
  std::vector<int64_t> offsets_;  // of taps
};

}  // namespace pfrt::cpu
