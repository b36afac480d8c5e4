// SPDX-License-Identifier: Apache-2.0
//
// Division by a scale as two products, where the nearest whole numbers are certainly those of the
// quotients: 1 / scale as the sum of two numbers, with which x * high + RN(x * low) is x / scale
// but for 2^-47 of it before it is rounded (Brisebarre, Muller, Raina: Accelerating correctly
// rounded floating-point division when the divisor is known in advance). Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>

namespace pfrt::cpu {

struct StepReciprocal {
  float scale, high, low;

  // Checks quotients within [least, most]: a few hundred steps take a microsecond or two. Returns
  // nullopt where two products might lead to another step than the quotient rounded to float32.
  static std::optional<StepReciprocal> make(float scale, int64_t least, int64_t most);
};

}  // namespace pfrt::cpu
