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
