// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/resize/across.h"

#include <immintrin.h>

#include <algorithm>
#include <utility>

#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLanes = 8;
constexpr int64_t kMostElements = int64_t{1} << 30;  // of a line, so that int32 counts them

PFRT_AVX2_INLINE inline __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Four elements of each of eight lines, transposed.
PFRT_AVX2_INLINE inline void transpose_4(const float* const* lines, __m256* out) {
  __m256 in[4];
  for (int r = 0; r < 4; ++r)
    in[r] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(lines[r])),
                                 _mm_loadu_ps(lines[r + 4]), 1);
  const __m256 a = _mm256_unpacklo_ps(in[0], in[1]), b = _mm256_unpackhi_ps(in[0], in[1]),
               c = _mm256_unpacklo_ps(in[2], in[3]), d = _mm256_unpackhi_ps(in[2], in[3]);
  out[0] = _mm256_shuffle_ps(a, c, _MM_SHUFFLE(1, 0, 1, 0));
  out[1] = _mm256_shuffle_ps(a, c, _MM_SHUFFLE(3, 2, 3, 2));
  out[2] = _mm256_shuffle_ps(b, d, _MM_SHUFFLE(1, 0, 1, 0));
  out[3] = _mm256_shuffle_ps(b, d, _MM_SHUFFLE(3, 2, 3, 2));
}

// |fixed|: the number of lines, 0 where only |count| tells.
template <int fixed>
PFRT_AVX2_FMA void sum_of(const float* const* lines, const float* weights, int64_t count, int64_t n,
                          float* y) {
  const int64_t last = fixed == 0 ? count : fixed;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    __m256 sum = _mm256_mul_ps(_mm256_broadcast_ss(weights), _mm256_loadu_ps(lines[0] + i));
    for (int64_t k = 1; k < last; ++k)
      sum = _mm256_fmadd_ps(_mm256_broadcast_ss(weights + k), _mm256_loadu_ps(lines[k] + i), sum);
    _mm256_storeu_ps(y + i, sum);
  }
  if (i == n) return;
  const __m256i here = first_lanes(n - i);
  __m256 sum = _mm256_mul_ps(_mm256_broadcast_ss(weights), _mm256_maskload_ps(lines[0] + i, here));
  for (int64_t k = 1; k < last; ++k)
    sum = _mm256_fmadd_ps(_mm256_broadcast_ss(weights + k), _mm256_maskload_ps(lines[k] + i, here),
                          sum);
  _mm256_maskstore_ps(y + i, here, sum);
}

}  // namespace

Across Across::make(const Taps& taps, int64_t inner) {
  Across across;
  if (taps.in * inner > kMostElements || taps.out * inner > kMostElements) return across;
  const int64_t elements = taps.in * inner, outputs = taps.out * inner;
  across.count_ = taps.count;
  across.taps_.resize(static_cast<size_t>((outputs + kLanes - 1) / kLanes * taps.count));
  Tap* tap = across.taps_.data();
  for (int64_t first = 0; first < outputs; first += kLanes, tap += taps.count) {
    int64_t low = elements, high = 0;
    // Lanes behind the last output repeat it.
    const auto place = [&](int64_t lane, int64_t k) {
      const int64_t output = std::min(first + lane, outputs - 1);
      return std::pair(output / inner * taps.count + k, output % inner);
    };
    for (int64_t lane = 0; lane < kLanes; ++lane)
      for (int64_t k = 0; k < taps.count; ++k) {
        const auto [at, component] = place(lane, k);
        const int64_t from = taps.index[static_cast<size_t>(at)] * inner + component;
        low = std::min(low, from);
        high = std::max(high, from);
      }
    across.low_ = first == 0 ? low : std::min(across.low_, low);
    across.high_ = std::max(across.high_, high + 1);
    Block block{low, Reach::kFar};
    if (elements >= kLanes && high - std::min(low, elements - kLanes) < kLanes)
      block = {std::min(low, elements - kLanes), Reach::kEight};
    else if (elements >= 2 * kLanes && high - std::min(low, elements - 2 * kLanes) < 2 * kLanes)
      block = {std::min(low, elements - 2 * kLanes), Reach::kSixteen};
    across.far_ = across.far_ || block.reach == Reach::kFar;
    across.blocks_.push_back(block);
    for (int64_t lane = 0; lane < kLanes; ++lane)
      for (int64_t k = 0; k < taps.count; ++k) {
        const auto [at, component] = place(lane, k);
        tap[k].from[lane] = static_cast<int32_t>(taps.index[static_cast<size_t>(at)] * inner +
                                                 component - block.first);
        tap[k].weight[lane] = static_cast<float>(taps.weight[static_cast<size_t>(at)]);
      }
  }
  return across;
}

template <int fixed>
PFRT_AVX2_FMA void Across::run_taps(const float* x, float* y) const {
  const int64_t count = fixed == 0 ? count_ : fixed;
  const Tap* tap = taps_.data();
  for (const Block& block : blocks_) {
    const float* const from = x + block.first;
    __m256 low = _mm256_setzero_ps(), high = low, sum = low;
    if (block.reach != Reach::kFar) low = _mm256_loadu_ps(from);
    if (block.reach == Reach::kSixteen) high = _mm256_loadu_ps(from + kLanes);
    for (int64_t k = 0; k < count; ++k, ++tap) {
      const __m256i lanes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tap->from));
      __m256 elements;
      if (block.reach == Reach::kFar) {
        elements = _mm256_i32gather_ps(from, lanes, 4);
      } else {
        elements = _mm256_permutevar8x32_ps(low, lanes);
        if (block.reach == Reach::kSixteen)
          elements = _mm256_blendv_ps(elements, _mm256_permutevar8x32_ps(high, lanes),
                                      _mm256_castsi256_ps(_mm256_slli_epi32(lanes, 28)));
      }
      const __m256 weight = _mm256_loadu_ps(tap->weight);
      sum = k == 0 ? _mm256_mul_ps(weight, elements) : _mm256_fmadd_ps(weight, elements, sum);
    }
    _mm256_storeu_ps(y, sum);
    y += kLanes;
  }
}

void Across::run(const float* x, float* y) const {
  if (count_ == 2)
    run_taps<2>(x, y);
  else if (count_ == 4)
    run_taps<4>(x, y);
  else
    run_taps<0>(x, y);
}

PFRT_AVX2_FMA void Across::run_eight(const float* const* x, float* scratch, float* y,
                                     int64_t n) const {
  // Element i of all lines is scratch[8 * i], and so on.
  for (int64_t i = low_; i < high_; i += 4) {
    float some[kLanes][4];
    const float* lines[kLanes];
    for (int64_t r = 0; r < kLanes; ++r) {
      lines[r] = x[r] + i;
      if (high_ - i >= 4) continue;
      std::copy_n(lines[r], high_ - i, some[r]);
      lines[r] = some[r];
    }
    __m256 out[4];
    transpose_4(lines, out);
    for (int64_t k = 0; k < std::min<int64_t>(4, high_ - i); ++k)
      _mm256_storeu_ps(scratch + (i + k) * kLanes, out[k]);
  }
  const Tap* tap = taps_.data();
  for (const Block& block : blocks_) {
    const float* const from = scratch + block.first * kLanes;
    alignas(32) float sums[kLanes][kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      __m256 sum = _mm256_mul_ps(_mm256_broadcast_ss(&tap[0].weight[lane]),
                                 _mm256_loadu_ps(from + tap[0].from[lane] * kLanes));
      for (int64_t k = 1; k < count_; ++k)
        sum = _mm256_fmadd_ps(_mm256_broadcast_ss(&tap[k].weight[lane]),
                              _mm256_loadu_ps(from + tap[k].from[lane] * kLanes), sum);
      _mm256_store_ps(sums[lane], sum);
    }
    const int64_t first = (&block - blocks_.data()) * kLanes;
    const __m256i here = first_lanes(std::min(kLanes, n - first));
    for (int half = 0; half < 2; ++half) {
      const float* lines[kLanes];
      for (int64_t r = 0; r < kLanes; ++r) lines[r] = sums[r] + 4 * half;
      __m256 out[4];
      transpose_4(lines, out);
      for (int64_t r = 0; r < 4; ++r) {
        float* const to = y + (4 * half + r) * n + first;
        if (n - first >= kLanes)
          _mm256_storeu_ps(to, out[r]);
        else
          _mm256_maskstore_ps(to, here, out[r]);
      }
    }
    tap += count_;
  }
}

void sum_lines(const float* const* lines, const float* weights, int64_t count, int64_t n,
               float* y) {
  if (count == 1)
    sum_of<1>(lines, weights, count, n, y);
  else if (count == 2)
    sum_of<2>(lines, weights, count, n, y);
  else if (count == 4)
    sum_of<4>(lines, weights, count, n, y);
  else
    sum_of<0>(lines, weights, count, n, y);
}

}  // namespace pfrt::cpu
