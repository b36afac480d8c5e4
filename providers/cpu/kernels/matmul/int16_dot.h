// SPDX-License-Identifier: Apache-2.0
//
// Bytes as the pairs of int16 that PanelMicrokernel::get_int16_dot multiplies: two neighbours of k
// in 32 bits, the first in the low half. Zero points are subtracted on the way, so that an element
// is within +-255 and what is missing of a last pair counts as 0. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "pyflame_rt/types.h"

namespace pfrt::cpu {

constexpr int64_t pairs_of(int64_t k) { return (k + 1) / 2; }

// |n| contiguous bytes, less |zero|, to pairs_of(n) pairs; the sum of the differences.
int32_t to_int16_pairs(pfrt_dtype dtype, const void* bytes, int64_t n, int32_t zero, uint32_t* out);
// |n| pairs of a byte from |first| and one from |second|, which may be null: 0.
void zip_int16_pairs(pfrt_dtype dtype, const void* first, const void* second, int64_t n,
                     int32_t zero, uint32_t* out);

}  // namespace pfrt::cpu
