// SPDX-License-Identifier: Apache-2.0
//
// Sums of bytes in vectors; the same for every instruction set. Bytes have no sign once their bits
// are inverted by |flip|: 0x80 where the type is int8, else 0. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernels/window/window.h"

namespace pfrt::cpu {

// The sum of |n| bytes.
int64_t sum_bytes(const uint8_t* bytes, int64_t n, uint8_t flip);
// Sums |n| lines of 16 bytes: 16 sums, added to |sums|.
void sum_lines(const uint8_t* lines, int64_t n, uint8_t flip, int64_t* sums);

// Sums of rows of planes, |width| bytes each. The instructions follow PFRT_ISA at the time of get.
struct RowSums {
  static RowSums get(int64_t width);

  // sums[i] = the sum of rows[r][i] over |count| rows of |n| bytes, |width| of get; at most 2^23
  // rows.
  void (*add_rows)(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t flip,
                   int32_t* sums);
  bool vectors;
  // sums[i] += from[i * step]; |from| may be read up to 16 elements after the last of these.
  void add_every(const int32_t* from, int64_t step, int64_t n, int32_t* sums) const;
};

// Row |row| of positions over an image in nChw16c: 16 sums a position, plus |start| for each of its
// taps on the image. For AVX2; at most 2^23 taps.
void sum_window_nchw16c(const WindowRows& rows, int64_t row, const uint8_t* image, uint8_t flip,
                        int32_t start, int32_t* sums);

}  // namespace pfrt::cpu
