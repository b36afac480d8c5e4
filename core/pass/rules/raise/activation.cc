// SPDX-License-Identifier: Apache-2.0
//
// Finds activations in the arithmetic that exporters write: products x f(x) are split into factors
// and polynomials, so that association and the side of constants do not matter.
#include <cmath>
#include <limits>
#include <numbers>

#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

struct Activation {
  std::string_view op;
  std::vector<Attribute> attrs;
};

bool is_linear(const Polynomial& p, double slope, double shift, pfrt_dtype dtype) {
  const bool line = p[2] == 0 && p[3] == 0 && near(p[1], slope, dtype);
  return line && (shift == 0 ? p[0] == 0 : near(p[0], shift, dtype));
}

// The factor by which |value| is a multiple of |leaf|, if it is one.
std::optional<double> multiple(Match& match, ValueId value, ValueId leaf) {
  const auto p = polynomial(match, value, leaf);
  return p && (*p)[0] == 0 && (*p)[2] == 0 && (*p)[3] == 0 ? std::optional((*p)[1]) : std::nullopt;
}

// The bounds of a Clip; infinite where one is absent, nullopt where one is unknown.
std::optional<std::pair<double, double>> bounds(const Editor& editor, const Node& clip) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::pair<double, double> out{-kInf, kInf};
  for (size_t i : {1u, 2u}) {
    if (!clip.has_input(i)) continue;
    const auto bound = scalar(editor, clip.inputs[i]);
    if (!bound || std::isnan(*bound)) return std::nullopt;
    (i == 1 ? out.first : out.second) = *bound;
  }
  return out;
}

// The HardSigmoid of x, with slope and shift, that scale * Clip(a x + b, 0, h) is.
struct Ramp {
  double slope, shift;
};
std::optional<Ramp> ramp(Match& match, double scale, ValueId clipped, ValueId x) {
  const Editor& editor = match.editor();
  const Node* clip = match.take(clipped, "Clip");
  if (!clip) return std::nullopt;
  const auto limits = bounds(editor, *clip);
  const auto line = polynomial(match, clip->inputs[0], x);
  if (!limits || !line || limits->first != 0 || scale <= 0) return std::nullopt;
  if (!near(limits->second * scale, 1, editor.type(x).dtype)) return std::nullopt;
  if ((*line)[2] != 0 || (*line)[3] != 0) return std::nullopt;
  return Ramp{(*line)[1] * scale, (*line)[0] * scale};
}

// Matches 0.5 x (1 + t), with t the error function of x / sqrt(2) or a hyperbolic tangent.
std::optional<Activation> gelu(Match& match, double scale, ValueId factor, ValueId x,
                               const Node& bell) {
  const pfrt_dtype dtype = match.editor().type(x).dtype;
  match.take(bell);
  const auto outer = polynomial(match, factor, bell.outputs[0]);
  const auto inner = polynomial(match, bell.inputs[0], x);
  if (!outer || !inner) return std::nullopt;
  Polynomial scaled = *outer;
  for (double& c : scaled) c *= scale;
  if (!is_linear(scaled, 0.5, 0.5, dtype)) return std::nullopt;
  if (bell.op == "Erf") {
    if (!is_linear(*inner, 1 / std::numbers::sqrt2, 0, dtype)) return std::nullopt;
    return Activation{"Gelu", {Attribute::of_string("approximate", "none")}};
  }
  const double slope = std::sqrt(2 / std::numbers::pi);
  if ((*inner)[0] != 0 || (*inner)[2] != 0 || !near((*inner)[1], slope, dtype) ||
      !near((*inner)[3], 0.044715 * slope, dtype))
    return std::nullopt;
  return Activation{"Gelu", {Attribute::of_string("approximate", "tanh")}};
}

// The Erf or Tanh below a few additions and products with constants.
const Node* bell_under(Editor& editor, ValueId value) {
  for (int depth = 0; depth < 4; ++depth) {
    const Node* node = editor.producer(value);
    if (!node || !node->domain.empty()) return nullptr;
    if (node->op == "Erf" || node->op == "Tanh") return node;
    if (node->op != "Add" && node->op != "Mul" && node->op != "Div" && node->op != "Sub")
      return nullptr;
    const auto parts = with_scalar(editor, *node);
    if (!parts) return nullptr;
    value = parts->other;
  }
  return nullptr;
}

// Matches scale * x * f(x), with f(x) in |factor|.
std::optional<Activation> gate(Match& match, double scale, ValueId x, ValueId factor) {
  Editor& editor = match.editor();
  const pfrt_dtype dtype = editor.type(x).dtype;
  if (Match tried = match; const Node* sigmoid = tried.take(factor, "Sigmoid")) {
    const auto alpha = multiple(tried, sigmoid->inputs[0], x);
    if (!alpha || scale != 1) return std::nullopt;
    match = tried;
    return Activation{"Swish", {Attribute::of_float("alpha", static_cast<float>(*alpha))}};
  }
  if (Match tried = match; const Node* hard = tried.take(factor, "HardSigmoid")) {
    const bool sixth = near(static_cast<double>(hard->attr_float("alpha", 0.2f)), 1.0 / 6, dtype) &&
                       hard->attr_float("beta", 0.5f) == 0.5f;
    if (!sixth || scale != 1 || hard->inputs[0] != x) return std::nullopt;
    match = tried;
    return Activation{"HardSwish", {}};
  }
  if (Match tried = match; const auto line = ramp(tried, scale, factor, x)) {
    if (!near(line->slope, 1.0 / 6, dtype) || !near(line->shift, 0.5, dtype)) return std::nullopt;
    match = tried;
    return Activation{"HardSwish", {}};
  }
  if (Match tried = match; const Node* tanh = tried.take(factor, "Tanh")) {
    const Node* softplus = tried.take(tanh->inputs[0], "Softplus");
    if (softplus && softplus->inputs[0] == x && scale == 1) {
      match = tried;
      return Activation{"Mish", {}};
    }
  }
  if (const Node* bell = bell_under(editor, factor)) return gelu(match, scale, factor, x, *bell);
  return std::nullopt;
}

Result<bool> put(Match& match, const RuleContext& context, ValueId x, ValueId out,
                 const Activation& activation) {
  Editor& editor = match.editor();
  if (!raisable(editor.type(x).dtype) || !editor.same_type(x, out) || !match.closed(out))
    return false;
  return replace_with(editor, context, out, node_of(activation.op, {x}, activation.attrs));
}

// Rules of one name share this function; |op| says what to make.
Result<bool> gated(Editor& editor, Node& node, const RuleContext& context, std::string_view op) {
  Match match(editor);
  const Product parts = product(match, node);
  if (parts.factors.size() != 2) return false;
  for (const size_t side : {0u, 1u}) {
    Match tried = match;
    const ValueId x = parts.factors[side];
    const auto found = gate(tried, parts.scale, x, parts.factors[1 - side]);
    if (!found || found->op != op) continue;
    PFRT_ASSIGN(const bool done, put(tried, context, x, node.outputs[0], *found));
    if (done) return true;
  }
  return false;
}
Result<bool> to_gelu(Editor& editor, Node& node, const RuleContext& context) {
  return gated(editor, node, context, "Gelu");
}
Result<bool> to_swish(Editor& editor, Node& node, const RuleContext& context) {
  return gated(editor, node, context, "Swish");
}
Result<bool> to_hard_swish(Editor& editor, Node& node, const RuleContext& context) {
  return gated(editor, node, context, "HardSwish");
}
Result<bool> to_mish(Editor& editor, Node& node, const RuleContext& context) {
  return gated(editor, node, context, "Mish");
}

// The value below arithmetic with constants.
ValueId under_line(Editor& editor, ValueId value) {
  for (int depth = 0; depth < 4; ++depth) {
    const Node* node = editor.producer(value);
    if (!node || !node->domain.empty() || !editor.only_user(value)) return value;
    if (node->op != "Add" && node->op != "Mul" && node->op != "Div" && node->op != "Sub")
      return value;
    const auto parts = with_scalar(editor, *node);
    if (!parts || (node->op == "Div" && parts->side == 0)) return value;
    value = parts->other;
  }
  return value;
}

// Matches Clip(a x + b, 0, h) / h.
Result<bool> to_hard_sigmoid(Editor& editor, Node& node, const RuleContext& context) {
  Match match(editor);
  Product parts;
  if (node.op == "Clip")
    parts.factors = {node.outputs[0]};
  else
    parts = product(match, node);
  if (parts.factors.size() != 1) return false;
  const Node* clip = editor.maker(parts.factors[0], "Clip");
  if (!clip) return false;
  const ValueId x = under_line(editor, clip->inputs[0]);
  const auto line = ramp(match, parts.scale, parts.factors[0], x);
  // Without arithmetic on x there is nothing to save.
  if (!line || x == clip->inputs[0]) return false;
  return put(match, context, x, node.outputs[0],
             {"HardSigmoid",
              {Attribute::of_float("alpha", static_cast<float>(line->slope)),
               Attribute::of_float("beta", static_cast<float>(line->shift))}});
}

// Log(1 + Exp(x)) becomes infinite where the exponential does, at about 89 in float32, and Softplus
// does not. Only Tanh, which is 1 by then, gives the same for both, but not in float16.
Result<bool> to_softplus(Editor& editor, Node& node, const RuleContext& context) {
  if (editor.type(node.outputs[0]).dtype == PFRT_DTYPE_FLOAT16) return false;
  const Node* next = editor.only_user(node.outputs[0]);
  if (!next || next->op != "Tanh" || !next->domain.empty()) return false;
  Match match(editor);
  match.take(node);
  const Node* sum = match.take(node.inputs[0], "Add");
  const auto parts = sum ? with_scalar(editor, *sum) : std::nullopt;
  if (!parts || parts->number != 1) return false;
  const Node* exp = match.take(parts->other, "Exp");
  return exp ? put(match, context, exp->inputs[0], node.outputs[0], {"Softplus", {}}) : false;
}

// Matches Max(x, c x).
Result<bool> to_leaky_relu(Editor& editor, Node& node, const RuleContext& context) {
  if (node.inputs.size() != 2) return false;
  for (const size_t side : {0u, 1u}) {
    Match match(editor);
    match.take(node);
    const ValueId x = node.inputs[side];
    const auto slope =
        x == node.inputs[1 - side] ? std::nullopt : multiple(match, node.inputs[1 - side], x);
    if (!slope || *slope <= 0 || *slope >= 1) continue;
    PFRT_ASSIGN(const bool done,
                put(match, context, x, node.outputs[0],
                    {"LeakyRelu", {Attribute::of_float("alpha", static_cast<float>(*slope))}}));
    if (done) return true;
  }
  return false;
}

// Matches Relu(x) + c Relu(-x), with the slope -c.
Result<bool> to_prelu(Editor& editor, Node& node, const RuleContext& context) {
  for (const size_t side : {0u, 1u}) {
    if (node.inputs.size() != 2) return false;
    Match match(editor);
    match.take(node);
    const Node* positive = match.take(node.inputs[side], "Relu");
    const Node* scaled = match.take(node.inputs[1 - side], "Mul");
    if (!positive || !scaled || scaled->inputs.size() != 2) continue;
    for (const size_t of : {0u, 1u}) {
      Match tried = match;
      const Tensor* slope = editor.constant(scaled->inputs[of]);
      const Node* negative = tried.take(scaled->inputs[1 - of], "Relu");
      const Node* minus = negative ? tried.take(negative->inputs[0], "Neg") : nullptr;
      auto numbers = to_doubles(slope);
      const ValueId x = positive->inputs[0], out = node.outputs[0];
      if (!minus || !numbers || minus->inputs[0] != x || !raisable(editor.type(x).dtype) ||
          !editor.same_type(x, out) || slope->dims.size() > *editor.rank(x) || !tried.closed(out))
        continue;
      for (double& number : *numbers) number = -number;
      PFRT_ASSIGN(Tensor negated, from_doubles(slope->dtype, slope->dims, *numbers));
      const ValueId made =
          editor.add_constant(editor.graph().at(scaled->inputs[of]).name, std::move(negated));
      return replace_with(editor, context, out, node_of("PRelu", {x, made}));
    }
  }
  return false;
}

// ---------------------------------------------------------------------------------------- bounds

Result<ValueId> bound(Editor& editor, ValueId like, double number) {
  if (std::isinf(number)) return kNoId;
  PFRT_ASSIGN(Tensor tensor, from_doubles(editor.type(like).dtype, {}, {number}));
  return editor.add_constant("bound", std::move(tensor));
}

Result<bool> clip_to(Editor& editor, const RuleContext& context, ValueId x, ValueId out, double low,
                     double high) {
  PFRT_ASSIGN(const ValueId least, bound(editor, x, low));
  PFRT_ASSIGN(const ValueId most, bound(editor, x, high));
  std::vector<ValueId> inputs = {x, least, most};
  while (inputs.back() == kNoId) inputs.pop_back();
  return replace_with(editor, context, out, node_of("Clip", std::move(inputs)));
}

// Makes Max or Min with a constant a Clip.
Result<bool> to_clip(Editor& editor, Node& node, const RuleContext& context) {
  const auto parts = with_scalar(editor, node);
  if (!parts || !std::isfinite(parts->number) || !raisable(editor.type(parts->other).dtype) ||
      !editor.same_type(parts->other, node.outputs[0]))
    return false;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const bool lower = node.op == "Max";
  return clip_to(editor, context, parts->other, node.outputs[0], lower ? parts->number : -kInf,
                 lower ? kInf : parts->number);
}

// Makes Clip(x, 0) a Relu, and Clip of Clip or Relu a Clip.
Result<bool> clip_chain(Editor& editor, Node& node, const RuleContext& context) {
  const auto limits = bounds(editor, node);
  const ValueId in = node.inputs[0], out = node.outputs[0];
  if (!limits || !(limits->first <= limits->second) || !raisable(editor.type(in).dtype))
    return false;
  if (limits->first == 0 && std::isinf(limits->second))
    return replace_with(editor, context, out, node_of("Relu", {in}));
  const Node* inner = editor.producer(in);
  if (!inner || !inner->domain.empty() || !editor.only_used_by(in, node)) return false;
  std::optional<std::pair<double, double>> first;
  if (inner->op == "Clip") first = bounds(editor, *inner);
  if (inner->op == "Relu") first = {0, std::numeric_limits<double>::infinity()};
  if (!first || !(first->first <= first->second)) return false;
  const auto clamp = [&](double v) { return std::min(std::max(v, limits->first), limits->second); };
  return clip_to(editor, context, inner->inputs[0], out, clamp(first->first), clamp(first->second));
}

constexpr Rule kRaiseActivationRules[] = {
    {"Gelu", "Mul", "0.5 x (1 + Erf(x / sqrt 2)), or its form with Tanh -> Gelu", kExtended, true,
     to_gelu},
    {"Gelu", "Div", "x (1 + Erf(x / sqrt 2)) / 2 -> Gelu", kExtended, true, to_gelu},
    {"Swish", "Mul", "x Sigmoid(a x) -> Swish", kExtended, true, to_swish},
    {"HardSwish", "Mul", "x HardSigmoid(x), x Clip(x + 3, 0, 6) / 6 -> HardSwish", kExtended, true,
     to_hard_swish},
    {"HardSwish", "Div", "x Clip(x + 3, 0, 6) / 6 -> HardSwish", kExtended, true, to_hard_swish},
    {"Mish", "Mul", "x Tanh(Softplus(x)) -> Mish", kExtended, true, to_mish},
    {"HardSigmoid", "Mul", "Clip(a x + b, 0, h) times 1 / h -> HardSigmoid", kExtended, true,
     to_hard_sigmoid},
    {"HardSigmoid", "Div", "Clip(a x + b, 0, h) / h -> HardSigmoid", kExtended, true,
     to_hard_sigmoid},
    {"HardSigmoid", "Clip", "Clip(a x + b, 0, 1) -> HardSigmoid", kExtended, true, to_hard_sigmoid},
    {"Softplus", "Log", "Log(1 + Exp(x)), Tanh -> Softplus, Tanh", kExtended, true, to_softplus},
    {"LeakyRelu", "Max", "Max(x, a x) with a in (0, 1) -> LeakyRelu", kExtended, true,
     to_leaky_relu},
    {"PRelu", "Add", "Relu(x) + c Relu(-x) -> PRelu", kExtended, true, to_prelu},
    {"Clip", "Max", "Max with a constant -> Clip", kExtended, false, to_clip},
    {"Clip", "Min", "Min with a constant -> Clip", kExtended, false, to_clip},
    {"Clip", "Clip", "Clip of Clip or Relu -> Clip; Clip(x, 0) -> Relu", kExtended, false,
     clip_chain},
};

}  // namespace

std::span<const Rule> activation_rules() { return kRaiseActivationRules; }

}  // namespace pfrt
