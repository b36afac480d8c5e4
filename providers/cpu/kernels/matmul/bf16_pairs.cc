// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/bf16_pairs.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "providers/cpu/kernels/matmul/split_terms.h"

namespace pfrt::cpu {

DotSums trusted_sums(uint16_t largest, float reach) {
  constexpr float kMost = 0x1p126f;  // sums may err, and their roundings up to twice this
  if (std::isnan(reach)) return DotSums::kNone;
  const float above = std::bit_cast<float>((static_cast<uint32_t>(largest) << 16) + 0xffff);
  return largest == 0 || above * reach <= kMost ? DotSums::kRight : DotSums::kIfFinite;
}

float reach_of(const uint32_t* panel, int64_t lanes) {
  constexpr int64_t kPanel = 16;
  double sums[kPanel] = {};
  uint32_t largest[kPanel] = {};
  for (int64_t i = 0; i < lanes; i += kPanel)
    for (int64_t j = 0; j < kPanel; ++j) {
      const uint32_t low = panel[i + j] << 16 & 0x7fff0000, high = panel[i + j] & 0x7fff0000;
      largest[j] = std::max({largest[j], low, high});
      sums[j] += static_cast<double>(std::bit_cast<float>(low)) +
                 static_cast<double>(std::bit_cast<float>(high));
    }
  double reach = 0;
  for (int64_t j = 0; j < kPanel; ++j) {
    if (!large_enough(static_cast<uint16_t>(largest[j] >> 16)))
      return std::numeric_limits<float>::quiet_NaN();
    // NaN among the weights reaches as far as infinity.
    reach = sums[j] <= reach ? reach : std::isnan(sums[j]) ? HUGE_VAL : sums[j];
  }
  return reach <= static_cast<double>(std::numeric_limits<float>::max())
             ? static_cast<float>(reach)
             : std::numeric_limits<float>::infinity();
}

}  // namespace pfrt::cpu

#include "providers/cpu/isa/avx512_bf16_begin.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLanes = 16;

inline __mmask16 lanes(int64_t n) {
  return static_cast<__mmask16>(n >= kLanes ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

// The larger of bits without signs, lane by lane.
inline __m512i larger(__m512i most, __m512 x) {
  const __m512i bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
  return _mm512_maskz_max_epi32(0xffff, most, bits);
}

inline uint16_t upper_half_of_largest(__m512i most) {
  __m256i m =
      _mm256_max_epi32(_mm512_castsi512_si256(most), _mm512_maskz_extracti64x4_epi64(0xf, most, 1));
  m = _mm256_max_epi32(m, _mm256_permute4x64_epi64(m, _MM_SHUFFLE(1, 0, 3, 2)));
  m = _mm256_max_epi32(m, _mm256_shuffle_epi32(m, _MM_SHUFFLE(1, 0, 3, 2)));
  m = _mm256_max_epi32(m, _mm256_shuffle_epi32(m, _MM_SHUFFLE(2, 3, 0, 1)));
  return static_cast<uint16_t>(static_cast<uint32_t>(_mm256_cvtsi256_si32(m)) >> 16);
}

inline __m512i pairs_of(__m512 low, __m512 high) { return __m512i(_mm512_cvtne2ps_pbh(high, low)); }

// Rounded, in the lower half of each lane.
inline __m512i rounded(__m512 x) {
  return _mm512_maskz_cvtepu16_epi32(0xffff, __m256i(_mm512_cvtneps_pbh(x)));
}

}  // namespace

bool all_finite(const float* sums, int64_t n) {
  constexpr int kNanOrInfinity = 0x99;
  unsigned wrong = 0;
  for (int64_t i = 0; i < n; i += kLanes)
    wrong |= _mm512_fpclass_ps_mask(_mm512_maskz_loadu_ps(lanes(n - i), sums + i), kNanOrInfinity);
  return wrong == 0;
}

uint16_t to_bf16_pairs(const float* in, int64_t n, uint32_t* out) {
  __m512i most = _mm512_setzero_si512();
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const __m512 low = _mm512_loadu_ps(in + i), high = _mm512_loadu_ps(in + i + kLanes);
    most = larger(larger(most, low), high);
    _mm512_storeu_si512(out + i / 2, pairs_of(low, high));
  }
  if (i < n) {
    const __m512 low = _mm512_maskz_loadu_ps(lanes(n - i), in + i);
    const __m512 high = n - i > kLanes
                            ? _mm512_maskz_loadu_ps(lanes(n - i - kLanes), in + i + kLanes)
                            : _mm512_setzero_ps();
    most = larger(larger(most, low), high);
    _mm512_mask_storeu_epi32(out + i / 2, lanes(bf16_pairs(n - i)), pairs_of(low, high));
  }
  return upper_half_of_largest(most);
}

uint16_t zip_bf16_pairs(const float* first, const float* second, int64_t n, uint32_t* out) {
  __m512i most = _mm512_setzero_si512();
  for (int64_t i = 0; i < n; i += kLanes) {
    const __mmask16 here = lanes(n - i);
    const __m512 low = _mm512_maskz_loadu_ps(here, first + i);
    const __m512 high =
        second != nullptr ? _mm512_maskz_loadu_ps(here, second + i) : _mm512_setzero_ps();
    most = larger(larger(most, low), high);
    _mm512_mask_storeu_epi32(out + i, here,
                             _mm512_or_si512(rounded(low), _mm512_slli_epi32(rounded(high), 16)));
  }
  return upper_half_of_largest(most);
}

void pair_lines(const float* in, int64_t lines, uint32_t* out) {
  // Numbers of both lines by turns.
  alignas(64) uint16_t turns[2 * kLanes];
  for (int64_t i = 0; i < 2 * kLanes; ++i) turns[i] = static_cast<uint16_t>(i % 2 * kLanes + i / 2);
  const __m512i order = _mm512_load_si512(turns);
  for (int64_t i = 0; i < lines; i += 2, in += 2 * kLanes, out += kLanes) {
    const __m512 low = _mm512_loadu_ps(in);
    const __m512 high = i + 1 < lines ? _mm512_loadu_ps(in + kLanes) : _mm512_setzero_ps();
    _mm512_storeu_si512(out,
                        _mm512_maskz_permutexvar_epi16(0xffffffff, order, pairs_of(low, high)));
  }
}

}  // namespace pfrt::cpu

#include "providers/cpu/isa/avx512_bf16_end.h"
