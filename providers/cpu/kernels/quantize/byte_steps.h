// SPDX-License-Identifier: Apache-2.0
//
// The range of float32 elements, and their nearest steps of a scale as uint8, with the instructions
// that may be used; the same bits with all of them. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/elements/step_reciprocal.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/float_range.h"

namespace pfrt::cpu {

// Rounds to the nearest step of |scale|, ties to even, from |zero| on, a whole number in [0, 255];
// saturated, NaN to 0. |by|, which is of the scale and of steps in [-zero, 255 - zero], takes less
// time.
struct ByteSteps {
  float scale, zero;
  std::optional<StepReciprocal> by;
};

// Steps of a range over all of uint8, as DynamicQuantizeLinear has it.
inline ByteSteps byte_steps_of(const FloatRange& range) {
  constexpr float kLast = 255;
  const float scale = range.low == range.high ? 1.0f : (range.high - range.low) / kLast;
  const float zero = std::clamp(round_even(-range.low / scale), 0.0f, kLast);
  // The zero point is not a number where the range is infinite.
  return {scale, zero >= 0 ? zero : 0, std::nullopt};
}

using ByteStepsFn = void (*)(const ByteSteps& steps, const float* x, int64_t n, uint8_t* y);

RangeFn range_fn(Isa isa);
ByteStepsFn byte_steps_fn(Isa isa);

}  // namespace pfrt::cpu
