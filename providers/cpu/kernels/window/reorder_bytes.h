// SPDX-License-Identifier: Apache-2.0
//
// Reorders images of bytes between planes (NCHW, a channel after another) and lines (the channels
// of a pixel are contiguous): transpositions, 16 x 16 at a time. Pure functions over the caller's
// memory, which does not overlap; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// Reorders |n| pixels of |count| planes, 1 to 16, |plane| apart, to lines |pitch| apart. The first
// |line| bytes of a line are written: 8 or 16, or |count| where that is less than 8; those after
// |count| are 0.
void bytes_to_lines(uint8_t* out, int64_t line, int64_t pitch, const uint8_t* planes, int64_t plane,
                    int64_t count, int64_t n);
// Reorders |n| lines of 16 bytes that follow each other to |count| planes, |plane| apart.
void bytes_to_planes(uint8_t* out, int64_t plane, const uint8_t* lines, int64_t count, int64_t n);

}  // namespace pfrt::cpu
