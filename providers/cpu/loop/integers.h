// SPDX-License-Identifier: Apache-2.0
//
// Operations on integers and masks as operations of an Expression. Not thread-safe, as expressions
// while they are built.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "providers/cpu/loop/lower.h"

namespace pfrt::cpu {

// Operations on numbers of |type|, one of kIntLanes or kLongLanes. Results are again numbers of
// that type, wrapped around.
class Integers {
 public:
  Integers(Expression& expression, pfrt_dtype type)
      : e_(expression), type_(type), long_(kLongLanes.has(type)) {}

  Lanes number(int64_t value);
  Lanes add(Lanes a, Lanes b) { return wrapped(each(Prim::kIntAdd, Prim::kLongAdd, a, b)); }
  Lanes sub(Lanes a, Lanes b) { return wrapped(each(Prim::kIntSub, Prim::kLongSub, a, b)); }
  Lanes mul(Lanes a, Lanes b);
  Lanes max(Lanes a, Lanes b);
  Lanes min(Lanes a, Lanes b);
  Lanes negative(Lanes x) { return sub(number(0), x); }
  Lanes magnitude(Lanes x);
  Lanes sign(Lanes x);
  Lanes bits(Prim prim, Lanes a, Lanes b) { return wrapped(each(prim, prim, a, b)); }
  Lanes bits_not(Lanes x) { return bits(Prim::kXor, x, number(-1)); }

  // Masks as those of bool.
  Term equal(Lanes a, Lanes b) { return mask(each(Prim::kIntEqual, Prim::kLongEqual, a, b)); }
  Term greater(Lanes a, Lanes b) { return mask(greater_lanes(a, b)); }

  // The lanes of |yes| where |mask|, as that of bool, is set.
  Lanes select(Term mask, Lanes yes, Lanes no) { return pick(widened(mask), yes, no); }
  // Numbers of the type from int32 ones: longer, or cut to its bits.
  Lanes from_int(Term x) { return wrapped(widened(x)); }

 private:
  Lanes each(Prim prim, Prim long_prim, Lanes a, Lanes b);
  // A mask a lane of the type.
  Lanes greater_lanes(Lanes a, Lanes b);
  Lanes pick(Lanes mask, Lanes yes, Lanes no);
  Lanes widened(Term x);
  Lanes wrapped(Lanes x);
  Term mask(Lanes lanes) { return long_ ? e_.op(Prim::kNarrow, lanes.low, lanes.high) : lanes.low; }

  // Whether the sign bit of a lane counts as a number.
  bool fills_lanes() const { return kUnsignedInts.has(type_) && dtype_size(type_) >= 4; }

  Expression& e_;
  pfrt_dtype type_;
  bool long_;
};

Term mask_not(Expression& expression, Term mask);

}  // namespace pfrt::cpu
