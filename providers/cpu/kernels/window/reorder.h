// SPDX-License-Identifier: Apache-2.0
//
// Reorders images between planes (NCHW, a channel after another) and pixels (nChw16c and the like:
// the channels of a pixel are contiguous, a line): transpositions of float32, 8 x 8 at a time. For
// AVX2. Pure functions over the caller's memory, which does not overlap; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// Reorders |n| pixels of |count| planes, |plane| apart, to lines of |line| channels, 8 or 16, that
// follow each other; the rest of a line is zero.
void reorder_to_pixels(float* out, int64_t line, const float* planes, int64_t plane, int64_t count,
                       int64_t n);
// Reorders planes that lie anywhere. After every |row| lines, |skipped| lines are left as they are.
void reorder_to_pixels(float* out, int64_t line, const float* const* planes, int64_t count,
                       int64_t n, int64_t row, int64_t skipped);
// Reorders to lines of |count| channels, fewer than 16, that follow each other.
void reorder_to_short_pixels(float* out, const float* planes, int64_t plane, int64_t count,
                             int64_t n);
// Reorders |n| lines of 16 channels to |count| planes, |plane| apart.
void reorder_to_planes(float* out, int64_t plane, const float* lines, int64_t count, int64_t n);

}  // namespace pfrt::cpu
