// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/bf16_pairs.h"

#include <immintrin.h>

// No templates of the standard library from here on: they would be compiled for AVX-512, and the
// linker may take those for the whole program.
#ifdef __clang__
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12, of its own header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#endif

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
  alignas(64) uint32_t all[kLanes];
  _mm512_store_si512(all, most);
  uint32_t largest = 0;
  for (const uint32_t bits : all) largest = bits > largest ? bits : largest;
  return static_cast<uint16_t>(largest >> 16);
}

inline __m512i pairs_of(__m512 low, __m512 high) { return __m512i(_mm512_cvtne2ps_pbh(high, low)); }

// Rounded, in the lower half of each lane.
inline __m512i rounded(__m512 x) {
  return _mm512_maskz_cvtepu16_epi32(0xffff, __m256i(_mm512_cvtneps_pbh(x)));
}

}  // namespace

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

}  // namespace pfrt::cpu

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif
