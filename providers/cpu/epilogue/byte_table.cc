// SPDX-License-Identifier: Apache-2.0
//
// A shuffle looks up 16 results by the lower four bits of an index, and gives 0 where the index is
// negative. Indices are lowered by 16 from one of the 16 tables to the next, until they are
// negative. The exclusive or of all that was looked up until then is the result. Indices from 128
// on are a second row of eight tables. Where there are permutations of bytes, two of them look up
// 128 results each.
#include "providers/cpu/epilogue/byte_table.h"

#include <immintrin.h>

#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

constexpr int kTables = 16, kHalf = kTables / 2;
constexpr int kEntries = 16;

PFRT_AVX2_INLINE inline __m256i looked_up(const __m256i* tables, __m256i x) {
  const __m256i step = _mm256_set1_epi8(kEntries);
  __m256i out = _mm256_setzero_si256();
  for (int half = 0; half < 2; ++half) {
    __m256i index = half == 0 ? x : _mm256_xor_si256(x, _mm256_set1_epi8(-128));
    for (int t = 0; t < kHalf; ++t) {
      out = _mm256_xor_si256(out, _mm256_shuffle_epi8(tables[half * kHalf + t], index));
      index = _mm256_subs_epi8(index, step);
    }
  }
  return out;
}

PFRT_AVX2 int64_t vectors_avx2(const ByteTable::Results& differences, const uint8_t* x, int64_t n,
                               uint8_t* y) {
  constexpr int64_t kLanes = 32;
  __m256i tables[kTables];
  for (int t = 0; t < kTables; ++t)
    tables[t] = _mm256_broadcastsi128_si256(
        _mm_load_si128(reinterpret_cast<const __m128i*>(differences.data() + kEntries * t)));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), looked_up(tables, v));
  }
  return i;
}

PFRT_AVX512_INLINE inline __m512i looked_up(const __m512i* tables, __m512i x) {
  const __m512i step = _mm512_set1_epi8(kEntries);
  __m512i out = _mm512_setzero_si512();
  for (int half = 0; half < 2; ++half) {
    __m512i index = half == 0 ? x : _mm512_xor_si512(x, _mm512_set1_epi8(-128));
    for (int t = 0; t < kHalf; ++t) {
      out = _mm512_xor_si512(out, _mm512_shuffle_epi8(tables[half * kHalf + t], index));
      index = _mm512_subs_epi8(index, step);
    }
  }
  return out;
}

PFRT_AVX512 int64_t vectors_avx512(const ByteTable::Results& differences, const uint8_t* x,
                                   int64_t n, uint8_t* y) {
  constexpr int64_t kLanes = 64;
  __m512i tables[kTables];
  for (int t = 0; t < kTables; ++t)
    tables[t] = _mm512_maskz_broadcast_i32x4(
        0xffff,
        _mm_load_si128(reinterpret_cast<const __m128i*>(differences.data() + kEntries * t)));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    _mm512_storeu_si512(y + i, looked_up(tables, _mm512_loadu_si512(x + i)));
  return i;
}

PFRT_AVX512_VBMI int64_t vectors_by_permutes(const ByteTable::Results& results, const uint8_t* x,
                                             int64_t n, uint8_t* y) {
  constexpr int64_t kLanes = 64;
  __m512i tables[4];
  for (int64_t t = 0; t < 4; ++t) tables[t] = _mm512_loadu_si512(results.data() + kLanes * t);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m512i v = _mm512_loadu_si512(x + i);
    const __m512i low = _mm512_permutex2var_epi8(tables[0], v, tables[1]);
    const __m512i high = _mm512_permutex2var_epi8(tables[2], v, tables[3]);
    _mm512_storeu_si512(y + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high));
  }
  return i;
}

}  // namespace

ByteTable::ByteTable(const Results& results, Isa isa)
    : results_(results),
      differences_(results),
      vectors_(isa >= Isa::kAvx512 ? vectors_avx512 : vectors_avx2) {
  if (isa >= Isa::kAvx512Vnni && machine_has_byte_permutes()) {
    vectors_ = vectors_by_permutes;
    return;
  }
  for (int t = 0; t < kTables; ++t) {
    if (t % kHalf == 0) continue;
    for (size_t e = 0; e < kEntries; ++e) {
      const size_t at = kEntries * static_cast<size_t>(t) + e;
      differences_[at] = results[at] ^ results[at - kEntries];
    }
  }
}

void ByteTable::run(const uint8_t* x, int64_t n, uint8_t* y) const {
  for (int64_t i = vectors_(differences_, x, n, y); i < n; ++i) y[i] = results_[x[i]];
}

}  // namespace pfrt::cpu
