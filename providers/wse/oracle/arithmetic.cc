// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/oracle/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace pfrt::wse::oracle {
namespace {

// The sum rounded to odd: when it is not exact, the one of its two neighbours whose last bit is 1.
// Rounded again to a format that is two bits shorter or more, it gives what one rounding of the
// exact sum would have given.
double add_to_odd(double x, double y) {
  const double sum = x + y;
  if (!std::isfinite(sum)) return sum;
  const double of_y = sum - x;  // Knuth's two-sum: sum + rest is exact
  const double rest = (x - (sum - of_y)) + (y - of_y);
  if (rest == 0 || (std::bit_cast<uint64_t>(sum) & 1) != 0) return sum;
  const double infinity = std::numeric_limits<double>::infinity();
  return std::nextafter(sum, rest > 0 ? infinity : -infinity);
}

}  // namespace

float round_to_fp16(double value) {
  constexpr double kRoundsToInfinity = 65520;  // half way between 65504 and the next power of two
  constexpr int kLeastExponent = -14, kFractionBits = 10;
  if (!std::isfinite(value) || value == 0) return static_cast<float>(value);
  if (std::fabs(value) >= kRoundsToInfinity)
    return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value));
  int exponent = 0;
  std::frexp(value, &exponent);  // a fraction in [0.5, 1)
  const int step = std::max(exponent - 1, kLeastExponent) - kFractionBits;
  // Scaling by a power of two is exact; nearbyint rounds to even.
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(value, -step)), step));
}

float Arithmetic::load(float value) const { return fp16 ? round_to_fp16(value) : value; }

float Arithmetic::add(float x, float y) const {
  return fp16 ? round_to_fp16(add_to_odd(x, y)) : x + y;
}

float Arithmetic::multiply_add(float x, float y, float sum) const {
  if (!fp16) return std::fma(x, y, sum);
  // 11 bits by 11 bits: the product is exact in double.
  return round_to_fp16(add_to_odd(static_cast<double>(x) * static_cast<double>(y), sum));
}

}  // namespace pfrt::wse::oracle
