// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/window/plane_band.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLanes = PlaneBand::kLanes;
constexpr int64_t kBandBytes = 24 << 10;  // stays in the first-level cache
constexpr int32_t kOnes[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1};

__attribute__((target("avx2"), always_inline)) inline __m256i first_lanes(int64_t n) {
  const int64_t skipped = kLanes - std::clamp<int64_t>(n, 0, kLanes);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnes + skipped));
}

__attribute__((target("avx2"), always_inline)) inline __m256 every_second(__m256 a, __m256 b) {
  // Elements 0, 2, 4, 6 of |a| and 1, 3, 5, 7 of |b|.
  const __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 2, 0)));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, _MM_SHUFFLE(3, 1, 2, 0)));
}

// Copies |n| pixels, |stride| apart, and writes zeros to the end of a vector where the stride is 1
// or 2. Returns the end of what is written.
__attribute__((target("avx2"), always_inline)) inline float* copy(const float* from, int64_t n,
                                                                  int64_t stride, float* to) {
  if (stride == 1) {
    for (; n >= kLanes; n -= kLanes, from += kLanes, to += kLanes)
      _mm256_storeu_ps(to, _mm256_loadu_ps(from));
    if (n <= 0) return to;
    _mm256_storeu_ps(to, _mm256_maskload_ps(from, first_lanes(n)));
    return to + kLanes;
  }
  if (stride > 2) {
    for (int64_t i = 0; i < n; ++i) *to++ = from[i * stride];
    return to;
  }
  for (; n >= kLanes; n -= kLanes, from += 2 * kLanes, to += kLanes)
    _mm256_storeu_ps(to, every_second(_mm256_loadu_ps(from), _mm256_loadu_ps(from + kLanes - 1)));
  if (n <= 0) return to;
  const int64_t pixels = 2 * n - 1;
  const __m256 low = _mm256_maskload_ps(from, first_lanes(pixels));
  const __m256 high = _mm256_maskload_ps(from + kLanes - 1, first_lanes(pixels - kLanes + 1));
  _mm256_storeu_ps(to, every_second(low, high));
  return to + kLanes;
}

// Vectors of zeros to |end| or beyond.
__attribute__((target("avx2"), always_inline)) inline void clear(float* to, const float* end) {
  for (; to < end; to += kLanes) _mm256_storeu_ps(to, _mm256_setzero_ps());
}

}  // namespace

PlaneBand::PlaneBand(const Window& w)
    : height_(w.image[0]),
      width_(w.image[1]),
      pad_y_(w.pads[0]),
      pad_x_(w.pads[1]),
      stride_y_(w.strides[0]),
      stride_x_(w.strides[1]),
      reach_((w.kernel[0] - 1) * w.dilations[0] + 1),
      length_(w.positions[1]) {
  const int64_t columns = (w.kernel[1] - 1) * w.dilations[1];
  phase_pitch_ = vectors() * kLanes + columns / stride_x_;
  for (int64_t phase = 0; phase < std::min(stride_x_, columns + 1); ++phase) {
    // Element u is column u * stride + first.
    const int64_t first = phase - pad_x_;
    const int64_t begin = std::clamp<int64_t>((stride_x_ - 1 - first) / stride_x_, 0, phase_pitch_);
    const int64_t end =
        std::clamp((width_ - first + stride_x_ - 1) / stride_x_, begin, phase_pitch_);
    phases_.push_back({begin, end - begin, begin * stride_x_ + first});
  }
  pitch_ = static_cast<int64_t>(phases_.size()) * phase_pitch_;
  band_ = std::clamp((kBandBytes / (4 * pitch_) - reach_) / stride_y_ + 1, int64_t{1},
                     std::max<int64_t>(w.positions[0], 1));
  band_rows_ = (band_ - 1) * stride_y_ + reach_;
  row_step_ = stride_y_ * pitch_;
  for (int64_t y = 0; y < w.kernel[0]; ++y)
    for (int64_t x = 0; x < w.kernel[1]; ++x) {
      const int64_t column = x * w.dilations[1];
      offsets_.push_back(y * w.dilations[0] * pitch_ + column % stride_x_ * phase_pitch_ +
                         column / stride_x_);
    }
}

// Filled from the first row on: what is written beyond a phase is overwritten by the next one.
__attribute__((target("avx2"))) void PlaneBand::fill(const float* plane, int64_t top, int64_t rows,
                                                     float* out) const {
  const int64_t count = (rows - 1) * stride_y_ + reach_, first = top * stride_y_ - pad_y_;
  for (int64_t y = first; y < first + count; ++y) {
    if (y < 0 || y >= height_) {
      clear(out, out + pitch_);
      out += pitch_;
      continue;
    }
    const float* const line = plane + y * width_;
    for (const Phase& phase : phases_) {
      float* const to = out + phase.begin;
      clear(out, to);
      out += phase_pitch_;
      clear(copy(line + phase.column, phase.count, stride_x_, to), out);
    }
  }
}

}  // namespace pfrt::cpu
