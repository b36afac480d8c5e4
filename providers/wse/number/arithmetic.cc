// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/number/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/base/half.h"

namespace pfrt::wse {
namespace {

// |value| + |error| is exact; the neighbour of |value| with an odd last bit, unless it is exact.
// Rounding that once more, to a type of at least two bits less, is as good as rounding directly.
double to_odd(double value, double error) {
  if (error == 0 || !std::isfinite(value)) return value;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  if (bits & 1) return value;
  const bool away = (error > 0) == (value > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

float to_odd_float(double value) {
  const auto near = static_cast<float>(value);
  if (static_cast<double>(near) == value || !std::isfinite(near)) return near;
  const uint32_t bits = std::bit_cast<uint32_t>(near);
  if (bits & 1) return near;
  const bool away = std::fabs(value) > std::fabs(static_cast<double>(near));
  return std::bit_cast<float>(away ? bits + 1 : bits - 1);
}

float join_two(Arithmetic type, float a, float b, Join join) {
  if (join == Join::kAdd) return round_to(type, a + b);
  return std::isnan(a) || a > b ? a : b;
}

}  // namespace

std::string_view name_of(Arithmetic type) {
  switch (type) {
    case Arithmetic::kFp16:
      return "fp16";
    case Arithmetic::kBf16:
      return "bf16";
    case Arithmetic::kFp32:
      return "fp32";
    case Arithmetic::kFp32Fast:
      return "f32_fast";
  }
  return "";
}

float round_to(Arithmetic type, float value) {
  if (type == Arithmetic::kFp16) return float16_to_float(float_to_float16(value));
  if (type == Arithmetic::kBf16) return bfloat16_to_float(float_to_bfloat16(value));
  return value;
}

void round_all(Arithmetic type, const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = round_to(type, from[i]);
}

float fused(Arithmetic type, float a, float b, float c) {
  if (!is_16_bit(type)) return std::fma(a, b, c);
  // The product of two 16-bit values is exact in double; the sum is known with its error (Knuth).
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const auto addend = static_cast<double>(c);
  const double sum = product + addend;
  if (std::isnan(sum)) return round_to(type, std::fma(a, b, c));
  const double back = sum - product;
  const double error = (product - (sum - back)) + (addend - back);
  const double odd = std::isfinite(sum) ? to_odd(sum, error) : sum;
  return round_to(type, to_odd_float(odd));
}

float register_join(Arithmetic type, std::span<const float> elements, Join join) {
  if (elements.empty()) return join == Join::kAdd ? 0.0F : -INFINITY;
  float out = elements[0];
  for (const float element : elements.subspan(1)) out = join_two(type, out, element, join);
  return out;
}

namespace {

// The chain from |first| to |root|, both of |parts|, |step| apart: what arrives at the root.
float chain(Arithmetic type, std::span<const float> parts, int64_t first, int64_t root,
            int64_t step, Join join) {
  float carried = parts[static_cast<size_t>(first)];
  for (int64_t i = first + step; i != root; i += step)
    carried = join_two(type, carried, parts[static_cast<size_t>(i)], join);
  return carried;
}

// Joins both chains of [begin, end) into |root|: that from above first.
float join_at(Arithmetic type, std::span<const float> parts, int64_t begin, int64_t end,
              int64_t root, Join join) {
  float out = parts[static_cast<size_t>(root)];
  if (root + 1 < end) out = join_two(type, chain(type, parts, end - 1, root, -1, join), out, join);
  if (root > begin) out = join_two(type, chain(type, parts, begin, root, 1, join), out, join);
  return out;
}

}  // namespace

float tree_join(Arithmetic type, std::span<const float> parts, int64_t group, Join join) {
  const auto count = static_cast<int64_t>(parts.size());
  std::vector<float> roots;
  for (int64_t begin = 0; begin < count; begin += group) {
    const int64_t end = std::min(count, begin + group);
    roots.push_back(join_at(type, parts, begin, end, std::min(begin + group / 2, end - 1), join));
  }
  const auto groups = static_cast<int64_t>(roots.size());
  return join_at(type, roots, 0, groups, groups / 2, join);
}

}  // namespace pfrt::wse
