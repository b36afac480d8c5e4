// SPDX-License-Identifier: Apache-2.0
//
// round_to with the type known at compile time, so that inner loops have no switch; and sums along
// an axis as it lies on the wafer.
#pragma once

#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "core/base/half.h"
#include "providers/wse/operators/operators.h"

namespace pfrt::wse {

// A neighbour of |value| from which rounding to 16 bits gives what rounding |value| itself would:
// its last bit is odd unless it is exact.
inline float float_towards_odd(double value) {
  const auto near = static_cast<float>(value);
  if (static_cast<double>(near) == value || !std::isfinite(near)) return near;
  const uint32_t bits = std::bit_cast<uint32_t>(near);
  if (bits & 1) return near;
  const bool further = std::fabs(value) > std::fabs(static_cast<double>(near));
  return std::bit_cast<float>(further ? bits + 1 : bits - 1);
}

template <Arithmetic type>
struct Rounding {
  float operator()(float value) const {
    if constexpr (type == Arithmetic::kFp16)
      return float16_to_float(float_to_float16(value));
    else if constexpr (type == Arithmetic::kBf16)
      return bfloat16_to_float(float_to_bfloat16(value));
    else
      return value;
  }
  // Rounds a result that was computed in double, once.
  float wide(double value) const {
    if constexpr (is_16_bit(type))
      return (*this)(float_towards_odd(value));
    else
      return static_cast<float>(value);
  }
  float exp(float x) const { return wide(std::exp(static_cast<double>(x))); }
  float divide(float a, float b) const {
    return wide(static_cast<double>(a) / static_cast<double>(b));
  }
  float square_root(float x) const { return wide(std::sqrt(static_cast<double>(x))); }
};

// Calls fn(Rounding<type>()). fp32 whose sums may be in any order has them in fp32's.
template <typename Fn>
auto with_rounding(Arithmetic type, Fn fn) {
  if (type == Arithmetic::kFp16) return fn(Rounding<Arithmetic::kFp16>());
  if (type == Arithmetic::kBf16) return fn(Rounding<Arithmetic::kBf16>());
  return fn(Rounding<Arithmetic::kFp32>());
}

// Adds up an axis, or finds its maximum: the pieces of |spread|, then the tree. Pieces beyond the
// end of a short axis take part as empty ones, since their PEs do.
class AxisJoin {
 public:
  AxisJoin(Arithmetic type, Spread spread);
  explicit AxisJoin(const Call& call) : AxisJoin(call.arithmetic, call.spread) {}

  int64_t parts() const { return static_cast<int64_t>(parts_.size()); }
  float operator()(std::span<const float> axis, Join join);
  // Joins the results of |parts()| pieces.
  float tree(std::span<const float> pieces, Join join) const;

 private:
  Arithmetic type_;
  int64_t group_;
  std::vector<float> parts_;
};

}  // namespace pfrt::wse
