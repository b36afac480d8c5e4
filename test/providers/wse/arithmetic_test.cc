// SPDX-License-Identifier: Apache-2.0
//
// A PE's arithmetic rounds the exact result once, vectors have the bits of single operations, and
// sums follow the order of the fabric's tree.
#include "providers/wse/number/arithmetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/base/half.h"
#include "providers/wse/number/tile.h"
#include "test/providers/wse/values.h"

namespace pfrt::wse::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr Arithmetic kAllTypes[] = {Arithmetic::kFp16, Arithmetic::kBf16, Arithmetic::kFp32,
                                    Arithmetic::kFp32Fast};
constexpr Arithmetic kNarrowTypes[] = {Arithmetic::kFp16, Arithmetic::kBf16};

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

float of_bits(Arithmetic type, uint16_t bits) {
  return type == Arithmetic::kFp16 ? float16_to_float(bits) : bfloat16_to_float(bits);
}

// Rounds the exact |value| once, to nearest even.
float rounded_once(Arithmetic type, long double value) {
  const bool half = type == Arithmetic::kFp16;
  const int fraction = half ? 10 : 7, least = half ? -14 : -126, most = half ? 15 : 127;
  if (value == 0 || !std::isfinite(value)) return static_cast<float>(value);
  const int step = std::max(std::ilogb(value), least) - fraction;
  const long double scaled = std::fabs(std::ldexp(value, -step));
  auto whole = static_cast<int64_t>(scaled);
  const long double rest = scaled - static_cast<long double>(whole);
  if (rest > 0.5L || (rest == 0.5L && whole % 2 != 0)) ++whole;
  const long double out = std::ldexp(static_cast<long double>(whole), step);
  const float size = out >= std::ldexp(1.0L, most + 1) ? kInfinity : static_cast<float>(out);
  return std::signbit(value) ? -size : size;
}

// Returns a * b + c. The product has 22 bits at most, and long double holds it exactly. When two
// numbers are more than 40 bits apart, only the sign of the smaller matters, so a larger one
// replaces it that makes the sum exact.
float fused_exactly(Arithmetic type, float a, float b, float c) {
  const long double product = static_cast<long double>(a) * static_cast<long double>(b);
  auto addend = static_cast<long double>(c);
  if (!std::isfinite(product) || !std::isfinite(addend) || product == 0 || addend == 0)
    return rounded_once(type, product + addend);
  const int p = std::ilogb(product), q = std::ilogb(addend);
  const long double nudge = std::ldexp(1.0L, std::max(p, q) - 40);
  if (p - q > 40) return rounded_once(type, product + std::copysign(nudge, addend));
  if (q - p > 40) return rounded_once(type, addend + std::copysign(nudge, product));
  return rounded_once(type, product + addend);
}

void expect_fused(Arithmetic type, float a, float b, float c) {
  const float is = fused(type, a, b, c), exact = fused_exactly(type, a, b, c);
  if (std::isnan(exact)) {
    EXPECT_TRUE(std::isnan(is)) << name_of(type) << " " << a << " * " << b << " + " << c;
    return;
  }
  EXPECT_EQ(bits_of(is), bits_of(exact))
      << std::hexfloat << name_of(type) << " " << a << " * " << b << " + " << c << " is " << is
      << ", exactly rounded " << exact;
}

// Returns zero, the ends of subnormals and normals, ones and their neighbours, infinities and NaN.
std::vector<float> special_values(Arithmetic type) {
  std::vector<float> out = {kInfinity, kNaN};
  const bool half = type == Arithmetic::kFp16;
  const uint16_t one = half ? 0x3c00 : 0x3f80, least = half ? 0x0400 : 0x0080,
                 most = half ? 0x7bff : 0x7f7f, step = half ? 0x0400 : 0x0080;
  for (const int bits : {0, 1, 2, 3, least / 2, least - 1, int{least}, least + 1, one - 1, int{one},
                         one + 1, one + step - 1, one + step, one + step / 2, one - step * 3,
                         one + step * 3 + 1, most - 1, int{most}})
    out.push_back(of_bits(type, static_cast<uint16_t>(bits)));
  const size_t count = out.size();
  for (size_t i = 0; i < count; ++i) out.push_back(-out[i]);
  return out;
}

TEST(Arithmetic, special_values_are_fused_with_one_rounding) {
  for (const Arithmetic type : kNarrowTypes) {
    const std::vector<float> values = special_values(type);
    for (const float a : values)
      for (const float b : values)
        for (const float c : values) expect_fused(type, a, b, c);
  }
}

TEST(Arithmetic, values_of_any_bits_are_fused_with_one_rounding) {
  std::mt19937_64 random(1);
  for (const Arithmetic type : kNarrowTypes)
    for (int i = 0; i < 200000; ++i) {
      const uint64_t bits = random();
      expect_fused(type, of_bits(type, static_cast<uint16_t>(bits)),
                   of_bits(type, static_cast<uint16_t>(bits >> 16)),
                   of_bits(type, static_cast<uint16_t>(bits >> 32)));
    }
}

// A product of an odd fraction and 1.5 lies midway between two values of the type, as do many sums
// of numbers of nearly equal size. The addend decides.
TEST(Arithmetic, ties_are_decided_by_what_is_far_below_them) {
  std::mt19937_64 random(2);
  for (const Arithmetic type : kNarrowTypes) {
    const bool half = type == Arithmetic::kFp16;
    const uint16_t one = half ? 0x3c00 : 0x3f80;
    const int fractions = half ? 1024 : 128;
    const float least = of_bits(type, 1);
    for (int i = 1; i < fractions; i += 2) {
      const float odd = of_bits(type, static_cast<uint16_t>(one + i));
      const float scale = std::ldexp(1.0F, static_cast<int>(random() % 10));
      for (const float c : {0.0F, least, -least, scale, -scale, of_bits(type, one)})
        for (const float a : {1.5F, -1.5F, 1.25F, 3 * scale, 0.5F * least * 0x1p20F})
          expect_fused(type, a, odd, c);
      // These are around the smallest subnormals.
      for (const float small : {least, 3 * least, 5 * least})
        for (const float c : {0.0F, least, -2 * least}) {
          expect_fused(type, 0.5F, small, c);
          expect_fused(type, odd, small, c);
          expect_fused(type, -0.5F * odd, small, c);
        }
    }
  }
}

TEST(Arithmetic, wide_types_are_fused_as_float_is) {
  std::mt19937 random(3);
  for (int i = 0; i < 10000; ++i) {
    const auto a = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const auto b = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const auto c = std::bit_cast<float>(static_cast<uint32_t>(random()));
    for (const Arithmetic type : {Arithmetic::kFp32, Arithmetic::kFp32Fast}) {
      const float is = fused(type, a, b, c), exact = std::fma(a, b, c);
      EXPECT_TRUE(std::isnan(exact) ? std::isnan(is) : bits_of(is) == bits_of(exact))
          << std::hexfloat << a << " * " << b << " + " << c;
    }
  }
}

TEST(Arithmetic, values_are_rounded_to_nearest_even) {
  std::mt19937 random(4);
  for (const Arithmetic type : kNarrowTypes) {
    std::vector<float> in;
    for (uint32_t high = 0; high < 0x10000; high += 3)
      for (const uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u,
                                 0x8001u, static_cast<uint32_t>(random() & 0xffff)})
        in.push_back(std::bit_cast<float>(high << 16 | low));
    std::vector<float> out(in.size());
    round_all(type, in.data(), out.data(), static_cast<int64_t>(in.size()));
    for (size_t i = 0; i < in.size(); ++i) {
      const float exact = rounded_once(type, static_cast<long double>(in[i]));
      ASSERT_EQ(bits_of(out[i]), bits_of(round_to(type, in[i])));
      ASSERT_TRUE(std::isnan(exact) ? std::isnan(out[i]) : bits_of(out[i]) == bits_of(exact))
          << std::hexfloat << name_of(type) << " " << in[i] << " is " << out[i];
      ASSERT_EQ(bits_of(round_to(type, out[i])), bits_of(out[i]));
    }
  }
  EXPECT_EQ(bits_of(round_to(Arithmetic::kFp32, 0x1.234568p-130F)), bits_of(0x1.234568p-130F));
}

TEST(Arithmetic, types_have_names_and_sizes) {
  EXPECT_EQ(name_of(Arithmetic::kFp16), "fp16");
  EXPECT_EQ(name_of(Arithmetic::kBf16), "bf16");
  EXPECT_EQ(name_of(Arithmetic::kFp32), "fp32");
  EXPECT_EQ(name_of(Arithmetic::kFp32Fast), "f32_fast");
  EXPECT_EQ(bytes_of(Arithmetic::kFp16), 2);
  EXPECT_EQ(bytes_of(Arithmetic::kBf16), 2);
  EXPECT_EQ(bytes_of(Arithmetic::kFp32), 4);
  EXPECT_EQ(bytes_of(Arithmetic::kFp32Fast), 4);
}

// A product of tiles with its memory. |strange| of a hundred values are zeros, infinities and the
// like.
struct RandomTile {
  RandomTile(Arithmetic type_in, uint64_t seed, int strange, bool with_nan)
      : type(type_in), random(seed) {
    rows = below(10);
    width = kTileLanes * (1 + below(4));
    depth = 1 + below(40);
    a_stride = depth + below(3);
    block = 1 + below(depth + 2);
    const int64_t blocks = (depth + block - 1) / block;
    for (int64_t i = 0; i < blocks; ++i) order.push_back(static_cast<int32_t>(i));
    std::shuffle(order.begin(), order.end(), random);
    for (std::vector<float>* values : {&a, &b, &c}) {
      const int64_t count = values == &a ? rows * a_stride : (values == &b ? depth : rows) * width;
      for (int64_t i = 0; i < count; ++i) values->push_back(value(strange, with_nan));
    }
  }
  int64_t below(int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  }
  float value(int strange, bool with_nan) {
    std::uniform_real_distribution<float> numbers(-2.0F, 2.0F);
    if (below(100) >= strange) return round_to(type, numbers(random));
    switch (below(with_nan ? 8 : 7)) {
      case 0:
        return 0.0F;
      case 1:
        return -0.0F;
      case 2:
        return kInfinity;
      case 3:
        return -kInfinity;
      case 4:
        return round_to(type, numbers(random) * (type == Arithmetic::kFp16 ? 0x1p-15F : 0x1p-127F));
      case 5:
        return round_to(type, numbers(random) * (type == Arithmetic::kFp16 ? 0x1p14F : 0x1p126F));
      case 6:
        return round_to(type, numbers(random) * (type == Arithmetic::kFp16 ? 0x1p-8F : 0x1p-66F));
      default:
        return kNaN;
    }
  }
  std::vector<float> run(void (*multiply_fn)(Arithmetic, const TileProduct&)) const {
    std::vector<float> out = c;
    multiply_fn(type, {a.data(), a_stride, b.data(), out.data(), rows, width, depth, order.data(),
                       static_cast<int64_t>(order.size()), block});
    return out;
  }
  std::string text() const {
    return message(name_of(type), " rows ", rows, " width ", width, " depth ", depth, " block ",
                   block);
  }

  Arithmetic type;
  std::mt19937_64 random;
  int64_t rows, width, depth, a_stride, block;
  std::vector<int32_t> order;
  std::vector<float> a, b, c;
};

TEST(Tile, vectors_have_the_bits_of_single_operations) {
  for (const Arithmetic type : kAllTypes)
    for (const int strange : {0, 2, 30})
      for (uint64_t seed = 0; seed < 60; ++seed) {
        const RandomTile tile(type, seed, strange, /*with_nan=*/false);
        const std::vector<float> fast = tile.run(multiply), plain = tile.run(multiply_portable);
        for (size_t i = 0; i < plain.size(); ++i)
          ASSERT_TRUE(std::isnan(plain[i]) ? std::isnan(fast[i])
                                           : bits_of(plain[i]) == bits_of(fast[i]))
              << std::hexfloat << tile.text() << " strange " << strange << " seed " << seed
              << " at " << i << ": " << fast[i] << ", portable " << plain[i];
      }
}

void expect_same_nans(Arithmetic type) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const RandomTile tile(type, seed, 10, /*with_nan=*/true);
    const std::vector<float> fast = tile.run(multiply), plain = tile.run(multiply_portable);
    for (size_t i = 0; i < plain.size(); ++i)
      ASSERT_EQ(bits_of(fast[i]), bits_of(plain[i]))
          << tile.text() << " seed " << seed << " at " << i;
  }
}

TEST(Tile, numbers_that_are_none_have_the_same_bits_too) {
  for (const Arithmetic type : kAllTypes) expect_same_nans(type);
}

TEST(Tile, blocks_of_k_are_visited_in_their_order) {
  // In fp16 2048 + 1 is 2048, so the order of the sums shows.
  std::vector<float> b(5 * kTileLanes, 1.0F);
  const std::vector<float> a = {2048, 1, 1, -2048, 1};
  for (const auto& [order, expected] :
       std::vector<std::pair<std::vector<int32_t>, float>>{{{0, 1, 2}, 1.0F},
                                                           {{2, 1, 0}, 2.0F},
                                                           {{1, 0, 2}, 2.0F},
                                                           {{0, 2, 1}, 1.0F},
                                                           {{0}, 2048.0F},
                                                           {{2}, 1.0F}}) {
    float by_hand = 0;
    for (const int32_t block : order)
      for (size_t k = static_cast<size_t>(block) * 2;
           k < std::min<size_t>(5, static_cast<size_t>(block) * 2 + 2); ++k)
        by_hand = round_to(Arithmetic::kFp16, by_hand + a[k]);
    for (auto* fn : {multiply, multiply_portable}) {
      std::vector<float> c(kTileLanes, 0.0F);
      fn(Arithmetic::kFp16, {a.data(), 5, b.data(), c.data(), 1, kTileLanes, 5, order.data(),
                             static_cast<int64_t>(order.size()), 2});
      for (const float value : c) EXPECT_EQ(value, by_hand) << expected;
    }
  }
}

TEST(Join, a_line_is_added_up_in_the_order_of_the_tree) {
  for (const Arithmetic type : kAllTypes)
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const std::vector<float> p = random_values(10, type, seed);
      const auto add = [type](float x, float y) { return round_to(type, x + y); };
      // Groups 0-3, 4-7 and 8-9 have their roots at 2, 6 and 9, and the root of all is 6.
      const float low = add(add(p[0], p[1]), add(p[3], p[2]));
      const float middle = add(add(p[4], p[5]), add(p[7], p[6]));
      const float high = add(p[8], p[9]);
      const float all = add(low, add(high, middle));
      ASSERT_EQ(bits_of(tree_join(type, p, 4, Join::kAdd)), bits_of(all)) << name_of(type);
      // A single group has its root in the middle, and sums from above come first.
      const float above = add(add(add(p[9], p[8]), p[7]), p[6]);
      const float below = add(add(add(add(p[0], p[1]), p[2]), p[3]), p[4]);
      ASSERT_EQ(bits_of(tree_join(type, p, 10, Join::kAdd)), bits_of(add(below, add(above, p[5]))));
      // Groups of one PE leave the same sums among the roots.
      ASSERT_EQ(bits_of(tree_join(type, p, 1, Join::kAdd)), bits_of(add(below, add(above, p[5]))));
    }
}

TEST(Join, the_order_shows_in_fp16) {
  const std::vector<float> p = {2048, 1, 1, 1, 1};
  EXPECT_EQ(register_join(Arithmetic::kFp16, p, Join::kAdd), 2048.0F);
  // The sum 1 + 1 + 1 from above comes first, then 2048 from below: 2051 is rounded to even.
  EXPECT_EQ(tree_join(Arithmetic::kFp16, p, 5, Join::kAdd), 2052.0F);
}

TEST(Join, a_maximum_does_not_depend_on_groups_and_keeps_what_is_no_number) {
  std::vector<float> p = random_values(23, Arithmetic::kFp16, 5);
  const float most = *std::max_element(p.begin(), p.end());
  for (int64_t group = 1; group <= 30; ++group)
    EXPECT_EQ(tree_join(Arithmetic::kFp16, p, group, Join::kMax), most) << group;
  EXPECT_EQ(register_join(Arithmetic::kFp16, p, Join::kMax), most);
  for (size_t i = 0; i < p.size(); ++i) {
    std::vector<float> with = p;
    with[i] = kNaN;
    for (const int64_t group : {1, 4, 5, 23})
      EXPECT_TRUE(std::isnan(tree_join(Arithmetic::kFp16, with, group, Join::kMax))) << i;
    EXPECT_TRUE(std::isnan(register_join(Arithmetic::kFp16, with, Join::kMax))) << i;
  }
}

TEST(Join, one_part_is_the_result_and_none_is_neutral_in_a_register) {
  const std::vector<float> one = {3};
  for (const Join join : {Join::kAdd, Join::kMax}) {
    EXPECT_EQ(tree_join(Arithmetic::kFp16, one, 1, join), 3.0F);
    EXPECT_EQ(tree_join(Arithmetic::kFp16, one, 7, join), 3.0F);
    EXPECT_EQ(register_join(Arithmetic::kFp16, one, join), 3.0F);
  }
  EXPECT_EQ(register_join(Arithmetic::kFp16, {}, Join::kAdd), 0.0F);
  EXPECT_EQ(register_join(Arithmetic::kFp16, {}, Join::kMax), -kInfinity);
}

}  // namespace
}  // namespace pfrt::wse::test
