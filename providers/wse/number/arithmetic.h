// SPDX-License-Identifier: Apache-2.0
//
// A PE's arithmetic. Values are kept as float whatever the type at hand, and are always values of
// that type: each operation rounds once, to nearest even. A multiply-add is fused. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pfrt::wse {

// kFp32Fast: fp32 whose sums may be in any order.
enum class Arithmetic : uint8_t { kFp16, kBf16, kFp32, kFp32Fast };

// "fp16", "bf16", "fp32", "f32_fast".
std::string_view name_of(Arithmetic type);
constexpr bool is_16_bit(Arithmetic type) {
  return type == Arithmetic::kFp16 || type == Arithmetic::kBf16;
}
// Bytes of an element in a PE's memory and on the fabric.
constexpr int64_t bytes_of(Arithmetic type) { return is_16_bit(type) ? 2 : 4; }

// Rounds |value| to a value of |type|.
float round_to(Arithmetic type, float value);
void round_all(Arithmetic type, const float* from, float* to, int64_t count);
// Computes a * b + c with one rounding; all three are values of |type|.
float fused(Arithmetic type, float a, float b, float c);

// The result of a line's all-reduce for each element, in the order of the fabric's tree: see "tree
// all-reduce" in ../README.md. |parts| are those of the PEs of the line.
enum class Join : uint8_t { kAdd, kMax };
float tree_join(Arithmetic type, std::span<const float> parts, int64_t group, Join join);
// The sum or maximum in the order in which one PE joins its own elements: from the first on.
float register_join(Arithmetic type, std::span<const float> elements, Join join);

}  // namespace pfrt::wse
