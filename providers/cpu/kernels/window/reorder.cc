// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/window/reorder.h"

#include <immintrin.h>

#include <algorithm>

#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLine = 16, kLanes = 8;
constexpr int32_t kOnes[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1};

PFRT_AVX2 inline __m256i first_lanes(int64_t n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnes + kLanes - n));
}

// Four elements of row |r| in the low half and four of row |r| + 4 in the high half: what is left
// of a transposition then stays within halves.
PFRT_AVX2 inline __m256 halves(const float* low, const float* high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

// Two 4 x 4 blocks, in the low and high halves of four rows, each transposed.
PFRT_AVX2 inline void transpose_halves(const __m256 (&in)[4], __m256* out) {
  const __m256 a = _mm256_unpacklo_ps(in[0], in[1]), b = _mm256_unpackhi_ps(in[0], in[1]);
  const __m256 c = _mm256_unpacklo_ps(in[2], in[3]), d = _mm256_unpackhi_ps(in[2], in[3]);
  out[0] = _mm256_shuffle_ps(a, c, _MM_SHUFFLE(1, 0, 1, 0));
  out[1] = _mm256_shuffle_ps(a, c, _MM_SHUFFLE(3, 2, 3, 2));
  out[2] = _mm256_shuffle_ps(b, d, _MM_SHUFFLE(1, 0, 1, 0));
  out[3] = _mm256_shuffle_ps(b, d, _MM_SHUFFLE(3, 2, 3, 2));
}

// Transposes 8 rows of 8 to |out|.
PFRT_AVX2 inline void transpose(const float* const (&rows)[kLanes], __m256* out) {
#pragma GCC unroll 2
  for (int64_t half = 0; half < kLanes; half += 4) {
    const __m256 in[4] = {
        halves(rows[0] + half, rows[4] + half), halves(rows[1] + half, rows[5] + half),
        halves(rows[2] + half, rows[6] + half), halves(rows[3] + half, rows[7] + half)};
    transpose_halves(in, out + half);
  }
}

// Transposes 8 rows, reading only the first |n| elements of each.
PFRT_AVX2 inline void transpose_some(const float* const (&rows)[kLanes], int64_t n, __m256* out) {
  const __m256i mask = first_lanes(n);
  alignas(32) float copy[kLanes][kLanes];
  const float* from[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) {
    _mm256_store_ps(copy[j], _mm256_maskload_ps(rows[j], mask));
    from[j] = copy[j];
  }
  transpose({from[0], from[1], from[2], from[3], from[4], from[5], from[6], from[7]}, out);
}

// Lines of V vectors or less. Whole vectors are stored: what they write beyond a line is
// overwritten by the next ones. Returns how many lines that leaves.
template <int64_t V>
PFRT_AVX2 int64_t short_lines(float* out, const float* planes, int64_t plane, int64_t count,
                              int64_t n) {
  const float* rows[V][kLanes];
  for (int64_t c = 0; c < V * kLanes; ++c)
    rows[c / kLanes][c % kLanes] = planes + std::min(c, count - 1) * plane;
  int64_t left = n;
  for (; left * count >= (kLanes - 1) * count + V * kLanes; left -= kLanes) {
    __m256 lines[V][kLanes];
#pragma GCC unroll 2
    for (int64_t v = 0; v < V; ++v) transpose(rows[v], lines[v]);
#pragma GCC unroll 8
    for (int64_t j = 0; j < kLanes; ++j, out += count)
#pragma GCC unroll 2
      for (int64_t v = 0; v < V; ++v) _mm256_storeu_ps(out + v * kLanes, lines[v][j]);
    for (auto& of_vector : rows)
      for (const float*& row : of_vector) row += kLanes;
  }
  return left;
}

}  // namespace

void reorder_to_pixels(float* out, int64_t line, const float* planes, int64_t plane, int64_t count,
                       int64_t n) {
  const float* each[kLine];
  for (int64_t c = 0; c < count; ++c) each[c] = planes + c * plane;
  reorder_to_pixels(out, line, each, count, n, n, 0);
}

PFRT_AVX2 void reorder_to_pixels(float* out, int64_t line, const float* const* planes,
                                 int64_t count, int64_t n, int64_t row, int64_t skipped) {
  for (int64_t c = 0; c < line; c += kLanes) {
    const int64_t channels = std::clamp<int64_t>(count - c, 0, kLanes);
    const __m256 kept = _mm256_castsi256_ps(first_lanes(channels));
    const auto from = [&](int64_t j) { return planes[std::min(c + j, count - 1)]; };
    const float* rows[kLanes] = {from(0), from(1), from(2), from(3),
                                 from(4), from(5), from(6), from(7)};
    float* to = out + c;
    int64_t in_row = row;
    const auto put = [&](__m256 v) PFRT_AVX2 {
      _mm256_storeu_ps(to, v);
      to += line;
      if (--in_row == 0) to += skipped * line, in_row = row;
    };
    for (int64_t i = 0; channels == 0 && i < n; ++i) put(_mm256_setzero_ps());
    for (int64_t left = n; channels > 0 && left > 0; left -= kLanes) {
      __m256 lines[kLanes];
      if (left >= kLanes)
        transpose(rows, lines);
      else
        transpose_some(rows, left, lines);
      if (left >= kLanes && in_row > kLanes) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < kLanes; ++i)
          _mm256_storeu_ps(to + i * line, _mm256_and_ps(lines[i], kept));
        to += kLanes * line;
        in_row -= kLanes;
      } else {
        for (int64_t i = 0; i < std::min(left, kLanes); ++i) put(_mm256_and_ps(lines[i], kept));
      }
      for (const float*& from_row : rows) from_row += kLanes;
    }
  }
}

void reorder_to_short_pixels(float* out, const float* planes, int64_t plane, int64_t count,
                             int64_t n) {
  const int64_t left = count <= kLanes ? short_lines<1>(out, planes, plane, count, n)
                                       : short_lines<2>(out, planes, plane, count, n);
  for (int64_t c = 0; c < count; ++c)
    for (int64_t j = n - left; j < n; ++j) out[j * count + c] = planes[c * plane + j];
}

PFRT_AVX2 void reorder_to_planes(float* out, int64_t plane, const float* lines, int64_t count,
                                 int64_t n) {
  int64_t c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    float* const to = out + c * plane;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const float* const at = lines + kLine * i + c;
      __m256 planes[kLanes];
      transpose({at, at + kLine, at + 2 * kLine, at + 3 * kLine, at + 4 * kLine, at + 5 * kLine,
                 at + 6 * kLine, at + 7 * kLine},
                planes);
#pragma GCC unroll 8
      for (int64_t j = 0; j < kLanes; ++j) _mm256_storeu_ps(to + j * plane + i, planes[j]);
    }
    for (; i + 4 <= n; i += 4) {
      const float* const at = lines + kLine * i + c;
      const __m256 in[4] = {_mm256_loadu_ps(at), _mm256_loadu_ps(at + kLine),
                            _mm256_loadu_ps(at + 2 * kLine), _mm256_loadu_ps(at + 3 * kLine)};
      __m256 planes[4];
      transpose_halves(in, planes);
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j) {
        _mm_storeu_ps(to + j * plane + i, _mm256_castps256_ps128(planes[j]));
        _mm_storeu_ps(to + (j + 4) * plane + i, _mm256_extractf128_ps(planes[j], 1));
      }
    }
    for (; i < n; ++i)
      for (int64_t j = 0; j < kLanes; ++j) to[j * plane + i] = lines[kLine * i + c + j];
  }
  for (; c < count; ++c)
    for (int64_t i = 0; i < n; ++i) out[c * plane + i] = lines[kLine * i + c];
}

}  // namespace pfrt::cpu
