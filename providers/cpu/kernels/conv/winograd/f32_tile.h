// SPDX-License-Identifier: Apache-2.0
//
// Winograd's methods for images of float32, as conv_winograd takes them: how weights and tiles of
// sums are transformed. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/conv/winograd/transforms.h"

namespace pfrt::cpu {

struct F32Method {
  int64_t out, side, taps;  // of a tile along a dimension: positions, elements; taps
  bool exact;               // sums in short chains err no more than those without transforms
  bool pairs;               // transformed factors are rounded to pairs of bfloat16
  // Transforms a band's pixels (WinogradForm).
  void (*transform_pixels)(const float* pixels, int64_t row, float* elements, int64_t stride);
  // Transforms the taps of one channel, each a line of 16 outputs, to side x side lines, |stride|
  // apart.
  void (*transform_taps)(const float* taps, float* elements, int64_t stride);
  // Transforms a tile of sums, |stride| apart, to its positions of |outputs| channels, lines of 16
  // in rows |row| apart. Returns false if a result is not to be trusted: if it is not finite, or
  // very small beside large elements. Then the elements come from pixels that the position does not
  // see, and the result is what their roundings left. If elements are of ordinary size such
  // roundings are too small to matter, and a position that sees only zeros is nothing unusual.
  bool (*transform_sums)(const float* sums, int64_t stride, int64_t outputs, const float* bias,
                         float* positions, int64_t row);
};

// F(2 x 2, 3 x 3); F(4 x 4, 3 x 3), whose errors are about three times as large; F(2 x 2, 5 x 5).
extern const F32Method kF32TilesOf2, kF32TilesOf4, kF32TilesOf2By5;
// F(2 x 2, 3 x 3) of pairs. Its errors are about 1.6 times those of rounded factors.
extern const F32Method kBf16TilesOf2;

}  // namespace pfrt::cpu
