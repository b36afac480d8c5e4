// SPDX-License-Identifier: Apache-2.0
//
// Lines of a pixel's channels from planes of channels, and back: transpositions of float32, 8 x 8
// at a time. For AVX2. Pure functions over the caller's memory, which does not overlap;
// thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// |n| pixels of |count| planes, |plane| apart, to lines of |line| channels, 8 or 16, one after
// another; the rest of a line is zero.
void planes_to_lines(float* out, int64_t line, const float* planes, int64_t plane, int64_t count,
                     int64_t n);
// Of planes anywhere; after every |row| lines |skipped| ones are left as they are.
void planes_to_lines(float* out, int64_t line, const float* const* planes, int64_t count, int64_t n,
                     int64_t row, int64_t skipped);
// To lines of |count| channels, fewer than 16, one after another.
void planes_to_short_lines(float* out, const float* planes, int64_t plane, int64_t count,
                           int64_t n);
// |n| lines of 16 channels to |count| planes, |plane| apart.
void lines_to_planes(float* out, int64_t plane, const float* lines, int64_t count, int64_t n);

}  // namespace pfrt::cpu
