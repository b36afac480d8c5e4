// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/loop/integers.h"

#include <limits>

namespace pfrt::cpu {

Lanes Integers::each(Prim prim, Prim long_prim, Lanes a, Lanes b) {
  const Term first = e_.op(long_ ? long_prim : prim, a.low, b.low);
  if (!long_) return {first};
  const bool same = a.low == a.high && b.low == b.high;  // so it is for scalars
  return {first, same ? first : e_.op(long_prim, a.high, b.high)};
}

// Unsigned numbers compare as signed ones do once their first bits are flipped.
Lanes Integers::greater_lanes(Lanes a, Lanes b) {
  if (fills_lanes()) {
    const Lanes first =
        number(long_ ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min());
    a = each(Prim::kXor, Prim::kXor, a, first);
    b = each(Prim::kXor, Prim::kXor, b, first);
  }
  return each(Prim::kIntGreater, Prim::kLongGreater, a, b);
}

Lanes Integers::pick(Lanes mask, Lanes yes, Lanes no) {
  const Term first = e_.op(Prim::kBlend, mask.low, yes.low, no.low);
  return {first, long_ ? e_.op(Prim::kBlend, mask.high, yes.high, no.high) : kNoTerm};
}

Lanes Integers::number(int64_t value) {
  if (!long_) return {e_.constant_bits(static_cast<uint32_t>(value))};
  const Term both = e_.constant_long(static_cast<uint64_t>(value));
  return {both, both};
}

// A product of 64 bits is the sum of those products of 32-bit halves that reach below 2^64.
Lanes Integers::mul(Lanes a, Lanes b) {
  if (!long_) return wrapped({e_.op(Prim::kIntMul, a.low, b.low)});
  const auto product = [&](Term x, Term y) {
    const Term x_high = e_.shift(Prim::kLongShiftRight, x, 32);
    const Term y_high = e_.shift(Prim::kLongShiftRight, y, 32);
    const Term crossed = e_.op(Prim::kLongAdd, e_.op(Prim::kLongMulLow, x_high, y),
                               e_.op(Prim::kLongMulLow, x, y_high));
    return e_.op(Prim::kLongAdd, e_.op(Prim::kLongMulLow, x, y),
                 e_.shift(Prim::kLongShiftLeft, crossed, 32));
  };
  const Term first = product(a.low, b.low);
  return {first, product(a.high, b.high)};
}

Lanes Integers::max(Lanes a, Lanes b) {
  if (long_ || fills_lanes()) return pick(greater_lanes(a, b), a, b);
  return {e_.op(Prim::kIntMax, a.low, b.low)};
}

Lanes Integers::min(Lanes a, Lanes b) {
  if (long_ || fills_lanes()) return pick(greater_lanes(b, a), a, b);
  return {e_.op(Prim::kIntMin, a.low, b.low)};
}

Lanes Integers::magnitude(Lanes x) {
  if (kUnsignedInts.has(type_)) return x;
  if (!long_) return wrapped({e_.op(Prim::kIntAbs, x.low)});
  return pick(greater_lanes(number(0), x), negative(x), x);
}

// A set mask is -1.
Lanes Integers::sign(Lanes x) {
  const Lanes zero = number(0);
  return each(Prim::kIntSub, Prim::kLongSub, greater_lanes(zero, x), greater_lanes(x, zero));
}

Lanes Integers::widened(Term x) {
  if (!long_) return {x};
  const Term first = e_.op(Prim::kWidenLow, x);
  return {first, e_.op(Prim::kWidenHigh, x)};
}

Lanes Integers::wrapped(Lanes x) {
  const auto extended = [&](uint16_t unused) {
    const Term up = e_.shift(Prim::kShiftLeft, x.low, unused);
    return Lanes{e_.shift(Prim::kShiftSigned, up, unused)};
  };
  switch (type_) {
    case PFRT_DTYPE_INT8:
      return extended(24);
    case PFRT_DTYPE_INT16:
      return extended(16);
    case PFRT_DTYPE_UINT8:
      return {e_.op(Prim::kAnd, x.low, e_.constant_bits(0xff))};
    case PFRT_DTYPE_UINT16:
      return {e_.op(Prim::kAnd, x.low, e_.constant_bits(0xffff))};
    default:
      return x;
  }
}

Term mask_not(Expression& expression, Term mask) {
  return expression.op(Prim::kXor, mask, expression.constant_bits(~uint32_t{0}));
}

}  // namespace pfrt::cpu
