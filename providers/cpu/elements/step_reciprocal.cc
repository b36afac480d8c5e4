// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/elements/step_reciprocal.h"

#include <cmath>

namespace pfrt::cpu {
namespace {

// Quotients are rounded twice, to float32 and to a whole number. The border between two whole
// numbers is thus half a unit in the last place beside the middle between them.
bool decides_alike(float scale, int64_t least, int64_t most) {
  for (int64_t n = least; n < most; ++n) {
    const float middle = static_cast<float>(n) + 0.5F;
    for (const float toward : {-1e9F, 1e9F}) {
      const double border =
          (static_cast<double>(middle) + static_cast<double>(std::nextafter(middle, toward))) / 2;
      const double x = border * static_cast<double>(scale);  // exact, of 49 bits
      const double off = static_cast<double>(static_cast<float>(x)) - x;
      if (std::fabs(off) < std::fabs(x) * 0x1p-45) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<StepReciprocal> StepReciprocal::make(float scale, int64_t least, int64_t most) {
  if (!(scale > 1e-30F && scale < 1e30F) || !decides_alike(scale, least, most)) return std::nullopt;
  const double exact = 1 / static_cast<double>(scale);
  const auto high = static_cast<float>(exact);
  // |exact| differs from 1 / scale by at most 2^-53 of it.
  return StepReciprocal{scale, high, static_cast<float>(exact - static_cast<double>(high))};
}

}  // namespace pfrt::cpu
