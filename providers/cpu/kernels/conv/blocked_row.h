// SPDX-License-Identifier: Apache-2.0
//
// A row of windows over an image in blocks of 16 channels (blocked.h), for what has no more to do
// than to add up taps: pooling, depthwise convolutions. For AVX2, which is there where images lie
// in blocks. Pure; thread-safe.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "providers/cpu/kernels/conv/window.h"

#define PFRT_AVX2 __attribute__((target("avx2"), always_inline))

namespace pfrt::cpu {

inline constexpr int64_t kBlockChannels = 16;
inline constexpr int64_t kVectorChannels = 8;

// |op| is for 8 channels of a block and has a type Sum and start(), add(sum, pixel, tap) for each
// tap on the image, in their order, and finish(sum, position). |image| and |out| are of these
// channels; |out| of the row.
template <typename Op>
__attribute__((target("avx2"))) void blocked_row(const WindowRows& rows, int64_t row,
                                                 const float* image, float* out, const Op& op) {
  constexpr int64_t kTogether = 4;
  using Sum = typename Op::Sum;
  const int64_t taps = rows.row_taps(), length = rows.row_length(), stride = rows.stride();
  int64_t inner_begin = 0, inner_end = length;  // positions that have all taps of a row
  for (int64_t x = 0; x < taps; ++x) {
    inner_begin = std::max(inner_begin, rows.span(x).begin);
    inner_end = std::min(inner_end, rows.span(x).end);
  }
  constexpr int64_t kKnown = 16;  // rows of taps whose place is worked out once
  int64_t starts[kKnown];
  for (int64_t t = 0; t < std::min(kKnown, rows.tap_rows()); ++t)
    starts[t] = rows.row_offset(row, t);
  for (int64_t p = 0; p < length;) {
    Sum sum[kTogether];
    const bool inner = p >= inner_begin && p + kTogether <= inner_end;
    const int64_t n = inner ? kTogether : 1;
    for (int64_t i = 0; i < kTogether; ++i) sum[i] = op.start();
    for (int64_t t = 0; t < rows.tap_rows(); ++t) {
      const int64_t start = t < kKnown ? starts[t] : rows.row_offset(row, t);
      if (start < 0) continue;
      for (int64_t x = 0; x < taps; ++x) {
        const WindowRows::Span& span = rows.span(x);
        const float* const at = image + kBlockChannels * (start + span.first + p * stride);
        if (inner) {
          for (int64_t i = 0; i < kTogether; ++i)
            sum[i] =
                op.add(sum[i], _mm256_loadu_ps(at + kBlockChannels * i * stride), t * taps + x);
        } else if (p >= span.begin && p < span.end) {
          sum[0] = op.add(sum[0], _mm256_loadu_ps(at), t * taps + x);
        }
      }
    }
    for (int64_t i = 0; i < n; ++i)
      _mm256_storeu_ps(out + kBlockChannels * (p + i), op.finish(sum[i], p + i));
    p += n;
  }
}

}  // namespace pfrt::cpu
