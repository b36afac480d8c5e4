// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/pool/max_rows.h"

#include <algorithm>
#include <limits>
#include <span>

#include "providers/cpu/elements/greater.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kMostStarts = 1 << 16;
constexpr float kLeast = -std::numeric_limits<float>::infinity();

// Elements 0, Stride, 2 * Stride... from |at| on; nothing after the last of them is read.
template <int Stride>
struct Eight {
  static constexpr int64_t kCount = 8;
  using Vector = __m256;
  PFRT_AVX2_INLINE static Vector least() { return _mm256_set1_ps(kLeast); }
  PFRT_AVX2_INLINE static Vector load(const float* at) {
    if constexpr (Stride == 1) {
      return _mm256_loadu_ps(at);
    } else if constexpr (Stride == 2) {
      const __m256 mixed = _mm256_shuffle_ps(_mm256_loadu_ps(at), _mm256_loadu_ps(at + 7), 0xd8);
      return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
    } else {
      // Elements 0, 3, 6 and 9, 12, 15 stand at 0, 3, 6 and 1, 4, 7; 18 and 21 at 4 and 7.
      const __m256 low = _mm256_blend_ps(_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8), 0x92);
      const __m256 first = _mm256_permutevar8x32_ps(low, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 0, 0));
      const __m256 last = _mm256_permutevar8x32_ps(_mm256_loadu_ps(at + 14),
                                                   _mm256_setr_epi32(0, 0, 0, 0, 0, 0, 4, 7));
      return _mm256_blend_ps(first, last, 0xc0);
    }
  }
  PFRT_AVX2_INLINE static Vector greater(Vector x, Vector most) { return greater_or_nan(x, most); }
  PFRT_AVX2_INLINE static void store(float* to, Vector v) { _mm256_storeu_ps(to, v); }
};

template <int Stride>
struct FourOf {
  static constexpr int64_t kCount = 4;
  using Vector = __m128;
  PFRT_AVX2_INLINE static Vector least() { return _mm_set1_ps(kLeast); }
  PFRT_AVX2_INLINE static Vector load(const float* at) {
    if constexpr (Stride == 1) return _mm_loadu_ps(at);
    if constexpr (Stride == 2) return _mm_shuffle_ps(_mm_loadu_ps(at), _mm_loadu_ps(at + 3), 0xd8);
    return _mm_shuffle_ps(_mm_loadu_ps(at), _mm_loadu_ps(at + 6), 0xcc);
  }
  PFRT_AVX2_INLINE static Vector greater(Vector x, Vector most) {
    return _mm_or_ps(_mm_max_ps(x, most), _mm_cmpunord_ps(x, x));
  }
  PFRT_AVX2_INLINE static void store(float* to, Vector v) { _mm_storeu_ps(to, v); }
};

template <typename Lanes, int Stride>
PFRT_AVX2_INLINE inline void positions(const WindowRows& rows, std::span<const int64_t> starts,
                                       int64_t first, const float* plane, float* line) {
  auto most = Lanes::least();
  for (const int64_t start : starts)
    for (int64_t x = 0; x < rows.row_taps(); ++x)
      most = Lanes::greater(Lanes::load(plane + start + rows.span(x).first + first * Stride), most);
  Lanes::store(line + first, most);
}

// Positions [begin, end). The last vector may overlap the one before.
template <typename Lanes, int Stride>
PFRT_AVX2_INLINE inline void columns(Pace& pace, const WindowRows& rows,
                                     std::span<const int64_t> starts, int64_t begin, int64_t end,
                                     const float* plane, float* line) {
  const int64_t taps = static_cast<int64_t>(starts.size()) * rows.row_taps();
  int64_t p = begin;
  for (; p + Lanes::kCount <= end && !pace.stopped(taps); p += Lanes::kCount)
    positions<Lanes, Stride>(rows, starts, p, plane, line);
  if (p < end) positions<Lanes, Stride>(rows, starts, end - Lanes::kCount, plane, line);
}

template <int Stride>
__attribute__((target("avx2"))) void inner(Pace& pace, const WindowRows& rows,
                                           std::span<const int64_t> starts, int64_t begin,
                                           int64_t end, const float* plane, float* line) {
  if (end - begin >= Eight<Stride>::kCount)
    columns<Eight<Stride>, Stride>(pace, rows, starts, begin, end, plane, line);
  else
    columns<FourOf<Stride>, Stride>(pace, rows, starts, begin, end, plane, line);
}

}  // namespace

bool MaxRows::takes(const WindowRows& rows) {
  return isa() >= Isa::kAvx2 && rows.stride() <= 3 && rows.rows() <= kMostStarts &&
         rows.tap_rows() <= kMostStarts / std::max<int64_t>(1, rows.rows());
}

MaxRows::MaxRows(const WindowRows& rows) : rows_(rows), inner_end_(rows.row_length()) {
  first_.push_back(0);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    for (int64_t t = 0; t < rows.tap_rows(); ++t)
      if (const int64_t start = rows.row_offset(r, t); start >= 0) starts_.push_back(start);
    first_.push_back(static_cast<int64_t>(starts_.size()));
  }
  for (int64_t x = 0; x < rows.row_taps(); ++x) {
    inner_begin_ = std::max(inner_begin_, rows.span(x).begin);
    inner_end_ = std::min(inner_end_, rows.span(x).end);
  }
  if (inner_end_ - inner_begin_ < FourOf<1>::kCount) inner_begin_ = inner_end_ = 0;
}

void MaxRows::run(Pace& pace, int64_t row, const float* plane, float* line) const {
  const auto at = [&](int64_t r) { return static_cast<size_t>(first_[static_cast<size_t>(r)]); };
  const std::span<const int64_t> starts(starts_.data() + at(row), at(row + 1) - at(row));
  const int64_t stride = rows_.stride();
  const auto one = [&](int64_t p) {
    if (pace.stopped(static_cast<int64_t>(starts.size()) * rows_.row_taps())) return;
    float most = kLeast;
    for (const int64_t start : starts)
      for (int64_t x = 0; x < rows_.row_taps(); ++x) {
        const WindowRows::Span& span = rows_.span(x);
        if (p < span.begin || p >= span.end) continue;
        most = greater_or_nan(plane[start + span.first + p * stride], most);
      }
    line[p] = most;
  };
  for (int64_t p = 0; p < inner_begin_; ++p) one(p);
  for (int64_t p = inner_end_; p < rows_.row_length(); ++p) one(p);
  if (inner_begin_ == inner_end_) return;
  if (stride == 1)
    inner<1>(pace, rows_, starts, inner_begin_, inner_end_, plane, line);
  else if (stride == 2)
    inner<2>(pace, rows_, starts, inner_begin_, inner_end_, plane, line);
  else
    inner<3>(pace, rows_, starts, inner_begin_, inner_end_, plane, line);
}

}  // namespace pfrt::cpu
