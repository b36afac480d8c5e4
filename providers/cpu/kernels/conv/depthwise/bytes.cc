// SPDX-License-Identifier: Apache-2.0
//
// A lane of a vector is a channel of a position: a vector of 512 bits has four positions in four
// channels each, so that packing the sums of four vectors to bytes puts the channels of a position
// in order. |R| is how many rows of positions are computed at once, |N| how many vectors of
// positions.
#include "providers/cpu/kernels/conv/depthwise/bytes.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"

#define PFRT_AVX512_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define PFRT_AVX512_VNNI_INLINE \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"), always_inline))

#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12, of its own header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace pfrt::cpu {
namespace {

constexpr int64_t kChannels = DepthwiseBytes::kChannels, kLines = DepthwiseBytes::kLines;
constexpr int64_t kColumn = DepthwiseBytes::kColumn;

// Rounding of sums to bytes. Bytes with sign are computed as those of 128 more.
struct ToBytes {
  const float* scales;
  int16_t zero;
  char flip;
};

// Memory that the vectors of a call are written to: for sums, or for bytes.
struct Sink {
  int32_t* const* sums;
  uint8_t* const* bytes;
  ToBytes to_bytes;
};

// Loads |n| pixels, up to 4.
PFRT_AVX512_INLINE inline __m512i some_pixels(const uint8_t* from, int64_t n) {
  return _mm512_maskz_loadu_epi32(static_cast<__mmask16>(n >= 4 ? 0xffff : (1 << (4 * n)) - 1),
                                  from);
}

PFRT_AVX512_INLINE inline void put_pixels(uint8_t* out, __m512i x, int64_t n) {
  if (n >= 4) return _mm512_storeu_si512(out, x);
  _mm512_mask_storeu_epi32(out, static_cast<__mmask16>(n > 0 ? (1 << (4 * n)) - 1 : 0), x);
}

// Pixels 0, stride, ... of which |n| are there, 1 or more.
PFRT_AVX512_INLINE inline __m512i four_pixels(const uint8_t* from, int64_t stride, int64_t n) {
  if (stride == 1) return some_pixels(from, n);
  if (stride == 2 && n > 2)
    return _mm512_maskz_shuffle_i32x4(0xffff, some_pixels(from, 4),
                                      some_pixels(from + 4 * kChannels, n > 3 ? 3 : 1), 0x88);
  const int64_t step = stride * kChannels;
  const auto* const p = reinterpret_cast<const __m128i*>(from);
  const auto* const q = reinterpret_cast<const __m128i*>(from + (n > 1 ? step : 0));
  const auto* const r = reinterpret_cast<const __m128i*>(from + (n > 2 ? 2 * step : 0));
  const auto* const s = reinterpret_cast<const __m128i*>(from + (n > 3 ? 3 * step : 0));
  __m512i x = _mm512_zextsi128_si512(_mm_loadu_si128(p));
  x = _mm512_maskz_inserti32x4(0xffff, x, _mm_loadu_si128(q), 1);
  x = _mm512_maskz_inserti32x4(0xffff, x, _mm_loadu_si128(r), 2);
  return _mm512_maskz_inserti32x4(0xffff, x, _mm_loadu_si128(s), 3);
}

PFRT_AVX512 void arrange_quads(const uint8_t* const* rows, int64_t stride, int64_t n, uint8_t flip,
                               uint8_t* out, int64_t pitch) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  for (int64_t i = 0; i < n; i += 4) {
    __m512i row[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
      row[r] =
          _mm512_xor_si512(four_pixels(rows[r] + i * stride * kChannels, stride, n - i), flips);
    const __m512i low_a = _mm512_unpacklo_epi8(row[0], row[1]),
                  low_b = _mm512_unpacklo_epi8(row[2], row[3]),
                  high_a = _mm512_unpackhi_epi8(row[0], row[1]),
                  high_b = _mm512_unpackhi_epi8(row[2], row[3]);
    const __m512i lines[kLines] = {
        _mm512_unpacklo_epi16(low_a, low_b), _mm512_unpackhi_epi16(low_a, low_b),
        _mm512_unpacklo_epi16(high_a, high_b), _mm512_unpackhi_epi16(high_a, high_b)};
#pragma GCC unroll 4
    for (int j = 0; j < kLines; ++j) put_pixels(out + j * pitch + i * kColumn, lines[j], n - i);
  }
}

PFRT_AVX512_INLINE inline __m512i whole_512(__m512i sums, __m512 scale) {
  return _mm512_maskz_cvtps_epi32(0xffff,
                                  _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, sums), scale));
}

PFRT_AVX512_INLINE inline __m512i four_lanes(const void* from) {
  return _mm512_maskz_broadcast_i32x4(0xffff, _mm_loadu_si128(static_cast<const __m128i*>(from)));
}

// Sums of up to 4 positions, as lines of 16: of |lines|, each has four channels of each position.
PFRT_AVX512_INLINE inline void put_sums(const __m512i* lines, int64_t n, int32_t* out) {
  const __m512i low_a = _mm512_maskz_shuffle_i32x4(0xffff, lines[0], lines[1], 0x44),
                high_a = _mm512_maskz_shuffle_i32x4(0xffff, lines[0], lines[1], 0xee),
                low_b = _mm512_maskz_shuffle_i32x4(0xffff, lines[2], lines[3], 0x44),
                high_b = _mm512_maskz_shuffle_i32x4(0xffff, lines[2], lines[3], 0xee);
  if (n > 0) _mm512_storeu_si512(out, _mm512_maskz_shuffle_i32x4(0xffff, low_a, low_b, 0x88));
  if (n > 1)
    _mm512_storeu_si512(out + kChannels, _mm512_maskz_shuffle_i32x4(0xffff, low_a, low_b, 0xdd));
  if (n > 2)
    _mm512_storeu_si512(out + 2 * kChannels,
                        _mm512_maskz_shuffle_i32x4(0xffff, high_a, high_b, 0x88));
  if (n > 3)
    _mm512_storeu_si512(out + 3 * kChannels,
                        _mm512_maskz_shuffle_i32x4(0xffff, high_a, high_b, 0xdd));
}

template <int R, int N>
struct Sums512 {
  __m512i of[R][N][kLines];

  PFRT_AVX512_VNNI_INLINE void begin(const int32_t* start) {
#pragma GCC unroll 4
    for (int j = 0; j < kLines; ++j)
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) of[r][v][j] = four_lanes(start + 4 * j);
  }
  // A column of taps of a group of rows; line j is at |pixels| + j * |pitch|.
  PFRT_AVX512_VNNI_INLINE void add(const uint8_t* pixels, int64_t pitch, const char* weights) {
#pragma GCC unroll 4
    for (int j = 0; j < kLines; ++j) {
      __m512i some[N];
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) {
        some[v] = _mm512_loadu_si512(pixels + j * pitch + 4 * v * kColumn);
        asm("" : "+v"(some[v]));  // else each use is a load of its own
      }
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r) {
        const __m512i weight = four_lanes(weights + (j * R + r) * kColumn);
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) of[r][v][j] = _mm512_dpbusd_epi32(of[r][v][j], some[v], weight);
      }
    }
  }
};

// Positions p to p + 4 N, of which |n| are there. |kTaps| is 3 for a single group of rows with
// three columns of taps, whose sums never move between registers, or 0 for any.
template <int R, int N, int kTaps, bool kToBytes>
PFRT_AVX512_VNNI void quads_of(const DepthwiseBytes& shape, const DepthwiseColumns& columns,
                               int64_t p, int64_t n, const Sink& sink) {
  Sums512<R, N> sums;
  sums.begin(columns.start);
  const auto* weights = static_cast<const char*>(columns.weights);
  if constexpr (kTaps > 0) {
    const uint8_t* const lines = columns.groups[0] + p * kColumn;
#pragma GCC unroll 3
    for (int t = 0; t < kTaps; ++t)
      sums.add(lines + columns.taps[t], columns.pitch, weights + t * kLines * R * kColumn);
  } else {
    for (int64_t g = 0; g < shape.groups(); ++g) {
      const uint8_t* const lines = columns.groups[g] + p * kColumn;
      for (int64_t t = 0; t < shape.taps_x; ++t, weights += kLines * R * kColumn)
        sums.add(lines + columns.taps[t], columns.pitch, weights);
    }
  }
  if constexpr (kToBytes) {
    __m512 scale[kLines];
#pragma GCC unroll 4
    for (int j = 0; j < kLines; ++j)
      scale[j] = _mm512_castsi512_ps(four_lanes(sink.to_bytes.scales + 4 * j));
    const __m512i zero = _mm512_set1_epi16(sink.to_bytes.zero),
                  flip = _mm512_set1_epi8(sink.to_bytes.flip);
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) {
        const __m512i* const s = sums.of[r][v];
        const __m512i low =
                          _mm512_packs_epi32(whole_512(s[0], scale[0]), whole_512(s[1], scale[1])),
                      high =
                          _mm512_packs_epi32(whole_512(s[2], scale[2]), whole_512(s[3], scale[3]));
        const __m512i bytes =
            _mm512_packus_epi16(_mm512_adds_epi16(low, zero), _mm512_adds_epi16(high, zero));
        put_pixels(sink.bytes[r] + (p + 4 * v) * kChannels, _mm512_xor_si512(bytes, flip),
                   n - 4 * v);
      }
  } else {
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v)
        put_sums(sums.of[r][v], n - 4 * v, sink.sums[r] + (p + 4 * v) * kChannels);
  }
}

template <int R, int kTaps, bool kToBytes>
void quads(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
           const Sink& sink) {
  int64_t p = 0;
  for (; p + 4 < n; p += 8) quads_of<R, 2, kTaps, kToBytes>(shape, columns, p, n - p, sink);
  if (p < n) quads_of<R, 1, kTaps, kToBytes>(shape, columns, p, n - p, sink);
}

PFRT_AVX2_INLINE inline __m256i two_pixels(const uint8_t* from, int64_t stride, int64_t n) {
  const auto* const first = reinterpret_cast<const __m128i*>(from);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(first)),
                                 _mm_loadu_si128(n < 2 ? first : first + stride), 1);
}

PFRT_AVX2 void arrange_pairs(const uint8_t* const* rows, int64_t stride, int64_t n, uint8_t flip,
                             uint8_t* out, int64_t pitch) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip)), none = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; i += 2) {
    const int64_t left = n - i;
    const __m256i a = _mm256_xor_si256(two_pixels(rows[0] + i * stride * kChannels, stride, left),
                                       flips),
                  b = _mm256_xor_si256(two_pixels(rows[1] + i * stride * kChannels, stride, left),
                                       flips);
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    const __m256i lines[kLines] = {_mm256_unpacklo_epi8(low, none), _mm256_unpackhi_epi8(low, none),
                                   _mm256_unpacklo_epi8(high, none),
                                   _mm256_unpackhi_epi8(high, none)};
#pragma GCC unroll 4
    for (int j = 0; j < kLines; ++j) {
      auto* const to = reinterpret_cast<__m128i*>(out + j * pitch + i * kColumn);
      if (left >= 2)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), lines[j]);
      else
        _mm_storeu_si128(to, _mm256_castsi256_si128(lines[j]));
    }
  }
}

PFRT_AVX2_INLINE inline __m256i whole_256(__m256i sums, __m256 scale) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sums), scale));
}

PFRT_AVX2_INLINE inline __m256i two_lanes(const void* from) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}

constexpr int kHalf = 2;  // of lines

// Sums of half of 16 channels, which stay in registers.
template <int R, int N>
struct Sums256 {
  __m256i of[R][N][kHalf];

  PFRT_AVX2_INLINE void begin(const int32_t* start) {
#pragma GCC unroll 2
    for (int j = 0; j < kHalf; ++j)
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) of[r][v][j] = two_lanes(start + 4 * j);
  }
  // A column of taps of a pair of rows; line j is at |pixels| + j * |pitch|.
  PFRT_AVX2_INLINE void add(const uint8_t* pixels, int64_t pitch, const char* weights) {
#pragma GCC unroll 2
    for (int j = 0; j < kHalf; ++j) {
      __m256i some[N];
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) {
        some[v] = _mm256_loadu_si256(
            reinterpret_cast<const __m256i*>(pixels + j * pitch + 2 * v * kColumn));
        if (R > 1) asm("" : "+x"(some[v]));  // else each use is a load of its own
      }
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r) {
        const __m256i weight = two_lanes(weights + (j * R + r) * kColumn);
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) {
          of[r][v][j] = _mm256_add_epi32(of[r][v][j], _mm256_madd_epi16(some[v], weight));
          asm volatile(""
                       : "+x"(of[r][v][j]));  // else columns are loaded long before they are used
        }
      }
    }
  }
};

// Positions p to p + 2 N, of which |n| are there. |kTaps| is 3 for two pairs of rows with three
// columns of taps, or 0 for any.
template <int R, int N, int kTaps, bool kToBytes>
PFRT_AVX2 void pairs_of(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t p,
                        int64_t n, const Sink& sink) {
  __m256i words[2][R][N];
#pragma GCC unroll 1
  for (int h = 0; h < 2; ++h) {
    Sums256<R, N> sums;
    sums.begin(columns.start + 4 * kHalf * h);
    const auto* weights = static_cast<const char*>(columns.weights) + kHalf * h * R * kColumn;
    const int64_t at = p * kColumn + kHalf * h * columns.pitch;
    if constexpr (kTaps > 0) {
#pragma GCC unroll 2
      for (int g = 0; g < 2; ++g)
#pragma GCC unroll 3
        for (int t = 0; t < kTaps; ++t)
          sums.add(columns.groups[g] + at + columns.taps[t], columns.pitch,
                   weights + (g * kTaps + t) * kLines * R * kColumn);
    } else {
      for (int64_t g = 0; g < shape.groups(); ++g)
        for (int64_t t = 0; t < shape.taps_x; ++t, weights += kLines * R * kColumn)
          sums.add(columns.groups[g] + at + columns.taps[t], columns.pitch, weights);
    }
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) {
        if constexpr (kToBytes) {
          const float* const scales = sink.to_bytes.scales + 4 * kHalf * h;
          const __m256 a = _mm256_castsi256_ps(two_lanes(scales)),
                       b = _mm256_castsi256_ps(two_lanes(scales + 4));
          words[h][r][v] = _mm256_adds_epi16(
              _mm256_packs_epi32(whole_256(sums.of[r][v][0], a), whole_256(sums.of[r][v][1], b)),
              _mm256_set1_epi16(sink.to_bytes.zero));
        } else {
          for (int j = 0; j < kHalf; ++j) {
            int32_t* const to = sink.sums[r] + (p + 2 * v) * kChannels + 4 * (kHalf * h + j);
            const __m256i s = sums.of[r][v][j];
            if (n > 2 * v)
              _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(s));
            if (n > 2 * v + 1)
              _mm_storeu_si128(reinterpret_cast<__m128i*>(to + kChannels),
                               _mm256_extracti128_si256(s, 1));
          }
        }
      }
  }
  if constexpr (kToBytes) {
    const __m256i flip = _mm256_set1_epi8(sink.to_bytes.flip);
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) {
        const __m256i bytes =
            _mm256_xor_si256(_mm256_packus_epi16(words[0][r][v], words[1][r][v]), flip);
        auto* const to = reinterpret_cast<__m128i*>(sink.bytes[r] + (p + 2 * v) * kChannels);
        if (n >= 2 * v + 2)
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
        else if (n > 2 * v)
          _mm_storeu_si128(to, _mm256_castsi256_si128(bytes));
      }
  }
}

template <int R, int kTaps, bool kToBytes>
void pairs(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
           const Sink& sink) {
  int64_t p = 0;
  constexpr bool kOne = kTaps > 0 && kToBytes;  // others are not worth the code
  for (; p + (kOne ? 2 : 0) < n; p += 4)
    pairs_of<R, 2, kTaps, kToBytes>(shape, columns, p, n - p, sink);
  if constexpr (kOne)
    if (p < n) pairs_of<R, 1, kTaps, kToBytes>(shape, columns, p, n - p, sink);
}

void arrange_generic(const uint8_t* const* rows, int64_t stride, int64_t n, uint8_t flip,
                     uint8_t* out, int64_t pitch) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < kChannels; ++c)
      for (int64_t r = 0; r < 2; ++r) {
        const auto pixel = static_cast<int16_t>(rows[r][i * stride * kChannels + c] ^ flip);
        std::memcpy(out + c / 4 * pitch + i * kColumn + (c % 4 * 2 + r) * 2, &pixel, sizeof pixel);
      }
}

void sums_generic(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t p,
                  int64_t output, int32_t* out) {
  std::copy_n(columns.start, kChannels, out);
  const auto* weights = static_cast<const char*>(columns.weights) + output * kColumn;
  for (int64_t g = 0; g < shape.groups(); ++g)
    for (int64_t t = 0; t < shape.taps_x; ++t)
      for (int64_t j = 0; j < kLines; ++j, weights += shape.outputs() * kColumn) {
        int16_t pixel[8], weight[8];
        std::memcpy(pixel, columns.groups[g] + j * columns.pitch + columns.taps[t] + p * kColumn,
                    sizeof pixel);
        std::memcpy(weight, weights, sizeof weight);
        for (int64_t c = 0; c < 4; ++c)
          out[4 * j + c] += pixel[2 * c] * weight[2 * c] + pixel[2 * c + 1] * weight[2 * c + 1];
      }
}

void generic(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
             const Sink& sink) {
  for (int64_t r = 0; r < shape.outputs(); ++r)
    for (int64_t p = 0; p < n; ++p) {
      int32_t sums[kChannels];
      sums_generic(shape, columns, p, r, sums);
      if (sink.sums != nullptr) {
        std::copy_n(sums, kChannels, sink.sums[r] + p * kChannels);
        continue;
      }
      const bool is_signed = sink.to_bytes.flip != 0;
      requantize_fns(is_signed ? PFRT_DTYPE_INT8 : PFRT_DTYPE_UINT8)
          .columns(sums, sink.to_bytes.scales, sink.to_bytes.zero - (is_signed ? 128 : 0),
                   kChannels, sink.bytes[r] + p * kChannels);
    }
}

template <int R, bool kToBytes>
void rows_of(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
             const Sink& sink) {
  if (shape.quads)
    return shape.groups() == 1 && shape.taps_x == 3
               ? quads<R, 3, kToBytes>(shape, columns, n, sink)
               : quads<R, 0, kToBytes>(shape, columns, n, sink);
  return shape.groups() == 2 && shape.taps_x == 3 ? pairs<R, 3, kToBytes>(shape, columns, n, sink)
                                                  : pairs<R, 0, kToBytes>(shape, columns, n, sink);
}

template <bool kToBytes>
void compute(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
             const Sink& sink) {
  if (!shape.quads && !shape.vectors) return generic(shape, columns, n, sink);
  return shape.two_rows ? rows_of<2, kToBytes>(shape, columns, n, sink)
                        : rows_of<1, kToBytes>(shape, columns, n, sink);
}

}  // namespace

bool DepthwiseBytes::has_quads() { return dot_instructions() == DotInstructions::kByteEvex512; }

bool DepthwiseBytes::has_vectors() { return isa() >= Isa::kAvx2; }

void DepthwiseBytes::pack(const int16_t* weights, void* out) const {
  auto* to = static_cast<char*>(out);
  for (int64_t g = 0; g < groups(); ++g)
    for (int64_t x = 0; x < taps_x; ++x)
      for (int64_t j = 0; j < kLines; ++j)
        for (int64_t r = 0; r < outputs(); ++r)
          for (int64_t c = 0; c < 4; ++c)
            for (int64_t i = 0; i < group(); ++i) {
              const int64_t y = g * group() + i - r;
              const int16_t weight = y < 0 || y >= taps_y
                                         ? int16_t{0}
                                         : weights[(y * taps_x + x) * kChannels + 4 * j + c];
              if (quads)
                *to = static_cast<char>(weight);
              else
                std::memcpy(to, &weight, sizeof weight);
              to += quads ? 1 : 2;
            }
}

void DepthwiseBytes::arrange(const uint8_t* const* rows, int64_t stride, int64_t n, uint8_t flip,
                             uint8_t* out, int64_t pitch) const {
  if (quads) return arrange_quads(rows, stride, n, flip, out, pitch);
  if (vectors) return arrange_pairs(rows, stride, n, flip, out, pitch);
  arrange_generic(rows, stride, n, flip, out, pitch);
}

void depthwise_sums(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
                    int32_t* const* out) {
  compute<false>(shape, columns, n, Sink{out, nullptr, {}});
}

void depthwise_requantized(const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
                           const float* scales, int32_t zero, bool is_signed, uint8_t* const* out) {
  const int32_t more = is_signed ? 128 : 0;
  compute<true>(
      shape, columns, n,
      Sink{nullptr,
           out,
           {scales, static_cast<int16_t>(zero + more), static_cast<char>(is_signed ? 0x80 : 0)}});
}

}  // namespace pfrt::cpu
