// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/region/lower.h"

#include <algorithm>

namespace pfrt::cpu {
namespace {

using Terms = std::span<const Term>;

// Names for what expressions are made of.
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
  Term blend(Term mask, Term yes, Term no) { return e_.op(Prim::kBlend, mask, yes, no); }
  // x raised to |bound| or lowered to it; NaN stays.
  Term at_least(Term bound, Term x) { return e_.op(Prim::kMax, bound, x); }
  Term at_most(Term bound, Term x) { return e_.op(Prim::kMin, bound, x); }
  // NaN when either is.
  Term max(Term a, Term b) { return first_nan(a, e_.op(Prim::kMax, a, b)); }
  Term min(Term a, Term b) { return first_nan(a, e_.op(Prim::kMin, a, b)); }
  Term negative(Term x) { return e_.op(Prim::kXor, x, e_.constant_bits(kSign)); }
  Term magnitude(Term x) { return e_.op(Prim::kAnd, x, e_.constant_bits(~kSign)); }
  Term with_sign_of(Term magnitude, Term x) {
    return e_.op(Prim::kOr, magnitude, e_.op(Prim::kAnd, x, e_.constant_bits(kSign)));
  }
  // ((c[n] x + ...) x + c[1]) x + c[0]
  Term polynomial(Term x, std::initializer_list<float> coefficients) {
    const float* c = coefficients.end();
    Term sum = number(*--c);
    while (c != coefficients.begin()) sum = fma(sum, x, number(*--c));
    return sum;
  }

  struct Reduced {
    Term n, r;
  };
  Reduced reduced(Term x);
  Term exp(Term x);
  Term sigmoid(Term x);
  Term tanh(Term x);
  Term erf(Term x);
  Term erfc_above_0(Term x);
  Term expm1_below_0(Term x);
  Term softplus(Term x);

 private:
  static constexpr uint32_t kSign = 0x80000000u;
  // p of exp.
  static constexpr float kExp[] = {0.5f, 0x1.5554dcp-3f, 0x1.555518p-5f, 0x1.120be2p-7f,
                                   0x1.6d117cp-10f};
  Term first_nan(Term a, Term other) { return blend(e_.op(Prim::kUnordered, a, a), a, other); }
  Expression& e_;
};

// x = n ln 2 + r with n = round(x / ln 2) and |r| <= ln 2 / 2.
Maths::Reduced Maths::reduced(Term x) {
  const Term n = e_.op(Prim::kRound, mul(x, number(1.44269504f)));
  const Term r = fma(n, number(-0x1.62e4p-1f), x);
  return {n, fma(n, number(-0x1.7f7d1cp-20f), r)};
}

// e^x = 2^n e^r; e^r = 1 + r + r^2 p(r), p fitted at Chebyshev nodes to 1e-8. 2^n is multiplied in
// two halves, so that results below the smallest normal number round once.
Term Maths::exp(Term x) {
  const auto [n, r] = reduced(at_most(number(89.0f), at_least(number(-104.0f), x)));
  const Term p = polynomial(r, {kExp[0], kExp[1], kExp[2], kExp[3], kExp[4]});
  const Term sum = add(r, number(1.0f));
  const Term lost = sub(r, sub(sum, number(1.0f)));  // of r, exactly
  const Term mantissa = add(sum, fma(mul(r, r), p, lost));
  const Term half = e_.op(Prim::kFloor, mul(n, number(0.5f)));
  const Term first = e_.op(Prim::kExponent, add(half, number(127.0f)));
  const Term second = e_.op(Prim::kExponent, add(sub(n, half), number(127.0f)));
  return mul(mul(mantissa, first), second);
}

// s / (s + s e^-x) with s = 2^-64: no side overflows, and the quotient is all that rounds below the
// smallest normal number. From 40 on the result is 1. e^r is summed in a few short chains and
// rounded once more than that of exp.
Term Maths::sigmoid(Term x) {
  constexpr float kScale = 0x1p-64f;
  const Term y = at_most(number(104.0f), at_least(number(-40.0f), negative(x)));
  const auto [n, r] = reduced(y);
  const Term square = mul(r, r);
  const Term low = fma(r, number(kExp[1]), number(kExp[0]));
  const Term high = fma(square, number(kExp[4]), fma(r, number(kExp[3]), number(kExp[2])));
  const Term mantissa = add(fma(square, fma(square, high, low), r), number(1.0f));
  const Term two = e_.op(Prim::kExponent, add(n, number(127.0f - 64)));
  return div(number(kScale), fma(mantissa, two, number(kScale)));
}

// x + x^3 q(x^2) for |x| < 0.8, q fitted at Chebyshev nodes to 2e-8; 1 - 2 / (e^2|x| + 1) with x's
// sign elsewhere.
Term Maths::tanh(Term x) {
  const Term one = number(1.0f);
  const Term size = magnitude(x);
  const Term large = sub(one, div(number(2.0f), add(exp(add(size, size)), one)));
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

// x + x q(x^2) for |x| < 0.85, q fitted at Chebyshev nodes to 6e-9; 1 - erfc|x| with x's sign
// elsewhere.
Term Maths::erf(Term x) {
  const Term size = magnitude(x);
  const Term large = sub(number(1.0f), erfc_above_0(size));
  const Term q = polynomial(mul(x, x), {0.128379166f, -0.376125723f, 0.112827174f, -0.0268025473f,
                                        0.00505109457f, -0.000631512899f});
  return blend(less(size, number(0.85f)), fma(x, q, x), with_sign_of(large, x));
}

// x + x^2 p(x) for x in (-0.5, 0), p fitted to 1e-8; e^x - 1 below. For x < 0 alone.
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

template <Term (Maths::*fn)(Term)>
Term unary(Expression& e, const SnapshotNode&, Terms in) {
  return (Maths(e).*fn)(in[0]);
}

template <Prim prim>
Term unary_prim(Expression& e, const SnapshotNode&, Terms in) {
  return e.op(prim, in[0]);
}

// From left to right.
template <Term (Maths::*fn)(Term, Term)>
Term fold(Expression& e, const SnapshotNode&, Terms in) {
  Term all = in[0];
  for (Term t : in.subspan(1)) all = (Maths(e).*fn)(all, t);
  return all;
}

Term mean(Expression& e, const SnapshotNode& node, Terms in) {
  const Term sum = fold<&Maths::add>(e, node, in);
  return e.op(Prim::kDiv, sum, e.constant(static_cast<float>(in.size())));
}

Term identity(Expression&, const SnapshotNode&, Terms in) { return in[0]; }

Term reciprocal(Expression& e, const SnapshotNode&, Terms in) {
  return e.op(Prim::kDiv, e.constant(1.0f), in[0]);
}

Term square(Expression& e, const SnapshotNode&, Terms in) { return e.op(Prim::kMul, in[0], in[0]); }

Term relu(Expression& e, const SnapshotNode&, Terms in) {
  return Maths(e).at_least(e.constant(0.0f), in[0]);
}

Term leaky_relu(Expression& e, const SnapshotNode& node, Terms in) {
  Maths m(e);
  const Term scaled = m.mul(m.number(node.attr_float("alpha", 0.01f)), in[0]);
  return m.blend(m.less(in[0], m.number(0.0f)), scaled, in[0]);
}

Term p_relu(Expression& e, const SnapshotNode&, Terms in) {
  Maths m(e);
  return m.blend(m.less(in[0], m.number(0.0f)), m.mul(in[1], in[0]), in[0]);
}

Term thresholded_relu(Expression& e, const SnapshotNode& node, Terms in) {
  Maths m(e);
  const Term alpha = m.number(node.attr_float("alpha", 1.0f));
  // NaN is not above alpha, and not at most alpha either: it stays.
  const Term kept = m.blend(m.less(alpha, in[0]), in[0], m.number(0.0f));
  return m.blend(e.op(Prim::kUnordered, in[0], in[0]), in[0], kept);
}

Term clip(Expression& e, const SnapshotNode&, Terms in) {
  Maths m(e);
  Term x = in[0];
  if (in.size() > 1 && in[1] != kNoTerm) x = m.at_least(in[1], x);
  if (in.size() > 2 && in[2] != kNoTerm) x = m.at_most(in[2], x);
  return x;
}

Term line_in_unit(Maths m, Term x, float alpha, float beta) {
  const Term line = m.add(m.mul(m.number(alpha), x), m.number(beta));
  return m.at_most(m.number(1.0f), m.at_least(m.number(0.0f), line));
}

Term hard_sigmoid(Expression& e, const SnapshotNode& node, Terms in) {
  return line_in_unit(Maths(e), in[0], node.attr_float("alpha", 0.2f),
                      node.attr_float("beta", 0.5f));
}

Term hard_swish(Expression& e, const SnapshotNode&, Terms in) {
  return e.op(Prim::kMul, in[0], line_in_unit(Maths(e), in[0], 1.0f / 6, 0.5f));
}

Term softsign(Expression& e, const SnapshotNode&, Terms in) {
  Maths m(e);
  return m.div(in[0], m.add(m.magnitude(in[0]), m.number(1.0f)));
}

Term sign(Expression& e, const SnapshotNode&, Terms in) {
  Maths m(e);
  const Term zero = m.number(0.0f);
  const Term positive = m.blend(m.less(zero, in[0]), m.number(1.0f), in[0]);
  return m.blend(m.less(in[0], zero), m.number(-1.0f), positive);
}

Term swish(Expression& e, const SnapshotNode& node, Terms in) {
  Maths m(e);
  const float alpha = node.attr_float("alpha", 1.0f);
  return m.mul(in[0], m.sigmoid(alpha == 1.0f ? in[0] : m.mul(m.number(alpha), in[0])));
}

// Half of x times erfc(-x / sqrt 2), which keeps the digits of the negative side.
Term gelu(Expression& e, const SnapshotNode& node, Terms in) {
  Maths m(e);
  const Term x = in[0];
  if (node.attr_string("approximate", "none") == "tanh") {
    const Term cube = m.mul(m.mul(m.mul(m.number(0.044715f), x), x), x);
    return m.mul(x, m.sigmoid(m.mul(m.number(2 * 0.797884561f), m.add(x, cube))));
  }
  const Term z = m.mul(x, m.number(-0.707106781f));
  const Term above = m.erfc_above_0(m.magnitude(z));
  const Term erfc = m.blend(m.less(z, m.number(0.0f)), m.sub(m.number(2.0f), above), above);
  return m.mul(m.mul(m.number(0.5f), x), erfc);
}

bool gelu_form_is_known(const SnapshotNode& node) {
  const std::string_view form = node.attr_string("approximate", "none");
  return form == "none" || form == "tanh";
}

Term elu(Expression& e, const SnapshotNode& node, Terms in) {
  Maths m(e);
  const Term below = m.mul(m.number(node.attr_float("alpha", 1.0f)), m.expm1_below_0(in[0]));
  return m.blend(m.less(in[0], m.number(0.0f)), below, in[0]);
}

Term selu(Expression& e, const SnapshotNode& node, Terms in) {
  Maths m(e);
  const Term alpha = m.number(node.attr_float("alpha", 1.67326319217681884765625f));
  const Term below = m.mul(alpha, m.expm1_below_0(in[0]));
  const Term line = m.blend(m.less(in[0], m.number(0.0f)), below, in[0]);
  return m.mul(m.number(node.attr_float("gamma", 1.05070102214813232421875f)), line);
}

Term celu(Expression& e, const SnapshotNode& node, Terms in) {
  Maths m(e);
  const Term alpha = m.number(node.attr_float("alpha", 1.0f));
  const Term below = m.mul(alpha, m.expm1_below_0(m.div(in[0], alpha)));
  return m.blend(m.less(in[0], m.number(0.0f)), below, in[0]);
}

bool alpha_is_positive(const SnapshotNode& node) { return node.attr_float("alpha", 1.0f) > 0; }

// tanh(log(1 + n)) = w / (w + 2) with n = e^x and w = n (n + 2); 1 from x = 20 on.
Term mish(Expression& e, const SnapshotNode&, Terms in) {
  Maths m(e);
  const Term two = m.number(2.0f);
  const Term n = m.exp(m.at_most(m.number(20.0f), in[0]));
  const Term w = m.mul(n, m.add(n, two));
  return m.mul(in[0], m.div(w, m.add(w, two)));
}

bool exponent_is_two(const SnapshotNode& node) {
  const auto* exponent = static_cast<const float*>(node.input_constant(1));
  return exponent != nullptr && node.input_elements(1) == 1 && *exponent == 2.0f;
}

constexpr ElementwiseRow kRows[] = {
    {"Add", 2, fold<&Maths::add>, nullptr},
    {"Sub", 2, fold<&Maths::sub>, nullptr},
    {"Mul", 2, fold<&Maths::mul>, nullptr},
    {"Div", 2, fold<&Maths::div>, nullptr},
    {"Sum", 1, fold<&Maths::add>, nullptr},
    {"Mean", 1, mean, nullptr},
    {"Max", 1, fold<&Maths::max>, nullptr},
    {"Min", 1, fold<&Maths::min>, nullptr},
    {"Pow", 2, square, exponent_is_two},
    {"Identity", 1, identity, nullptr},
    {"Neg", 1, unary<&Maths::negative>, nullptr},
    {"Abs", 1, unary<&Maths::magnitude>, nullptr},
    {"Sign", 1, sign, nullptr},
    {"Sqrt", 1, unary_prim<Prim::kSqrt>, nullptr},
    {"Floor", 1, unary_prim<Prim::kFloor>, nullptr},
    {"Ceil", 1, unary_prim<Prim::kCeil>, nullptr},
    {"Round", 1, unary_prim<Prim::kRound>, nullptr},
    {"Reciprocal", 1, reciprocal, nullptr},
    {"Relu", 1, relu, nullptr},
    {"LeakyRelu", 1, leaky_relu, nullptr},
    {"PRelu", 2, p_relu, nullptr},
    {"ThresholdedRelu", 1, thresholded_relu, nullptr},
    {"Clip", 1, clip, nullptr},
    {"HardSigmoid", 1, hard_sigmoid, nullptr},
    {"HardSwish", 1, hard_swish, nullptr},
    {"Softsign", 1, softsign, nullptr},
    {"Exp", 1, unary<&Maths::exp>, nullptr},
    {"Sigmoid", 1, unary<&Maths::sigmoid>, nullptr},
    {"Tanh", 1, unary<&Maths::tanh>, nullptr},
    {"Swish", 1, swish, nullptr},
    {"Erf", 1, unary<&Maths::erf>, nullptr},
    {"Gelu", 1, gelu, gelu_form_is_known},
    {"Elu", 1, elu, nullptr},
    {"Selu", 1, selu, nullptr},
    {"Celu", 1, celu, alpha_is_positive},
    {"Softplus", 1, unary<&Maths::softplus>, nullptr},
    {"Mish", 1, mish, nullptr},
};

}  // namespace

std::span<const ElementwiseRow> elementwise_rows() { return kRows; }

const ElementwiseRow* find_elementwise(const SnapshotNode& node) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const ElementwiseRow& r) { return r.op == node.op(); });
  if (row == std::end(kRows) || !node.domain().empty()) return nullptr;
  if (node.input_count() < row->min_inputs || node.output_count() != 1) return nullptr;
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    const bool may_be_absent = i > 0 && row->op == "Clip";
    if (!node.has_input(i) ? !may_be_absent : node.input_dtype(i) != PFRT_DTYPE_FLOAT32)
      return nullptr;
  }
  if (node.output_dtype(0) != PFRT_DTYPE_FLOAT32) return nullptr;
  return row->fits == nullptr || row->fits(node) ? row : nullptr;
}

}  // namespace pfrt::cpu
