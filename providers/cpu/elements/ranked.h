// SPDX-License-Identifier: Apache-2.0
//
// Numbers with their indices as single integers, which sort faster than indices of numbers do. Pure
// functions; thread-safe.
#pragma once

#include <bit>
#include <cstdint>

namespace pfrt::cpu {

inline constexpr int64_t kMostRanked = int64_t{1} << 32;  // indices that fit

// Orders as the numbers do: 0 and -0 are equal, and so are all NaN, which are the greatest.
inline uint32_t ordered_bits(float x) {
  if (x != x) return ~uint32_t{0};
  const uint32_t bits = std::bit_cast<uint32_t>(x + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | uint32_t{1} << 31;
}

// The less, the better: greater numbers first, or smaller ones; of equal ones the first.
inline uint64_t ranked(float x, bool greater_first, int64_t index) {
  const uint32_t order = ordered_bits(x);
  return uint64_t{greater_first ? ~order : order} << 32 | static_cast<uint64_t>(index);
}
// A number of that rank.
inline float number_of(uint64_t ranked, bool greater_first) {
  const uint32_t order = static_cast<uint32_t>(ranked >> 32), bits = greater_first ? ~order : order;
  return std::bit_cast<float>((bits >> 31) != 0 ? bits & ~(uint32_t{1} << 31) : ~bits);
}
inline int64_t index_of(uint64_t ranked) { return static_cast<int64_t>(ranked & ~uint32_t{0}); }

}  // namespace pfrt::cpu
