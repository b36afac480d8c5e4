// SPDX-License-Identifier: Apache-2.0
//
// The step of a maximum over a window: NaN, once met, stays. Pure functions; thread-safe.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {

// Whether |x| takes the place of |most|: it is greater, or the first NaN.
template <typename T>
bool takes_place(T x, T most) {
  return most < x || (x != x && most == most);
}

// The NaN with all bits set, which vectors make of any: the bits do not depend on the kernel.
template <typename T>
T nan_of_windows() {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(~uint32_t{0});
  else
    return std::bit_cast<T>(~uint64_t{0});
}

// Has no branch, so that loops of it become vectors.
template <typename T>
T greater_or_nan(T x, T most) {
  const T greater = most < x ? x : most;
  return x != x ? nan_of_windows<T>() : greater;
}

// maxps gives its second operand where one is NaN.
PFRT_AVX2_INLINE inline __m256 greater_or_nan(__m256 x, __m256 most) {
  return _mm256_or_ps(_mm256_max_ps(x, most), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

}  // namespace pfrt::cpu
