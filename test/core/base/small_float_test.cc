// SPDX-License-Identifier: Apache-2.0
//
// Compares every code with the formulas of the standard, and conversions with a search for the
// nearest of all values: float16 exhaustively, float32 around every boundary and at random.
#include "core/base/small_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/base/half.h"

namespace pfrt {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Kind {
  pfrt_dtype dtype;
  int bits, exponent_bits, mantissa_bits, bias;
  float max;
  bool has_infinity, has_nan, has_negative_zero;
  uint8_t nan;
};
constexpr Kind kKinds[] = {
    {PFRT_DTYPE_FLOAT8E4M3FN, 8, 4, 3, 7, 448, false, true, true, 0x7f},
    {PFRT_DTYPE_FLOAT8E4M3FNUZ, 8, 4, 3, 8, 240, false, true, false, 0x80},
    {PFRT_DTYPE_FLOAT8E5M2, 8, 5, 2, 15, 57344, true, true, true, 0x7e},
    {PFRT_DTYPE_FLOAT8E5M2FNUZ, 8, 5, 2, 16, 57344, false, true, false, 0x80},
    {PFRT_DTYPE_FLOAT4E2M1, 4, 2, 1, 1, 6, false, false, true, 0x08},
};

// Returns the value of a code by the standard's formula; NaN and infinities at the codes that it
// gives them.
double value_of(const Kind& k, int code) {
  const int magnitude = code & ((1 << (k.bits - 1)) - 1);
  const double sign = code >> (k.bits - 1) ? -1 : 1;
  const int exponent = magnitude >> k.mantissa_bits;
  const double fraction =
      static_cast<double>(magnitude % (1 << k.mantissa_bits)) / (1 << k.mantissa_bits);
  if (!k.has_negative_zero && code == 0x80) return std::nan("");
  if (k.dtype == PFRT_DTYPE_FLOAT8E4M3FN && magnitude == 0x7f) return std::nan("");
  if (k.dtype == PFRT_DTYPE_FLOAT8E5M2 && exponent == 31)
    return fraction == 0 ? sign * static_cast<double>(kInf) : std::nan("");
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - k.bias)
                               : std::ldexp(1 + fraction, exponent - k.bias));
}

// Magnitudes by code. A further one, beyond the largest value, decides which numbers still round to
// that value.
std::vector<double> magnitudes(const Kind& k) {
  std::vector<double> out;
  for (int code = 0; code <= 1 << (k.bits - 1); ++code) {
    const int exponent = code >> k.mantissa_bits;
    const double fraction =
        static_cast<double>(code % (1 << k.mantissa_bits)) / (1 << k.mantissa_bits);
    out.push_back(exponent == 0 ? std::ldexp(fraction, 1 - k.bias)
                                : std::ldexp(1 + fraction, exponent - k.bias));
  }
  return out;
}

// Returns the expected code of |x|: that of the nearest value, and the even one of two that are
// equally near.
int nearest(const Kind& k, const std::vector<double>& values, float x, bool saturate) {
  const int sign = std::signbit(x) ? 1 << (k.bits - 1) : 0;
  const int nan = k.has_negative_zero ? k.nan | sign : k.nan;
  if (std::isnan(x)) return nan;
  const double wanted = std::fabs(static_cast<double>(x));
  size_t best = 0;
  for (size_t code = 1; code < values.size(); ++code) {
    const double gain = std::fabs(values[best] - wanted) - std::fabs(values[code] - wanted);
    if (gain > 0 || (gain == 0 && code % 2 == 0)) best = code;
  }
  if (std::isinf(x) || values[best] > static_cast<double>(k.max)) {
    int top = 0;
    while (values[static_cast<size_t>(top)] != static_cast<double>(k.max)) ++top;
    if (saturate || !k.has_nan) return top | sign;
    return k.has_infinity ? (top + 1) | sign : nan;
  }
  const int code = static_cast<int>(best);
  return code == 0 && !k.has_negative_zero ? 0 : code | sign;
}

std::vector<float> probes(const Kind& k) {
  std::vector<float> out = {0.0f, -0.0f, kInf, -kInf, std::nanf(""), -std::nanf(""), 1e-45f, 3e38f};
  for (uint32_t h = 0; h < 65536; ++h) out.push_back(float16_to_float(static_cast<uint16_t>(h)));
  for (int code = 0; code < 1 << k.bits; ++code) {
    for (int next : {code, code + 1}) {
      const double middle = (value_of(k, code) + value_of(k, next % (1 << k.bits))) / 2;
      const float at = static_cast<float>(middle);
      for (float x : {at, std::nextafter(at, kInf), std::nextafter(at, -kInf)}) out.push_back(x);
    }
  }
  std::mt19937 engine(7);
  for (int i = 0; i < 20000; ++i)
    out.push_back(std::bit_cast<float>(static_cast<uint32_t>(engine())));
  std::uniform_real_distribution<float> near(-2 * k.max, 2 * k.max);
  for (int i = 0; i < 5000; ++i) out.push_back(near(engine));
  return out;
}

TEST(SmallFloat, every_code_has_the_value_of_the_formula) {
  for (const Kind& k : kKinds) {
    for (int code = 0; code < 1 << k.bits; ++code) {
      const float got = small_float_to_float(k.dtype, static_cast<uint8_t>(code));
      const double want = value_of(k, code);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got)) << k.dtype << " " << code;
      else
        EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(static_cast<float>(want)))
            << k.dtype << " " << code;
    }
  }
}

TEST(SmallFloat, e2m1_is_the_table_of_the_standard) {
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (uint8_t code = 0; code < 8; ++code) {
    EXPECT_EQ(small_float_to_float(PFRT_DTYPE_FLOAT4E2M1, code), kValues[code]);
    EXPECT_EQ(small_float_to_float(PFRT_DTYPE_FLOAT4E2M1, code | 8), -kValues[code]);
  }
}

TEST(SmallFloat, rounds_to_nearest_even_and_saturates_when_asked) {
  for (const Kind& k : kKinds) {
    const std::vector<double> values = magnitudes(k);
    int wrong = 0;
    for (float x : probes(k)) {
      for (bool saturate : {true, false}) {
        const int got = float_to_small_float(k.dtype, x, saturate);
        const int want = nearest(k, values, x, saturate);
        if (got != want && ++wrong < 5)
          ADD_FAILURE() << k.dtype << ": " << x << (saturate ? " saturated" : "") << " became "
                        << got << ", not " << want;
      }
    }
  }
}

TEST(SmallFloat, powers_of_two_round_as_asked) {
  const auto code = [](float x, PowerRounding rounding, bool saturate = true) {
    return static_cast<int>(float_to_small_float(PFRT_DTYPE_FLOAT8E8M0, x, saturate, rounding));
  };
  for (int e = 0; e < 255; ++e) {
    const float power = std::ldexp(1.0f, e - 127);
    EXPECT_EQ(small_float_to_float(PFRT_DTYPE_FLOAT8E8M0, static_cast<uint8_t>(e)), power);
    for (auto rounding : {PowerRounding::kUp, PowerRounding::kDown, PowerRounding::kNearest})
      EXPECT_EQ(code(power, rounding), e);
    const int up = std::min(e + 1, 254);
    EXPECT_EQ(code(power * 1.25f, PowerRounding::kUp), up);
    EXPECT_EQ(code(power * 1.25f, PowerRounding::kDown), e);
    EXPECT_EQ(code(power * 1.25f, PowerRounding::kNearest), e);
    EXPECT_EQ(code(power * 1.5f, PowerRounding::kNearest), up);
    EXPECT_EQ(code(power * 1.75f, PowerRounding::kDown), e);
  }
  EXPECT_TRUE(std::isnan(small_float_to_float(PFRT_DTYPE_FLOAT8E8M0, 0xff)));
  EXPECT_EQ(code(std::nanf(""), PowerRounding::kUp), 0xff);
  // These are the two columns of the standard's table.
  EXPECT_EQ(code(0, PowerRounding::kUp), 0);
  EXPECT_EQ(code(kInf, PowerRounding::kUp), 0xfe);
  EXPECT_EQ(code(3e38f, PowerRounding::kUp), 0xfe);
  EXPECT_EQ(code(1e-45f, PowerRounding::kUp), 0);
  for (float x : {0.0f, kInf, 3e38f, 1e-45f})
    EXPECT_EQ(code(x, PowerRounding::kNearest, false), 0xff) << x;
}

}  // namespace
}  // namespace pfrt
