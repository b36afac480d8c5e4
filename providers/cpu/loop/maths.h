// SPDX-License-Identifier: Apache-2.0
//
// Functions of float32 terms as operations of an Expression. Not thread-safe, as expressions while
// they are built.
#pragma once

#include <initializer_list>

#include "providers/cpu/loop/expression.h"

namespace pfrt::cpu {

class Maths {
 public:
  explicit Maths(Expression& expression) : e_(expression) {}
  Term number(float value) { return e_.constant(value); }
  Term add(Term a, Term b) { return e_.op(Prim::kAdd, a, b); }
  Term sub(Term a, Term b) { return e_.op(Prim::kSub, a, b); }
  Term mul(Term a, Term b) { return e_.op(Prim::kMul, a, b); }
  Term div(Term a, Term b) { return e_.op(Prim::kDiv, a, b); }
  Term fma(Term a, Term b, Term c) { return e_.op(Prim::kFma, a, b, c); }
  Term less(Term a, Term b) { return e_.op(Prim::kLess, a, b); }
  Term less_or_equal(Term a, Term b) { return e_.op(Prim::kLessEqual, a, b); }
  Term equal(Term a, Term b) { return e_.op(Prim::kEqual, a, b); }
  Term is_nan(Term x) { return e_.op(Prim::kUnordered, x, x); }
  Term blend(Term mask, Term yes, Term no) { return e_.op(Prim::kBlend, mask, yes, no); }
  // x raised to |bound| or lowered to it; NaN stays.
  Term at_least(Term bound, Term x) { return e_.op(Prim::kMax, bound, x); }
  Term at_most(Term bound, Term x) { return e_.op(Prim::kMin, bound, x); }
  // |b| when either is NaN, as the instruction has it.
  Term max_or_second(Term a, Term b) { return e_.op(Prim::kMax, a, b); }
  // NaN when either is.
  Term max(Term a, Term b) { return first_nan(a, e_.op(Prim::kMax, a, b)); }
  Term min(Term a, Term b) { return first_nan(a, e_.op(Prim::kMin, a, b)); }
  Term negative(Term x) { return e_.op(Prim::kXor, x, e_.constant_bits(kSign)); }
  Term magnitude(Term x) { return e_.op(Prim::kAnd, x, e_.constant_bits(~kSign)); }
  Term with_sign_of(Term magnitude, Term x) {
    return e_.op(Prim::kOr, magnitude, e_.op(Prim::kAnd, x, e_.constant_bits(kSign)));
  }
  // ((c[n] x + ...) x + c[1]) x + c[0]
  Term polynomial(Term x, std::initializer_list<float> coefficients);

  Term exp(Term x);
  Term sigmoid(Term x);
  Term tanh(Term x);
  Term erf(Term x);
  Term erfc_above_0(Term x);
  Term gelu(Term x);
  Term expm1_below_0(Term x);
  Term softplus(Term x);

  // A float32 result as an element of |type|: rounded to nearest even.
  Term rounded(Term x, pfrt_dtype type);

 private:
  static constexpr uint32_t kSign = 0x80000000u;
  // x = n ln 2 + r with |r| <= ln 2 / 16 and n a multiple of 1/8. The low bits of |bits| are those
  // of the integer 8 n.
  struct Reduced {
    Term bits, n, r;
  };
  Reduced reduced(Term x);
  // e^x 2^|exponent| = most (1 + rest) with |rest| < 0.05, where |most| is a normal number.
  struct Power {
    Term most, rest;
  };
  Power power(Term x, int exponent);
  // e^r - 1, and what |bits| of n say was lost by rounding 2^n, relative to it.
  Term expm1_near_0(Term r, Term bits);
  Term first_nan(Term a, Term other) { return blend(is_nan(a), a, other); }
  Expression& e_;
};

}  // namespace pfrt::cpu
