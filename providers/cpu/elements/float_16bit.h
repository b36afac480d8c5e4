// SPDX-License-Identifier: Apache-2.0
//
// Arrays of float16 and bfloat16 to and from float32, 8 elements at a time where the machine can.
// Results have the same bits as the conversions of single numbers in core/base/half.h. Pure
// functions over the caller's memory; thread-safe.
#pragma once

#include <cstdint>

#include "pyflame_rt/types.h"

namespace pfrt::cpu {

constexpr bool is_16bit_float(pfrt_dtype dtype) {
  return dtype == PFRT_DTYPE_FLOAT16 || dtype == PFRT_DTYPE_BFLOAT16;
}

// Widens |n| elements. In and out do not overlap.
using WidenFn = void (*)(const uint16_t* in, float* out, int64_t n);
// Rounds |n| elements to nearest even.
using NarrowFn = void (*)(const float* in, uint16_t* out, int64_t n);

// Widens |lines| times |n| elements; lines begin |in_pitch| and |out_pitch| elements apart.
using WidenLinesFn = void (*)(const uint16_t* in, int64_t in_pitch, float* out, int64_t out_pitch,
                              int64_t lines, int64_t n);

// The functions for |dtype|, float16 or bfloat16; nullptr for other types.
WidenFn widen_fn(pfrt_dtype dtype);
WidenLinesFn widen_lines_fn(pfrt_dtype dtype);
NarrowFn narrow_fn(pfrt_dtype dtype);

}  // namespace pfrt::cpu
