// SPDX-License-Identifier: Apache-2.0
//
// A row of windows over an image in nChw16c (program/nchw16c.h), for kernels that only add up taps:
// pooling, depthwise convolutions. For AVX2, which is there wherever images are nChw16c. Pure;
// thread-safe.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/window/window.h"

namespace pfrt::cpu {

inline constexpr int64_t kBlockChannels = 16;
inline constexpr int64_t kVectorChannels = 8;

// Offsets of the rows of pixels that each tap row sees at a row of positions; -1 outside. The first
// ones are computed once.
class TapRows {
 public:
  TapRows(const WindowRows& rows, int64_t row) : rows_(rows), row_(row) {
    for (int64_t t = 0; t < std::min(kKnown, rows.tap_rows()); ++t)
      known_[t] = rows.row_offset(row, t);
  }
  int64_t operator[](int64_t t) const { return t < kKnown ? known_[t] : rows_.row_offset(row_, t); }

 private:
  static constexpr int64_t kKnown = 16;
  const WindowRows& rows_;
  int64_t row_, known_[kKnown];
};

// N positions from |p| on, each with all taps of a row where |inner|.
template <int N, bool inner, typename Op>
PFRT_AVX2_FMA_INLINE inline void nchw16c_positions(const WindowRows& rows, const TapRows& starts,
                                                   int64_t p, const float* image, float* out,
                                                   const Op& op) {
  const int64_t taps = rows.row_taps(), step = kBlockChannels * rows.stride();
  typename Op::Sum sum[N];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) sum[i] = op.start();
  for (int64_t t = 0; t < rows.tap_rows(); ++t) {
    const int64_t start = starts[t];
    if (start < 0) continue;
    const float* const line = image + kBlockChannels * start + p * step;
    for (int64_t x = 0; x < taps; ++x) {
      const WindowRows::Span& span = rows.span(x);
      const float* const at = line + kBlockChannels * span.first;
      if (!inner && (p < span.begin || p >= span.end)) continue;
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i)
        sum[i] = op.add(sum[i], _mm256_loadu_ps(at + i * step), t * taps + x);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
    _mm256_storeu_ps(out + kBlockChannels * (p + i), op.finish(sum[i], p + i));
}

// |op| computes 8 channels. It has a type Sum and start(), add(sum, pixel, tap) for each tap on the
// image, in order, and finish(sum, position). |image| and |out| begin at these channels; |out| is
// the row's.
template <typename Op>
PFRT_AVX2_FMA void nchw16c_row(const WindowRows& rows, int64_t row, const float* image, float* out,
                               const Op& op) {
  const int64_t length = rows.row_length();
  int64_t begin = 0, end = length;  // positions that have all taps of a row
  for (int64_t x = 0; x < rows.row_taps(); ++x) {
    begin = std::max(begin, rows.span(x).begin);
    end = std::min(end, rows.span(x).end);
  }
  end = std::max(begin, end);
  const TapRows starts(rows, row);
  int64_t p = 0;
  for (; p < begin; ++p) nchw16c_positions<1, false>(rows, starts, p, image, out, op);
  // Takes as many sums at once as registers hold.
  if constexpr (sizeof(typename Op::Sum) == sizeof(__m256))
    for (; p + 8 <= end; p += 8) nchw16c_positions<8, true>(rows, starts, p, image, out, op);
  for (; p + 4 <= end; p += 4) nchw16c_positions<4, true>(rows, starts, p, image, out, op);
  if (p + 2 <= end) {
    nchw16c_positions<2, true>(rows, starts, p, image, out, op);
    p += 2;
  }
  for (; p < length; ++p) nchw16c_positions<1, false>(rows, starts, p, image, out, op);
}

}  // namespace pfrt::cpu
