// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/elements/float_16bit.h"

#include <immintrin.h>

#include <algorithm>

#include "core/base/half.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLanes = 8;

template <float (*widen)(uint16_t)>
void widen_reference(const uint16_t* in, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = widen(in[i]);
}

template <uint16_t (*narrow)(float)>
void narrow_reference(const float* in, uint16_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = narrow(in[i]);
}

struct Float16 {
  PFRT_AVX2_F16C static __m256 widened(__m128i x) { return _mm256_cvtph_ps(x); }
  PFRT_AVX2_F16C static __m128i narrowed(__m256 x) {
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  }
};

struct Bfloat16 {
  PFRT_AVX2_F16C static __m256 widened(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  PFRT_AVX2_F16C static __m128i narrowed(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i all = _mm256_blendv_epi8(rounded, quiet, is_nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  }
};

template <typename Type>
PFRT_AVX2_F16C inline void widen_vectors(const uint16_t* in, float* out, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    _mm256_storeu_ps(out + i,
                     Type::widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  if (i == n) return;
  alignas(16) uint16_t last[kLanes] = {};
  alignas(32) float wide[kLanes];
  std::copy(in + i, in + n, last);
  _mm256_store_ps(wide, Type::widened(_mm_load_si128(reinterpret_cast<const __m128i*>(last))));
  std::copy_n(wide, n - i, out + i);
}

template <typename Type>
PFRT_AVX2_F16C void narrow_vectors(const float* in, uint16_t* out, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), Type::narrowed(_mm256_loadu_ps(in + i)));
  if (i == n) return;
  alignas(32) float last[kLanes] = {};
  alignas(16) uint16_t narrow[kLanes];
  std::copy(in + i, in + n, last);
  _mm_store_si128(reinterpret_cast<__m128i*>(narrow), Type::narrowed(_mm256_load_ps(last)));
  std::copy_n(narrow, n - i, out + i);
}

template <float (*widen)(uint16_t)>
void widen_lines_reference(const uint16_t* in, int64_t in_pitch, float* out, int64_t out_pitch,
                           int64_t lines, int64_t n) {
  for (; lines > 0; --lines, in += in_pitch, out += out_pitch) widen_reference<widen>(in, out, n);
}

template <typename Type>
PFRT_AVX2_F16C void widen_line_vectors(const uint16_t* in, int64_t in_pitch, float* out,
                                       int64_t out_pitch, int64_t lines, int64_t n) {
  for (; lines > 0; --lines, in += in_pitch, out += out_pitch) widen_vectors<Type>(in, out, n);
}

// Asked once a process: both ways give the same bits.
bool have_vectors() {
  static const bool have = isa() >= Isa::kAvx2;
  return have;
}

}  // namespace

WidenFn widen_fn(pfrt_dtype dtype) {
  if (!is_16bit_float(dtype)) return nullptr;
  if (dtype == PFRT_DTYPE_FLOAT16)
    return have_vectors() ? widen_vectors<Float16> : widen_reference<float16_to_float>;
  return have_vectors() ? widen_vectors<Bfloat16> : widen_reference<bfloat16_to_float>;
}

WidenLinesFn widen_lines_fn(pfrt_dtype dtype) {
  if (!is_16bit_float(dtype)) return nullptr;
  if (dtype == PFRT_DTYPE_FLOAT16)
    return have_vectors() ? widen_line_vectors<Float16> : widen_lines_reference<float16_to_float>;
  return have_vectors() ? widen_line_vectors<Bfloat16> : widen_lines_reference<bfloat16_to_float>;
}

NarrowFn narrow_fn(pfrt_dtype dtype) {
  if (!is_16bit_float(dtype)) return nullptr;
  if (dtype == PFRT_DTYPE_FLOAT16)
    return have_vectors() ? narrow_vectors<Float16> : narrow_reference<float_to_float16>;
  return have_vectors() ? narrow_vectors<Bfloat16> : narrow_reference<float_to_bfloat16>;
}

}  // namespace pfrt::cpu
