// SPDX-License-Identifier: Apache-2.0
//
// Bytes as the int16 that DotMicrokernel multiplies where the machine has no products of bytes.
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace pfrt::cpu {

// Widens |n| contiguous bytes.
void widen_bytes(bool is_signed, const uint8_t* bytes, int64_t n, int16_t* out);
// Widens |n| lines of 16 bytes, |pitch| apart, to lines |out_pitch| elements apart.
void widen_lines(bool is_signed, const uint8_t* lines, int64_t pitch, int64_t n, int16_t* out,
                 int64_t out_pitch);
// Widens |n| pairs, each of a byte of |first| and one of |second|.
void zip_int16_pairs(bool is_signed, const uint8_t* first, const uint8_t* second, int64_t n,
                     int16_t* out);

// The products of a row that DotMicrokernel adds where it multiplies crosswise: the sum, modulo
// 2^32, of the products of pairs 0 and 1, 2 and 3, and so on, of the |n| pairs, an even number,
// that lie at each of |offsets| bytes from |row|.
uint32_t own_products(const void* row, std::span<const int64_t> offsets, int64_t n);
// Writes the own products of |count| rows, |stride| bytes apart, to |out|.
void own_products(const void* rows, int64_t stride, int64_t count, std::span<const int64_t> offsets,
                  int64_t n, uint32_t* out);

}  // namespace pfrt::cpu
