// SPDX-License-Identifier: Apache-2.0
//
// Casts, with the results of the reference kernels (elements/convert.h).
#include <limits>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/loop/integers.h"
#include "providers/cpu/loop/lower.h"
#include "providers/cpu/loop/maths.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLow32 = 0xffffffff;

class Caster {
 public:
  Caster(Expression& expression, pfrt_dtype to) : e_(expression), m_(expression), to_(to) {}

  Lanes from_bool(Term mask) {
    if (to_ == PFRT_DTYPE_BOOL) return {mask};
    if (kFloatLanes.has(to_)) return {e_.op(Prim::kAnd, mask, e_.constant(1.0f))};
    return Integers(e_, to_).from_int(e_.op(Prim::kAnd, mask, e_.constant_bits(1)));
  }

  Lanes from_float(Term x) {
    if (to_ == PFRT_DTYPE_BOOL) return {mask_not(e_, m_.equal(x, m_.number(0.0f)))};
    if (kFloatLanes.has(to_)) return {m_.rounded(x, to_)};
    if (to_ == PFRT_DTYPE_UINT64) return to_unsigned_long(x);
    if (to_ != PFRT_DTYPE_INT64) return {to_int(x)};
    const Term first = e_.op(Prim::kFloatToLongLow, x);
    return {first, e_.op(Prim::kFloatToLongHigh, x)};
  }

  Lanes from_int(Term x, pfrt_dtype from) {
    const bool is_unsigned = from == PFRT_DTYPE_UINT32;
    if (to_ == PFRT_DTYPE_BOOL) return {mask_not(e_, equal(x, 0))};
    if (kLongLanes.has(to_) && is_unsigned)
      return {zero_extended(Prim::kWidenLow, x), zero_extended(Prim::kWidenHigh, x)};
    if (!kFloatLanes.has(to_)) return Integers(e_, to_).from_int(x);
    const bool twice = dtype_size(from) == 4 && to_ == PFRT_DTYPE_BFLOAT16;
    if (twice) x = rounded_to_odd(x, from);
    return {m_.rounded(is_unsigned ? unsigned_to_float(x) : e_.op(Prim::kToFloat, x), to_)};
  }

  Lanes from_long(Lanes x, pfrt_dtype from) {
    Integers numbers(e_, from);
    if (to_ == PFRT_DTYPE_BOOL) return {mask_not(e_, numbers.equal(x, numbers.number(0)))};
    if (kLongLanes.has(to_)) return x;
    if (!kFloatLanes.has(to_))
      return Integers(e_, to_).from_int(e_.op(Prim::kNarrow, x.low, x.high));
    const bool is_signed = from == PFRT_DTYPE_INT64;
    if (is_signed && x.low != x.high)
      return {m_.rounded(e_.op(Prim::kLongToFloat, x.low, x.high), to_)};
    const Term low = to_double(x.low, is_signed);
    const Term high = x.low == x.high ? low : to_double(x.high, is_signed);
    return {m_.rounded(e_.op(Prim::kDoubleNarrow, low, high), to_)};
  }

 private:
  Term equal(Term x, int32_t number) {
    return e_.op(Prim::kIntEqual, x, e_.constant_bits(static_cast<uint32_t>(number)));
  }
  Term all_of(Term x, Term y) { return e_.op(Prim::kAnd, x, y); }
  Term any_of(Term x, Term y) { return e_.op(Prim::kOr, x, y); }
  Term longs(int64_t number) { return e_.constant_long(static_cast<uint64_t>(number)); }
  Term zero_where_nan(Term x, Term result) {
    return m_.blend(m_.is_nan(x), e_.constant_bits(0), result);
  }

  Term zero_extended(Prim widen, Term x) { return all_of(e_.op(widen, x), longs(kLow32)); }

  // Converts whole numbers in [0, 2^32).
  Term to_unsigned(Term x) {
    const Term large = m_.less_or_equal(m_.number(0x1p31f), x);
    const Term less = m_.sub(x, all_of(large, m_.number(0x1p31f)));
    return e_.op(Prim::kXor, e_.op(Prim::kTruncate, less),
                 all_of(large, e_.constant_bits(0x80000000u)));
  }

  // Both halves are exact, and their sum is rounded once.
  Term unsigned_to_float(Term x) {
    const Term high = e_.op(Prim::kToFloat, e_.shift(Prim::kShiftRight, x, 16));
    const Term low = e_.op(Prim::kToFloat, all_of(x, e_.constant_bits(0xffff)));
    return m_.fma(high, m_.number(0x1p16f), low);
  }

  // Truncation gives the least number for all that is out of range.
  Term to_int(Term x) {
    if (to_ == PFRT_DTYPE_INT32) {
      const Term above = m_.less_or_equal(m_.number(0x1p31f), x);
      return zero_where_nan(x, e_.op(Prim::kXor, e_.op(Prim::kTruncate, x), above));
    }
    if (to_ == PFRT_DTYPE_UINT32) {
      const Term above = m_.less_or_equal(m_.number(0x1p32f), x);
      const Term size = e_.op(Prim::kFloor, m_.at_least(m_.number(0.0f), x));
      return zero_where_nan(x, any_of(to_unsigned(size), above));
    }
    const Term raised = m_.at_least(m_.number(lowest_of<float>(to_)), x);
    const Term bounded = m_.at_most(m_.number(highest_of<float>(to_)), raised);
    return zero_where_nan(x, e_.op(Prim::kTruncate, bounded));
  }

  // Two numbers of 32 bits, |upper| 2^32 + |lower|, both exact.
  Lanes to_unsigned_long(Term x) {
    const Term size = e_.op(Prim::kFloor, m_.at_least(m_.number(0.0f), x));
    const Term upper = e_.op(Prim::kFloor, m_.mul(size, m_.number(0x1p-32f)));
    const Term lower = m_.fma(upper, m_.number(-0x1p32f), size);
    const Term above = m_.less_or_equal(m_.number(0x1p64f), x);
    const Term high_bits = zero_where_nan(x, any_of(to_unsigned(upper), above));
    const Term low_bits = zero_where_nan(x, any_of(to_unsigned(lower), above));
    const auto half = [&](Prim widen) {
      const Term up = e_.shift(Prim::kLongShiftLeft, e_.op(widen, high_bits), 32);
      return any_of(up, zero_extended(widen, low_bits));
    };
    const Term first = half(Prim::kWidenLow);
    return {first, half(Prim::kWidenHigh)};
  }

  // Beyond 2^24 the low 8 bits become one that says whether there were any: float32 has the rest,
  // and rounding that rounds the number itself.
  Term rounded_to_odd(Term x, pfrt_dtype from) {
    Integers numbers(e_, from);
    Term large = numbers.greater({x}, numbers.number(1 << 24));
    if (from == PFRT_DTYPE_INT32)
      large = any_of(large, numbers.greater(numbers.number(-(1 << 24)), {x}));
    const Term none = equal(all_of(x, e_.constant_bits(0xff)), 0);
    const Term sticky = all_of(mask_not(e_, none), e_.constant_bits(0x100));
    return m_.blend(large, any_of(all_of(x, e_.constant_bits(~0xffu)), sticky), x);
  }

  // Converts to float64. Beyond 2^53 the low 11 bits become one, as in rounded_to_odd. The two
  // halves of the number are put into the digits of 2^52 and of 2^84, with 2^63 for the sign;
  // subtracting these leaves the number.
  Term to_double(Term x, bool is_signed) {
    const Term flipped = is_signed ? longs(0x4530000080000000) : longs(0x4530000000000000);
    const Term offset = is_signed ? longs(0x4530000080100000) : longs(0x4530000000100000);
    const Term none = e_.op(Prim::kLongEqual, all_of(x, longs(0x7ff)), longs(0));
    const Term sticky = all_of(e_.op(Prim::kXor, none, longs(-1)), longs(0x800));
    const Term odd = any_of(all_of(x, longs(~0x7ff)), sticky);
    const Term number =
        is_signed ? m_.blend(beyond_53_bits(x), odd, x) : m_.blend(within_53_bits(x), x, odd);
    const Term lower = any_of(all_of(number, longs(kLow32)), longs(0x4330000000000000));
    const Term upper = e_.op(Prim::kXor, e_.shift(Prim::kLongShiftRight, number, 32), flipped);
    return e_.op(Prim::kDoubleAdd, e_.op(Prim::kDoubleSub, upper, offset), lower);
  }
  Term beyond_53_bits(Term x) {
    constexpr int64_t kBound = int64_t{1} << 53;
    return any_of(e_.op(Prim::kLongGreater, x, longs(kBound)),
                  e_.op(Prim::kLongGreater, longs(-kBound), x));
  }
  Term within_53_bits(Term x) {
    return e_.op(Prim::kLongEqual, e_.shift(Prim::kLongShiftRight, x, 53), longs(0));
  }

  Expression& e_;
  Maths m_;
  pfrt_dtype to_;
};

Lanes cast(Expression& e, const SnapshotNode& node, Operands in) {
  const pfrt_dtype from = node.input_dtype(0);
  Caster caster(e, node.output_dtype(0));
  if (from == PFRT_DTYPE_BOOL) return caster.from_bool(in[0].low);
  if (kFloatLanes.has(from)) return caster.from_float(in[0].low);
  return kLongLanes.has(from) ? caster.from_long(in[0], from) : caster.from_int(in[0].low, from);
}

// Reference kernels round 64 bits twice on the way to bfloat16.
bool rounds_once(const SnapshotNode& node) {
  return !kLongLanes.has(node.input_dtype(0)) || node.output_dtype(0) != PFRT_DTYPE_BFLOAT16;
}

constexpr ElementwiseRow kRows[] = {
    {"Cast", kLoopTypes, Form::kCast, 1, cast, rounds_once},
};

}  // namespace

std::span<const ElementwiseRow> cast_rows() { return kRows; }

}  // namespace pfrt::cpu
