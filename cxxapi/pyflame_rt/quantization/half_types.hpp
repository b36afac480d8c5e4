// SPDX-License-Identifier: Apache-2.0
//
// 16-bit floating-point numbers as values: conversion to and from float, rounding to nearest, ties
// to even. Trivially copyable, two bytes, the memory layout of a tensor's elements.
#pragma once

#include <cstdint>
#include <cstring>
#include <pyflame_rt/types.hpp>

namespace pyflame_rt {
namespace quantization {
namespace detail {

inline uint32_t float_bits(float value) noexcept {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float bits_float(uint32_t bits) noexcept {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace detail

// An IEEE 754 binary16 number.
class Float16 {
 public:
  constexpr Float16() noexcept = default;
  // Rounds to nearest, ties to even.
  explicit Float16(float value) noexcept : Float16(from_float(value)) {}
  // Makes the number with these bits.
  static constexpr Float16 from_bits(uint16_t bits) noexcept {
    Float16 half;
    half.bits_ = bits;
    return half;
  }
  // Rounds to nearest, ties to even; values beyond the range become infinite.
  static Float16 from_float(float value) noexcept {
    const uint32_t u = detail::float_bits(value);
    const uint32_t sign = (u >> 16) & 0x8000u;
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return pack(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) return pack(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 rounds at the right bit
      const float shifted = detail::bits_float(magnitude) + 0.5f;
      return pack(sign | (detail::float_bits(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return pack(sign | ((rounded - 0x38000000u) >> 13));
  }
  // Converts exactly.
  float to_float() const noexcept {
    const uint32_t sign = static_cast<uint32_t>(bits_ & 0x8000u) << 16;
    const uint32_t exponent = (bits_ >> 10) & 0x1fu;
    const uint32_t mantissa = bits_ & 0x3ffu;
    if (exponent == 0x1fu) return detail::bits_float(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
      return detail::bits_float(sign | detail::float_bits(magnitude));
    }
    return detail::bits_float(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }
  // Converts exactly.
  explicit operator float() const noexcept { return to_float(); }
  // The bits as they are in memory.
  constexpr uint16_t bits() const noexcept { return bits_; }
  // Whether it is a NaN, of either sign.
  constexpr bool is_nan() const noexcept { return (bits_ & 0x7fffu) > 0x7c00u; }
  // Whether it is infinite, of either sign.
  constexpr bool is_inf() const noexcept { return (bits_ & 0x7fffu) == 0x7c00u; }
  // Whether it is zero, of either sign.
  constexpr bool is_zero() const noexcept { return (bits_ & 0x7fffu) == 0; }
  // Compares as numbers: NaN differs from itself, the two zeros are equal.
  friend bool operator==(Float16 a, Float16 b) noexcept { return a.to_float() == b.to_float(); }
  // Negates ==, so that NaN differs from itself.
  friend bool operator!=(Float16 a, Float16 b) noexcept { return !(a == b); }

 private:
  static constexpr Float16 pack(uint32_t bits) noexcept {
    return from_bits(static_cast<uint16_t>(bits));
  }
  uint16_t bits_ = 0;
};

// A bfloat16 number: the upper half of a binary32.
class BFloat16 {
 public:
  constexpr BFloat16() noexcept = default;
  // Rounds to nearest, ties to even.
  explicit BFloat16(float value) noexcept : BFloat16(from_float(value)) {}
  // Makes the number with these bits.
  static constexpr BFloat16 from_bits(uint16_t bits) noexcept {
    BFloat16 half;
    half.bits_ = bits;
    return half;
  }
  // Rounds to nearest, ties to even.
  static BFloat16 from_float(float value) noexcept {
    const uint32_t u = detail::float_bits(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return from_bits(static_cast<uint16_t>((u >> 16) | 0x40u));
    return from_bits(static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16));
  }
  // Converts exactly.
  float to_float() const noexcept { return detail::bits_float(static_cast<uint32_t>(bits_) << 16); }
  // Converts exactly.
  explicit operator float() const noexcept { return to_float(); }
  // The bits as they are in memory.
  constexpr uint16_t bits() const noexcept { return bits_; }
  // Whether it is a NaN, of either sign.
  constexpr bool is_nan() const noexcept { return (bits_ & 0x7fffu) > 0x7f80u; }
  // Whether it is infinite, of either sign.
  constexpr bool is_inf() const noexcept { return (bits_ & 0x7fffu) == 0x7f80u; }
  // Whether it is zero, of either sign.
  constexpr bool is_zero() const noexcept { return (bits_ & 0x7fffu) == 0; }
  // Compares as numbers: NaN differs from itself, the two zeros are equal.
  friend bool operator==(BFloat16 a, BFloat16 b) noexcept { return a.to_float() == b.to_float(); }
  // Negates ==, so that NaN differs from itself.
  friend bool operator!=(BFloat16 a, BFloat16 b) noexcept { return !(a == b); }

 private:
  uint16_t bits_ = 0;
};

}  // namespace quantization

// Element type of Float16.
template <>
struct DTypeOf<quantization::Float16> {
  // DType::Float16.
  static constexpr DType value = DType::Float16;
};
// Element type of BFloat16.
template <>
struct DTypeOf<quantization::BFloat16> {
  // DType::BFloat16.
  static constexpr DType value = DType::BFloat16;
};

}  // namespace pyflame_rt
