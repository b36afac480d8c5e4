// SPDX-License-Identifier: Apache-2.0
//
// Operators of floats. Shorter ones are computed in float32 and rounded at each operator, as plain
// kernels do.
#include <limits>
#include <vector>

#include "providers/cpu/loop/lower.h"
#include "providers/cpu/loop/maths.h"

namespace pfrt::cpu {
namespace {

using Terms = std::span<const Term>;
using FloatFunction = Term (*)(Expression& expression, const SnapshotNode& node, Terms inputs);

std::vector<Term> terms(Operands in) {
  std::vector<Term> out;
  out.reserve(in.size());
  for (const Lanes& lanes : in) out.push_back(lanes.low);
  return out;
}

// Results are elements of the type whenever the operands are.
template <FloatFunction fn>
Lanes exact(Expression& e, const SnapshotNode& node, Operands in) {
  return {fn(e, node, terms(in))};
}

template <FloatFunction fn>
Lanes rounding(Expression& e, const SnapshotNode& node, Operands in) {
  return {Maths(e).rounded(fn(e, node, terms(in)), node.output_dtype(0))};
}

template <Term (Maths::*fn)(Term)>
Term unary(Expression& e, const SnapshotNode&, Terms in) {
  return (Maths(e).*fn)(in[0]);
}

template <Prim prim>
Term unary_prim(Expression& e, const SnapshotNode&, Terms in) {
  return e.op(prim, in[0]);
}

// Applies |fn| from left to right.
template <Term (Maths::*fn)(Term, Term)>
Term chained(Expression& e, const SnapshotNode&, Terms in) {
  Term all = in[0];
  for (Term t : in.subspan(1)) all = (Maths(e).*fn)(all, t);
  return all;
}

Term mean(Expression& e, const SnapshotNode& node, Terms in) {
  const Term sum = chained<&Maths::add>(e, node, in);
  return e.op(Prim::kDiv, sum, e.constant(static_cast<float>(in.size())));
}

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
  return m.blend(m.less(alpha, in[0]), in[0], m.number(0.0f));
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

Term gelu(Expression& e, const SnapshotNode& node, Terms in) {
  Maths m(e);
  const Term x = in[0];
  if (node.attr_string("approximate", "none") == "tanh") {
    const Term cube = m.mul(m.mul(m.mul(m.number(0.044715f), x), x), x);
    return m.mul(x, m.sigmoid(m.mul(m.number(2 * 0.797884561f), m.add(x, cube))));
  }
  return m.gelu(x);
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

Term is_nan(Expression& e, const SnapshotNode&, Terms in) { return Maths(e).is_nan(in[0]); }

Term is_infinite(Expression& e, const SnapshotNode& node, Terms in) {
  Maths m(e);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool negative = node.attr_int("detect_negative", 1) != 0;
  const bool positive = node.attr_int("detect_positive", 1) != 0;
  if (!negative && !positive) return e.constant_bits(0);
  const Term x = negative && positive ? m.magnitude(in[0]) : in[0];
  return m.equal(x, m.number(positive ? kInfinity : -kInfinity));
}

Term equal(Expression& e, const SnapshotNode&, Terms in) { return Maths(e).equal(in[0], in[1]); }
Term less(Expression& e, const SnapshotNode&, Terms in) { return Maths(e).less(in[0], in[1]); }
Term greater(Expression& e, const SnapshotNode&, Terms in) { return Maths(e).less(in[1], in[0]); }
Term less_or_equal(Expression& e, const SnapshotNode&, Terms in) {
  return Maths(e).less_or_equal(in[0], in[1]);
}
Term greater_or_equal(Expression& e, const SnapshotNode&, Terms in) {
  return Maths(e).less_or_equal(in[1], in[0]);
}

constexpr ElementwiseRow kRows[] = {
    {"Add", kFloatLanes, Form::kAlike, 2, rounding<chained<&Maths::add>>, nullptr},
    {"Sub", kFloatLanes, Form::kAlike, 2, rounding<chained<&Maths::sub>>, nullptr},
    {"Mul", kFloatLanes, Form::kAlike, 2, rounding<chained<&Maths::mul>>, nullptr},
    {"Div", kFloatLanes, Form::kAlike, 2, rounding<chained<&Maths::div>>, nullptr},
    {"Sum", kFloatLanes, Form::kAlike, 1, rounding<chained<&Maths::add>>, nullptr},
    {"Mean", kFloatLanes, Form::kAlike, 1, rounding<mean>, nullptr},
    {"Max", kFloatLanes, Form::kAlike, 1, exact<chained<&Maths::max>>, nullptr},
    {"Min", kFloatLanes, Form::kAlike, 1, exact<chained<&Maths::min>>, nullptr},
    {"Pow", kFloatLanes, Form::kPower, 2, rounding<square>, exponent_is_two},
    {"Neg", kFloatLanes, Form::kAlike, 1, exact<unary<&Maths::negative>>, nullptr},
    {"Abs", kFloatLanes, Form::kAlike, 1, exact<unary<&Maths::magnitude>>, nullptr},
    {"Sign", kFloatLanes, Form::kAlike, 1, exact<sign>, nullptr},
    {"Sqrt", kFloatLanes, Form::kAlike, 1, rounding<unary_prim<Prim::kSqrt>>, nullptr},
    {"Floor", kFloatLanes, Form::kAlike, 1, exact<unary_prim<Prim::kFloor>>, nullptr},
    {"Ceil", kFloatLanes, Form::kAlike, 1, exact<unary_prim<Prim::kCeil>>, nullptr},
    {"Round", kFloatLanes, Form::kAlike, 1, exact<unary_prim<Prim::kRound>>, nullptr},
    {"Reciprocal", kFloatLanes, Form::kAlike, 1, rounding<reciprocal>, nullptr},
    {"Relu", kFloatLanes, Form::kAlike, 1, exact<relu>, nullptr},
    {"LeakyRelu", kFloatLanes, Form::kAlike, 1, rounding<leaky_relu>, nullptr},
    {"PRelu", kFloatLanes, Form::kAlike, 2, rounding<p_relu>, nullptr},
    {"ThresholdedRelu", kFloatLanes, Form::kAlike, 1, exact<thresholded_relu>, nullptr},
    {"Clip", kFloatLanes, Form::kAlike, 1, exact<clip>, nullptr},
    {"HardSigmoid", kFloatLanes, Form::kAlike, 1, rounding<hard_sigmoid>, nullptr},
    {"HardSwish", kFloatLanes, Form::kAlike, 1, rounding<hard_swish>, nullptr},
    {"Softsign", kFloatLanes, Form::kAlike, 1, rounding<softsign>, nullptr},
    {"Exp", kFloatLanes, Form::kAlike, 1, rounding<unary<&Maths::exp>>, nullptr},
    {"Sigmoid", kFloatLanes, Form::kAlike, 1, rounding<unary<&Maths::sigmoid>>, nullptr},
    {"Tanh", kFloatLanes, Form::kAlike, 1, rounding<unary<&Maths::tanh>>, nullptr},
    {"Swish", kFloatLanes, Form::kAlike, 1, rounding<swish>, nullptr},
    {"Erf", kFloatLanes, Form::kAlike, 1, rounding<unary<&Maths::erf>>, nullptr},
    {"Gelu", kFloatLanes, Form::kAlike, 1, rounding<gelu>, gelu_form_is_known},
    {"Elu", kFloatLanes, Form::kAlike, 1, rounding<elu>, nullptr},
    {"Selu", kFloatLanes, Form::kAlike, 1, rounding<selu>, nullptr},
    {"Celu", kFloatLanes, Form::kAlike, 1, rounding<celu>, alpha_is_positive},
    {"Softplus", kFloatLanes, Form::kAlike, 1, rounding<unary<&Maths::softplus>>, nullptr},
    {"Mish", kFloatLanes, Form::kAlike, 1, rounding<mish>, nullptr},
    {"IsNaN", kFloatLanes, Form::kTest, 1, exact<is_nan>, nullptr},
    {"IsInf", kFloatLanes, Form::kTest, 1, exact<is_infinite>, nullptr},
    {"Equal", kFloatLanes, Form::kTest, 2, exact<equal>, nullptr},
    {"Less", kFloatLanes, Form::kTest, 2, exact<less>, nullptr},
    {"Greater", kFloatLanes, Form::kTest, 2, exact<greater>, nullptr},
    {"LessOrEqual", kFloatLanes, Form::kTest, 2, exact<less_or_equal>, nullptr},
    {"GreaterOrEqual", kFloatLanes, Form::kTest, 2, exact<greater_or_equal>, nullptr},
};

}  // namespace

std::span<const ElementwiseRow> float_rows() { return kRows; }

}  // namespace pfrt::cpu
