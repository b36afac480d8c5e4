// SPDX-License-Identifier: Apache-2.0
//
// Casts, with the results of the plain kernels (kernels/convert.h).
#include <limits>

#include "providers/cpu/kernels/convert.h"
#include "providers/cpu/region/integers.h"
#include "providers/cpu/region/lower.h"
#include "providers/cpu/region/maths.h"

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
    return kLongLanes.has(to_) ? to_long(x) : Lanes{to_int(x)};
  }

  Lanes from_int(Term x, pfrt_dtype from) {
    if (to_ == PFRT_DTYPE_BOOL) return {mask_not(e_, equal(x, 0))};
    if (!kFloatLanes.has(to_)) return Integers(e_, to_).from_int(x);
    if (from == PFRT_DTYPE_INT32 && to_ == PFRT_DTYPE_BFLOAT16) x = rounded_to_odd(x);
    return {m_.rounded(e_.op(Prim::kToFloat, x), to_)};
  }

  Lanes from_long(Lanes x) {
    Integers longs(e_, PFRT_DTYPE_INT64);
    if (to_ == PFRT_DTYPE_BOOL) return {mask_not(e_, longs.equal(x, longs.number(0)))};
    if (kLongLanes.has(to_)) return x;
    if (!kFloatLanes.has(to_))
      return Integers(e_, to_).from_int(e_.op(Prim::kNarrow, x.low, x.high));
    const Term low = to_double(x.low);
    const Term high = x.low == x.high ? low : to_double(x.high);
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

  // Truncation gives the least number for all that is out of range.
  Term to_int(Term x) {
    if (to_ == PFRT_DTYPE_INT32) {
      const Term above = m_.less_or_equal(m_.number(0x1p31f), x);
      return zero_where_nan(x, e_.op(Prim::kXor, e_.op(Prim::kTruncate, x), above));
    }
    const Term raised = m_.at_least(m_.number(lowest_of<float>(to_)), x);
    const Term bounded = m_.at_most(m_.number(highest_of<float>(to_)), raised);
    return zero_where_nan(x, e_.op(Prim::kTruncate, bounded));
  }

  // The size as two numbers of 32 bits, |upper| 2^32 + |lower|, both exact; then the sign.
  Lanes to_long(Term x) {
    const Term bounded = m_.at_least(m_.number(-0x1p63f), x);
    const Term size = e_.op(Prim::kFloor, m_.magnitude(bounded));
    const Term upper = e_.op(Prim::kFloor, m_.mul(size, m_.number(0x1p-32f)));
    const Term lower = m_.fma(upper, m_.number(-0x1p32f), size);
    const Term large = m_.less_or_equal(m_.number(0x1p31f), lower);
    const Term less = m_.sub(lower, all_of(large, m_.number(0x1p31f)));
    const Term low_bits = e_.op(Prim::kXor, e_.op(Prim::kTruncate, less),
                                all_of(large, e_.constant_bits(0x80000000u)));
    const Term high_bits = e_.op(Prim::kTruncate, upper);
    const Term negative = m_.less(x, m_.number(0.0f));
    const Term above = m_.less_or_equal(m_.number(0x1p63f), x);
    const Term nan = m_.is_nan(x);
    const auto half = [&](Prim widen) {
      const Term up = e_.shift(Prim::kLongShiftLeft, e_.op(widen, high_bits), 32);
      const Term sized = any_of(up, all_of(e_.op(widen, low_bits), longs(kLow32)));
      const Term sign = e_.op(widen, negative);
      const Term number = e_.op(Prim::kLongSub, e_.op(Prim::kXor, sized, sign), sign);
      const Term most = longs(std::numeric_limits<int64_t>::max());
      return m_.blend(e_.op(widen, nan), longs(0), m_.blend(e_.op(widen, above), most, number));
    };
    const Term first = half(Prim::kWidenLow);
    return {first, half(Prim::kWidenHigh)};
  }

  // Beyond 2^24 the low 8 bits become one that says whether there were any: float32 has the rest,
  // and rounding that rounds the number itself.
  Term rounded_to_odd(Term x) {
    const Term bound = e_.constant_bits(1u << 24), minus = e_.constant_bits(0u - (1u << 24));
    const Term large =
        any_of(e_.op(Prim::kIntGreater, x, bound), e_.op(Prim::kIntGreater, minus, x));
    const Term none = equal(all_of(x, e_.constant_bits(0xff)), 0);
    const Term sticky = all_of(mask_not(e_, none), e_.constant_bits(0x100));
    return m_.blend(large, any_of(all_of(x, e_.constant_bits(~0xffu)), sticky), x);
  }

  // float64, beyond 2^53 likewise with the low 11 bits. The two halves of the number are put into
  // the digits of 2^52 and of 2^84 + 2^63, of which they are left by subtraction.
  Term to_double(Term x) {
    const Term large = any_of(e_.op(Prim::kLongGreater, x, longs(int64_t{1} << 53)),
                              e_.op(Prim::kLongGreater, longs(-(int64_t{1} << 53)), x));
    const Term none = e_.op(Prim::kLongEqual, all_of(x, longs(0x7ff)), longs(0));
    const Term sticky = all_of(e_.op(Prim::kXor, none, longs(-1)), longs(0x800));
    const Term odd = m_.blend(large, any_of(all_of(x, longs(~0x7ff)), sticky), x);
    const Term lower = any_of(all_of(odd, longs(kLow32)), longs(0x4330000000000000));
    const Term upper =
        e_.op(Prim::kXor, e_.shift(Prim::kLongShiftRight, odd, 32), longs(0x4530000080000000));
    const Term left = e_.op(Prim::kDoubleSub, upper, longs(0x4530000080100000));
    return e_.op(Prim::kDoubleAdd, left, lower);
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
  return kLongLanes.has(from) ? caster.from_long(in[0]) : caster.from_int(in[0].low, from);
}

// Plain kernels round int64 twice on the way to bfloat16.
bool rounds_once(const SnapshotNode& node) {
  return node.input_dtype(0) != PFRT_DTYPE_INT64 || node.output_dtype(0) != PFRT_DTYPE_BFLOAT16;
}

constexpr ElementwiseRow kRows[] = {
    {"Cast", kLoopTypes, Form::kCast, 1, cast, rounds_once},
};

}  // namespace

std::span<const ElementwiseRow> cast_rows() { return kRows; }

}  // namespace pfrt::cpu
