// SPDX-License-Identifier: Apache-2.0
#include "core/base/small_float.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace pfrt {
namespace {

// The layout of a code is sign, exponent, mantissa; without its sign it grows with the value.
struct Format {
  uint8_t bits;      // of the code
  uint8_t mantissa;  // bits
  uint8_t bias;
  uint8_t largest;   // code of the largest finite magnitude
  uint8_t overflow;  // code for larger values without saturation
  uint8_t nan;
  bool unsigned_zero;  // FNUZ: the code of -0 is NaN, which has no sign
};

constexpr Format kE4M3FN{8, 3, 7, 0x7e, 0x7f, 0x7f, false};
constexpr Format kE4M3FNUZ{8, 3, 8, 0x7f, 0x80, 0x80, true};
constexpr Format kE5M2{8, 2, 15, 0x7b, 0x7c, 0x7e, false};
constexpr Format kE5M2FNUZ{8, 2, 16, 0x7f, 0x80, 0x80, true};
constexpr Format kE2M1{4, 1, 1, 0x7, 0x7, 0x8, false};

const Format* format_of(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT8E4M3FN:
      return &kE4M3FN;
    case PFRT_DTYPE_FLOAT8E4M3FNUZ:
      return &kE4M3FNUZ;
    case PFRT_DTYPE_FLOAT8E5M2:
      return &kE5M2;
    case PFRT_DTYPE_FLOAT8E5M2FNUZ:
      return &kE5M2FNUZ;
    case PFRT_DTYPE_FLOAT4E2M1:
      return &kE2M1;
    default:
      return nullptr;
  }
}

// 2^|exponent| of a normal float.
constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

constexpr float decode(const Format& f, uint32_t code) {
  const uint32_t sign_bit = 1u << (f.bits - 1), magnitude = code & (sign_bit - 1);
  const bool negative = (code & sign_bit) != 0;
  if (f.unsigned_zero && code == f.nan) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude > f.largest) {
    // Only E5M2 has infinities, and several NaNs after them.
    if (magnitude == f.overflow && f.overflow != f.nan)
      return negative ? -std::numeric_limits<float>::infinity()
                      : std::numeric_limits<float>::infinity();
    return std::numeric_limits<float>::quiet_NaN();
  }
  const uint32_t exponent = magnitude >> f.mantissa;
  const uint32_t fraction = magnitude & ((1u << f.mantissa) - 1);
  const uint32_t digits = exponent == 0 ? fraction : fraction | (1u << f.mantissa);
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - f.bias - f.mantissa;
  const float value = static_cast<float>(digits) * power_of_two(power);
  return negative ? -value : value;
}

constexpr std::array<float, 256> decoded(const Format& f) {
  std::array<float, 256> values{};
  for (uint32_t code = 0; code < (1u << f.bits); ++code) values[code] = decode(f, code);
  return values;
}

uint8_t encode(const Format& f, float value, bool saturate) {
  const uint32_t u = std::bit_cast<uint32_t>(value), magnitude = u & 0x7fffffffu;
  const uint32_t sign = u >> 31 << (f.bits - 1);
  const bool is_nan = magnitude > 0x7f800000u;
  if (is_nan) return static_cast<uint8_t>(f.unsigned_zero ? f.nan : f.nan | sign);
  uint32_t code;
  const int least = 1 - f.bias;  // exponent of the smallest normal number
  if (magnitude < std::bit_cast<uint32_t>(power_of_two(least))) {
    // The value in units of the smallest subnormal is exact; adding 2^23 rounds it to a whole
    // number.
    const float units = std::bit_cast<float>(magnitude) * power_of_two(f.mantissa - least);
    code = std::bit_cast<uint32_t>(units + 0x1p23f) - std::bit_cast<uint32_t>(0x1p23f);
  } else {
    const uint32_t drop = 23u - f.mantissa;
    const uint32_t rounded = magnitude + ((1u << (drop - 1)) - 1) + ((magnitude >> drop) & 1u);
    code = (rounded >> drop) - (static_cast<uint32_t>(127 - f.bias) << f.mantissa);
  }
  if (code > f.largest) {
    code = saturate ? f.largest : f.overflow;
    if (f.unsigned_zero && !saturate) return f.nan;
  }
  if (f.unsigned_zero && code == 0) return 0;
  return static_cast<uint8_t>(code | sign);
}

// A code is a power of two, 2^(code - 127), without sign or zero.
uint8_t encode_power(float value, bool saturate, PowerRounding rounding) {
  constexpr uint8_t kNan = 0xff, kLargest = 0xfe;
  const float x = std::fabs(value);
  if (std::isnan(x)) return kNan;
  if (std::isinf(x)) return saturate ? kLargest : kNan;
  if (x == 0) return saturate ? 0 : kNan;
  int exponent;
  const float fraction = std::frexp(x, &exponent);  // in [0.5, 1)
  int power = exponent - 1;
  const bool exact = fraction == 0.5f;
  if (rounding == PowerRounding::kUp ? !exact
                                     : rounding == PowerRounding::kNearest && fraction >= 0.75f)
    ++power;
  if (power < -127) return saturate ? 0 : kNan;
  if (power > 127) return saturate ? kLargest : kNan;
  return static_cast<uint8_t>(power + 127);
}

constexpr std::array<float, 256> kTables[] = {decoded(kE4M3FN), decoded(kE4M3FNUZ), decoded(kE5M2),
                                              decoded(kE5M2FNUZ), decoded(kE2M1)};

}  // namespace

bool is_small_float(pfrt_dtype dtype) {
  return dtype == PFRT_DTYPE_FLOAT8E8M0 || format_of(dtype) != nullptr;
}

float small_float_to_float(pfrt_dtype dtype, uint8_t bits) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT8E4M3FN:
      return kTables[0][bits];
    case PFRT_DTYPE_FLOAT8E4M3FNUZ:
      return kTables[1][bits];
    case PFRT_DTYPE_FLOAT8E5M2:
      return kTables[2][bits];
    case PFRT_DTYPE_FLOAT8E5M2FNUZ:
      return kTables[3][bits];
    case PFRT_DTYPE_FLOAT4E2M1:
      return kTables[4][bits & 0xfu];
    case PFRT_DTYPE_FLOAT8E8M0:
      if (bits == 0xff) return std::numeric_limits<float>::quiet_NaN();
      return bits == 0 ? 0x1p-127f : power_of_two(static_cast<int>(bits) - 127);
    default:
      return 0;
  }
}

uint8_t float_to_small_float(pfrt_dtype dtype, float value, bool saturate, PowerRounding rounding) {
  if (dtype == PFRT_DTYPE_FLOAT8E8M0) return encode_power(value, saturate, rounding);
  const Format* f = format_of(dtype);
  return f == nullptr ? uint8_t{0} : encode(*f, value, saturate);
}

}  // namespace pfrt
