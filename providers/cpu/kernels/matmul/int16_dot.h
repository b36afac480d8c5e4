// SPDX-License-Identifier: Apache-2.0
//
// Bytes as the pairs of int16 that PanelMicrokernel::get_int16_dot multiplies: two neighbours of k
// in 32 bits, the first in the low half. Zero points are subtracted on the way, so that an element
// is within +-255; the second number of an incomplete last pair is 0. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "pyflame_rt/types.h"

namespace pfrt::cpu {

constexpr int64_t pairs_of(int64_t k) { return (k + 1) / 2; }

// |n| contiguous bytes, less |zero|, to pairs_of(n) pairs; gives the sum of the differences.
int32_t to_int16_pairs(pfrt_dtype dtype, const void* bytes, int64_t n, int32_t zero, uint32_t* out);
// |n| pairs, each of a byte of |first| and one of |second|; where that is null, of 0.
void zip_int16_pairs(pfrt_dtype dtype, const void* first, const void* second, int64_t n,
                     int32_t zero, uint32_t* out);

// What DotMicrokernel adds of a row itself where it multiplies crosswise: the sum, modulo 2^32, of
// the products of pairs 0 and 1, 2 and 3, and so on, of the |n| pairs, an even number, that lie at
// each of |offsets| bytes from |row|.
uint32_t own_products(const void* row, std::span<const int64_t> offsets, int64_t n);

}  // namespace pfrt::cpu
