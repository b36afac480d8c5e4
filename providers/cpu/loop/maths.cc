// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/loop/maths.h"

#include <array>
#include <bit>

namespace pfrt::cpu {
namespace {

// 2^(i / 8), and what rounding it dropped, relative to it.
constexpr std::array<uint32_t, 8> kPowers = {0x3f800000, 0x3f8b95c2, 0x3f9837f0, 0x3fa5fed7,
                                             0x3fb504f3, 0x3fc5672a, 0x3fd744fd, 0x3feac0c7};
constexpr auto kDropped = std::bit_cast<std::array<uint32_t, 8>>(
    std::array{0.0f, -0x1.9c0c22p-27f, 0x1.125002p-25f, -0x1.0a3552p-25f, 0x1.26055cp-26f,
               0x1.67a1cap-28f, -0x1.f9c306p-27f, -0x1.a5217cp-28f});

}  // namespace

Term Maths::polynomial(Term x, std::initializer_list<float> coefficients) {
  const float* c = coefficients.end();
  Term sum = number(*--c);
  while (c != coefficients.begin()) sum = fma(sum, x, number(*--c));
  return sum;
}

// Adding |shift| leaves n, rounded to an eighth, in the low bits.
Maths::Reduced Maths::reduced(Term x) {
  const Term shift = number(0x1.8p20f);
  const Term bits = fma(x, number(1.44269504f), shift);
  const Term n = sub(bits, shift);
  const Term r = fma(n, number(-0x1.62e4p-1f), x);
  return {bits, n, fma(n, number(-0x1.7f7d1cp-20f), r)};
}

// r + r^2 p(r), p fitted to 2e-10.
Term Maths::expm1_near_0(Term r, Term bits) {
  const Term p = polynomial(r, {0.5f, 0x1.555c78p-3f, 0x1.55483ep-5f});
  return add(fma(mul(r, r), p, r), e_.op(Prim::kLookUp, bits, e_.table(kDropped)));
}

// The shifted bits of n are its whole part in place of an exponent, and eighths, which the table
// takes off again.
Maths::Power Maths::power(Term x, int exponent) {
  const auto [bits, n, r] = reduced(x);
  std::array<uint32_t, 8> powers = kPowers;
  for (uint32_t i = 0; i < powers.size(); ++i)
    powers[i] += (static_cast<uint32_t>(exponent) << 23) - (i << 20);
  const Term whole = e_.shift(Prim::kShiftLeft, bits, 20);
  return {e_.op(Prim::kIntAdd, e_.op(Prim::kLookUp, bits, e_.table(powers)), whole),
          expm1_near_0(r, bits)};
}

// e^x = 2^n e^r
Term Maths::exp(Term x) {
  const auto [bits, n, r] = reduced(at_most(number(89.0f), at_least(number(-104.0f), x)));
  const Term power = e_.op(Prim::kLookUp, bits, e_.table(kPowers));
  return e_.op(Prim::kScale, fma(power, expm1_near_0(r, bits), power), n);
}

// s / (s + s e^-x) with s = 2^-64: no side overflows, and the quotient is all that rounds below the
// smallest normal number. From 40 on the result is 1.
Term Maths::sigmoid(Term x) {
  const Term s = number(0x1p-64f);
  const Term y = at_most(number(104.0f), at_least(number(-40.0f), negative(x)));
  const auto [most, rest] = power(y, -64);
  return div(s, fma(most, add(rest, number(1.0f)), s));
}

// tanh is x + x^3 q(x^2) for |x| < 0.8, q fitted at Chebyshev nodes to 2e-8; elsewhere it is 1 - 2
// / (e^2|x| + 1) with x's sign.
Term Maths::tanh(Term x) {
  const Term one = number(1.0f);
  const Term size = magnitude(x);
  const auto [most, rest] = power(at_most(number(30.0f), add(size, size)), 0);
  const Term large = sub(one, div(number(2.0f), fma(most, add(rest, one), one)));
  const Term square = mul(x, x);
  const Term q =
      polynomial(square, {-0.3333333093598059f, 0.13333062659482736f, -0.05391799249584477f,
                          0.02152135517349759f, -0.007734463236752824f, 0.0017628772540362035f});
  const Term small = fma(mul(x, square), q, x);
  return blend(less(size, number(0.8f)), small, with_sign_of(large, x));
}

// e^-x^2 g(x) / (1 + 2x) for x >= 0, g fitted in (x - 2) / (x + 2) to 1e-8. What rounding x^2
// dropped, |lost|, multiplies to first order. From 10.1 on the result is 0.
Term Maths::erfc_above_0(Term x) {
  const Term size = at_most(number(10.1f), x);
  const Term square = mul(size, size);
  const Term lost = fma(size, size, negative(square));
  const Term t = div(sub(size, number(2.0f)), add(size, number(2.0f)));
  const Term g = polynomial(
      t, {1.27697837f, -0.0927639827f, -0.166031465f, 0.164055422f, -0.0542038828f, -0.0080601424f,
          0.00863009412f, 0.00131330732f, -0.00122799922f, -0.000399446959f});
  const Term scaled = div(g, fma(number(2.0f), size, number(1.0f)));
  return mul(exp(negative(square)), fma(scaled, negative(lost), scaled));
}

// erf is x + x q(x^2) for |x| < 0.85, q fitted at Chebyshev nodes to 6e-9; elsewhere it is 1 -
// erfc|x| with x's sign.
Term Maths::erf(Term x) {
  const Term size = magnitude(x);
  const Term large = sub(number(1.0f), erfc_above_0(size));
  const Term q = polynomial(mul(x, x), {0.128379166f, -0.376125723f, 0.112827174f, -0.0268025473f,
                                        0.00505109457f, -0.000631512899f});
  return blend(less(size, number(0.85f)), fma(x, q, x), with_sign_of(large, x));
}

// x Phi(x) = max(x, 0) - |x| Phi(-|x|), which keeps the digits of the negative side. For a >= 0
// Phi(-a) is e^(-a^2 / 2) t h(t) with t = 1 / (1 + 0.3 a), h fitted to 4e-9 up to 14.5, from where
// on nothing is left of the product. e^y is kept in the normal range by 2^64, which the last step
// takes off.
Term Maths::gelu(Term x) {
  const Term size = magnitude(x), half = number(0.5f), one = number(1.0f);
  const Term above = fma(size, half, mul(half, x));  // not max(x, 0): NaN for -infinity
  const Term a = at_most(number(14.5f), size);
  const Term t = div(one, fma(a, number(0.3f), one));
  const Term h =
      polynomial(t, {-0.119686693f, -0.119571812f, -0.110235423f, -0.0783896521f, -0.0961568356f,
                     0.0794234946f, -0.191784531f, 0.228213608f, -0.112435617f, 0.0206234697f});
  const Term share = mul(mul(h, t), a);
  const Term y = mul(mul(a, number(-0.5f)), a);
  const auto [most, rest] = power(y, 64);
  return fma(mul(fma(share, rest, share), most), number(0x1p-64f), above);
}

// e^x - 1 is x + x^2 p(x) for x in (-0.5, 0), p fitted to 1e-8; below it is computed as it stands.
// For x < 0 alone.
Term Maths::expm1_below_0(Term x) {
  const Term p = polynomial(
      x, {0.5f, 0.166666567f, 0.0416653305f, 0.00832528155f, 0.0013641374f, 0.000160247364f});
  return blend(less(number(-0.5f), x), fma(mul(x, x), p, x), sub(exp(x), number(1.0f)));
}

// log(1 + e) + max(x, 0) with e = e^-|x| <= 1; log(1 + e) = e + e p(e), p fitted to 3e-8.
Term Maths::softplus(Term x) {
  const Term e = exp(negative(magnitude(x)));
  const Term p =
      polynomial(e, {-3.01206455e-08f, -0.499994934f, 0.333190978f, -0.24842982f, 0.191060051f,
                     -0.136632428f, 0.0782259107f, -0.0295052137f, 0.00523268804f});
  return add(fma(e, p, e), at_least(number(0.0f), x));
}

// The half of what is cut off is added first, less one unit where the last digit is even; a NaN,
// which that might carry to infinity, is made quiet instead.
Term Maths::rounded(Term x, pfrt_dtype type) {
  if (type == PFRT_DTYPE_FLOAT16) return e_.op(Prim::kRoundFp16, x);
  if (type != PFRT_DTYPE_BFLOAT16) return x;
  const Term last = e_.op(Prim::kAnd, e_.shift(Prim::kShiftRight, x, 16), e_.constant_bits(1));
  const Term raised = e_.op(Prim::kIntAdd, e_.op(Prim::kIntAdd, x, e_.constant_bits(0x7fff)), last);
  const Term quiet = e_.op(Prim::kOr, x, e_.constant_bits(0x400000));
  return e_.op(Prim::kAnd, blend(is_nan(x), quiet, raised), e_.constant_bits(0xffff0000));
}

}  // namespace pfrt::cpu
