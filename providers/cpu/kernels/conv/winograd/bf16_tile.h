// SPDX-License-Identifier: Apache-2.0
//
// The transform of pixels by F(2 x 2, 3 x 3) whose elements are rounded to pairs of bfloat16. For
// AVX512-BF16. A pure function; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// The pixels of a tile, 16 channels each in rows |row| apart, to 16 elements, |stride| apart: 8
// pairs of neighbouring channels.
void transform_pixels_to_pairs(const float* pixels, int64_t row, float* elements, int64_t stride);

}  // namespace pfrt::cpu
