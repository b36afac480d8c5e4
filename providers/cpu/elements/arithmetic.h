// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on compute types that is defined for every operand: integers wrap around, and the one
// quotient that does not fit (the least number by -1) wraps too. Divisors are not zero. Pure
// functions; thread-safe.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace pfrt::cpu {

template <typename T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <typename T>
T difference_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}

template <typename T>
T product_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

template <typename T>
T quotient_of(T a, T b) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    if (b == T{-1}) return difference_of(T{0}, a);
  return static_cast<T>(a / b);
}

// The remainder with the dividend's sign. While the quotient of two float32 has at most 27 bits,
// its whole part is right in double, and so are the product with that part and the difference.
template <typename T>
T remainder_of(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    const double quotient = static_cast<double>(a) / static_cast<double>(b);
    if (std::fabs(quotient) < 0x1p27 && std::isfinite(b)) {
      const double whole = static_cast<double>(static_cast<int32_t>(quotient));
      const double rest = static_cast<double>(a) - whole * static_cast<double>(b);
      return std::copysign(static_cast<float>(rest), a);
    }
    return std::fmod(a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if constexpr (std::is_signed_v<T>)
      if (b == T{-1}) return T{0};
    return static_cast<T>(a % b);
  }
}

// The remainder with the divisor's sign.
template <typename T>
T modulus_of(T a, T b) {
  const T r = remainder_of(a, b);
  if constexpr (std::is_signed_v<T> || std::is_floating_point_v<T>)
    if (r != T{0} && (r < T{0}) != (b < T{0})) return r + b;
  return r;
}

template <typename T>
T power_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return b == T{2} ? a * a : std::pow(a, b);
  } else {
    if constexpr (std::is_signed_v<T>)
      if (b < 0) return a == T{1} ? T{1} : a == T{-1} ? ((b & 1) != 0 ? T{-1} : T{1}) : T{0};
    T power = 1;
    for (uint64_t n = static_cast<uint64_t>(b); n != 0; n >>= 1, a = product_of(a, a))
      if ((n & 1) != 0) power = product_of(power, a);
    return power;
  }
}

// NaN when either is. Without a branch, which compilers would put between the comparisons.
template <typename T>
T maximum_of(T a, T b) {
  return static_cast<int>(a > b) | static_cast<int>(a != a) ? a : b;
}
template <typename T>
T minimum_of(T a, T b) {
  return static_cast<int>(a < b) | static_cast<int>(a != a) ? a : b;
}

}  // namespace pfrt::cpu
