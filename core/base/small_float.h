// SPDX-License-Identifier: Apache-2.0
//
// The 8- and 4-bit floating-point types to and from float. A value is the low bits of a byte: one
// element, not a packed pair. Pure functions; thread-safe.
//
// Formats and special values are those of the ONNX standard ("Float stored in 8 bits", "in 4
// bits"); where its text leaves a choice (the sign of a NaN, NaN as E2M1), its reference
// implementation decides.
#pragma once

#include <cstdint>

#include "pyflame_rt/types.h"

namespace pfrt {

// FLOAT8E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E8M0 and FLOAT4E2M1.
bool is_small_float(pfrt_dtype dtype);

// Exact. 0 for another type.
float small_float_to_float(pfrt_dtype dtype, uint8_t bits);

// Direction in which E8M0 rounds to a power of two: away from zero, towards it, or to nearest with
// ties up.
enum class PowerRounding : uint8_t { kUp, kDown, kNearest };

// Rounds to nearest, ties to even (E8M0: by |rounding|). With |saturate| a value out of range
// becomes the largest one of its sign; without, infinity where the type has one, else NaN. E2M1
// saturates always and has -0 for NaN. E8M0 takes the magnitude. 0 for another type.
uint8_t float_to_small_float(pfrt_dtype dtype, float value, bool saturate = true,
                             PowerRounding rounding = PowerRounding::kUp);

}  // namespace pfrt
