// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/depthwise_bytes.h"

#include <immintrin.h>

#include <cstring>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/row/ceil_div.h"

#define PFRT_AVX512_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12, of its own header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace pfrt::cpu {
namespace {

constexpr int64_t kChannels = DepthwiseByteTaps::kChannels;

// |N| positions from |p| on.
template <int N>
PFRT_AVX512_VNNI void quads_of(const DepthwiseByteRow& row, int64_t p, int32_t* out) {
  // Dword l of pixel i to place i of lane l, and there byte c of place i to byte i of channel c.
  const __m512i dwords = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = _mm512_maskz_broadcast_i32x4(
      0xffff, _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const int64_t quads = ceil_div(row.taps_x, int64_t{4}), step = row.step * kChannels;
  __m512i sum[N];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) sum[i] = _mm512_loadu_si512(row.start);
  const auto* weights = static_cast<const char*>(row.weights);
  for (int64_t y = 0; y < row.taps_y; ++y) {
    const uint8_t* pixels = row.tap_rows[y] + p * step;
    for (int64_t q = 0; q < quads; ++q, weights += 64, pixels += 4 * kChannels) {
      const __m512i weight = _mm512_loadu_si512(weights);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) {
        const __m512i lanes =
            _mm512_maskz_permutexvar_epi32(0xffff, dwords, _mm512_loadu_si512(pixels + i * step));
        sum[i] = _mm512_dpbusd_epi32(sum[i], _mm512_shuffle_epi8(lanes, bytes), weight);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) _mm512_storeu_si512(out + (p + i) * kChannels, sum[i]);
}

PFRT_AVX512_VNNI void sums_512(const DepthwiseByteRow& row, int64_t n, int32_t* out) {
  int64_t p = 0;
  for (; p + 4 <= n; p += 4) quads_of<4>(row, p, out);
  for (; p < n; ++p) quads_of<1>(row, p, out);
}

template <int N>
PFRT_AVX2 void pairs_of_taps(const DepthwiseByteRow& row, int64_t p, int32_t* out) {
  const auto* const start = reinterpret_cast<const __m256i*>(row.start);
  const int64_t pairs = ceil_div(row.taps_x, int64_t{2}), step = row.step * kChannels;
  __m256i low[N], high[N];
#pragma GCC unroll 2
  for (int i = 0; i < N; ++i) {
    low[i] = _mm256_loadu_si256(start);
    high[i] = _mm256_loadu_si256(start + 1);
  }
  const auto* weights = static_cast<const __m256i*>(row.weights);
  for (int64_t y = 0; y < row.taps_y; ++y) {
    const uint8_t* pixels = row.tap_rows[y] + p * step;
    for (int64_t q = 0; q < pairs; ++q, weights += 2, pixels += 2 * kChannels) {
      const __m256i weight_low = _mm256_loadu_si256(weights),
                    weight_high = _mm256_loadu_si256(weights + 1);
#pragma GCC unroll 2
      for (int i = 0; i < N; ++i) {
        const auto* const at = reinterpret_cast<const __m128i*>(pixels + i * step);
        const __m128i a = _mm_loadu_si128(at), b = _mm_loadu_si128(at + 1);
        low[i] = _mm256_add_epi32(
            low[i], _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)), weight_low));
        high[i] = _mm256_add_epi32(
            high[i], _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)), weight_high));
      }
    }
  }
#pragma GCC unroll 2
  for (int i = 0; i < N; ++i) {
    auto* const to = reinterpret_cast<__m256i*>(out + (p + i) * kChannels);
    _mm256_storeu_si256(to, low[i]);
    _mm256_storeu_si256(to + 1, high[i]);
  }
}

PFRT_AVX2 void sums_256(const DepthwiseByteRow& row, int64_t n, int32_t* out) {
  int64_t p = 0;
  for (; p + 2 <= n; p += 2) pairs_of_taps<2>(row, p, out);
  if (p < n) pairs_of_taps<1>(row, p, out);
}

void sums_generic(const DepthwiseByteRow& row, int64_t n, int32_t* out) {
  const int64_t pairs = ceil_div(row.taps_x, int64_t{2});
  for (int64_t p = 0; p < n; ++p)
    for (int64_t c = 0; c < kChannels; ++c) {
      int32_t sum = row.start[c];
      const auto* weights = static_cast<const int16_t*>(row.weights) + 2 * c;
      for (int64_t y = 0; y < row.taps_y; ++y)
        for (int64_t q = 0; q < pairs; ++q, weights += 2 * kChannels) {
          const uint8_t* const at = row.tap_rows[y] + (p * row.step + 2 * q) * kChannels + c;
          sum += at[0] * weights[0] + at[kChannels] * weights[1];
        }
      out[p * kChannels + c] = sum;
    }
}

}  // namespace

bool DepthwiseByteTaps::has_quads() { return dot_instructions() == DotInstructions::kByteEvex512; }

int64_t DepthwiseByteTaps::row_bytes(int64_t taps_x, bool quads) {
  return ceil_div(taps_x, group(quads)) * kChannels * 4;
}

void DepthwiseByteTaps::pack(const int16_t* weights, int64_t taps_y, int64_t taps_x, bool quads,
                             void* out) {
  const int64_t count = group(quads);
  auto* to = static_cast<char*>(out);
  for (int64_t y = 0; y < taps_y; ++y)
    for (int64_t x = 0; x < taps_x; x += count)
      for (int64_t c = 0; c < kChannels; ++c)
        for (int64_t i = 0; i < count; ++i) {
          const int16_t weight =
              x + i < taps_x ? weights[(y * taps_x + x + i) * kChannels + c] : int16_t{0};
          if (quads)
            *to = static_cast<char>(weight);
          else
            std::memcpy(to, &weight, sizeof weight);
          to += quads ? 1 : 2;
        }
}

void depthwise_byte_sums(const DepthwiseByteRow& row, bool quads, int64_t n, int32_t* out) {
  if (quads) return sums_512(row, n, out);
  if (isa() >= Isa::kAvx2) return sums_256(row, n, out);
  sums_generic(row, n, out);
}

}  // namespace pfrt::cpu
