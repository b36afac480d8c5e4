// SPDX-License-Identifier: Apache-2.0
//
// Finds normalisations in reductions and arithmetic: the quotient, with a scale of ones;
// normalization.cc takes in the nodes that follow.
#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

std::vector<Attribute> row_attrs(int64_t axis, double epsilon) {
  return {Attribute::of_int("axis", axis),
          Attribute::of_float("epsilon", static_cast<float>(epsilon)),
          Attribute::of_int("stash_type", PFRT_DTYPE_FLOAT32)};
}

Result<ValueId> filled(Editor& editor, std::string_view stem, pfrt_dtype dtype, const Dims& dims,
                       double number) {
  PFRT_ASSIGN(Tensor tensor,
              from_doubles(dtype, dims, std::vector<double>(count_of(dims), number)));
  return editor.add_constant(stem, std::move(tensor));
}

// ----------------------------------------------------------------------------------- the quotient

// The argument of the root where |value| is 1 / sqrt(.), or with |divides| sqrt(.).
ValueId under_root(Match& match, ValueId value, bool divides) {
  Editor& editor = match.editor();
  if (const Node* power = match.take(value, "Pow")) {
    if (scalar(editor, power->inputs[1]) == (divides ? 0.5 : -0.5)) return power->inputs[0];
    return kNoId;
  }
  if (!divides) {
    if (const Node* inverse = match.take(value, "Reciprocal")) {
      value = inverse->inputs[0];
    } else if (const Node* ratio = match.take(value, "Div");
               ratio && scalar(editor, ratio->inputs[0]) == 1.0) {
      value = ratio->inputs[1];
    } else {
      return kNoId;
    }
    return under_root(match, value, true);
  }
  const Node* root = match.take(value, "Sqrt");
  return root ? root->inputs[0] : kNoId;
}

// The mean of squares over some axes, plus epsilon.
struct Spreading {
  ValueId squared;  // the value that is squared
  std::vector<int64_t> axes;
  double epsilon;
};

std::optional<Spreading> mean_square(Match& match, ValueId value) {
  Editor& editor = match.editor();
  const Node* sum = match.take(value, "Add");
  const auto parts = sum ? with_scalar(editor, *sum) : std::nullopt;
  if (!parts || parts->number < 0) return std::nullopt;
  const Node* mean = match.take(parts->other, "ReduceMean");
  auto axes = mean ? reduced_axes(editor, *mean) : std::nullopt;
  if (!axes) return std::nullopt;
  const ValueId square = mean->inputs[0];
  if (const Node* power = match.take(square, "Pow")) {
    if (scalar(editor, power->inputs[1]) != 2.0) return std::nullopt;
    return Spreading{power->inputs[0], std::move(*axes), parts->number};
  }
  const Node* product = match.take(square, "Mul");
  if (!product || product->inputs.size() != 2 || product->inputs[0] != product->inputs[1])
    return std::nullopt;
  return Spreading{product->inputs[0], std::move(*axes), parts->number};
}

// The x of |centred| = x - mean of x over |axes|.
ValueId centred_of(Match& match, ValueId centred, const std::vector<int64_t>& axes) {
  Editor& editor = match.editor();
  const Node* difference = match.take(centred, "Sub");
  if (!difference) return kNoId;
  const Node* mean = match.take(difference->inputs[1], "ReduceMean");
  if (!mean || mean->inputs[0] != difference->inputs[0] || reduced_axes(editor, *mean) != axes)
    return kNoId;
  return difference->inputs[0];
}

// Replaces a pattern by the operator that normalises |x| over |axes|, with a scale of ones.
Result<bool> normalise(Match& match, const RuleContext& context, ValueId x, ValueId out,
                       const Spreading& s, bool centred) {
  Editor& editor = match.editor();
  const pfrt_dtype dtype = editor.type(x).dtype;
  const std::optional<size_t> rank = editor.rank(x);
  if (!rank || !normalisable(dtype) || !editor.same_type(x, out) || !match.closed(out) ||
      !are_trailing(s.axes, *rank))
    return false;
  const std::string stem = editor.producer(out)->name;
  if (centred && *rank >= 4 && s.axes.size() == *rank - 2) {
    const Dim channels = editor.type(x).shape[1];
    if (!channels.known()) return false;
    PFRT_ASSIGN(const ValueId ones, filled(editor, stem + "/scale", dtype, {channels.value()}, 1));
    PFRT_ASSIGN(const ValueId zeros, filled(editor, stem + "/bias", dtype, {channels.value()}, 0));
    return replace_with(editor, context, out,
                        node_of("InstanceNormalization", {x, ones, zeros},
                                {Attribute::of_float("epsilon", static_cast<float>(s.epsilon))}));
  }
  const auto axis = static_cast<size_t>(s.axes.front());
  const auto dims = dims_from(editor, x, axis);
  if (!dims) return false;
  PFRT_ASSIGN(const ValueId ones, filled(editor, stem + "/scale", dtype, *dims, 1));
  return replace_with(editor, context, out,
                      node_of(centred ? "LayerNormalization" : "RMSNormalization", {x, ones},
                              row_attrs(static_cast<int64_t>(axis), s.epsilon)));
}

// Matches Div(centred, root) or Mul(centred, 1 / root); |centred| may be computed twice.
Result<bool> quotient(Editor& editor, Node& node, const RuleContext& context, bool centred) {
  if (node.inputs.size() != 2) return false;
  const bool divides = node.op == "Div";
  for (const size_t side : {0u, 1u}) {
    if (divides && side == 1) continue;
    Match match(editor);
    match.take(node);
    const ValueId above = node.inputs[side];
    const ValueId under = under_root(match, node.inputs[1 - side], divides);
    const auto s = under == kNoId ? std::nullopt : mean_square(match, under);
    if (!s) continue;
    ValueId x = above;
    if (centred) {
      x = centred_of(match, above, s->axes);
      if (x == kNoId || centred_of(match, s->squared, s->axes) != x) continue;
    } else if (s->squared != above) {
      continue;
    }
    PFRT_ASSIGN(const bool done, normalise(match, context, x, node.outputs[0], *s, centred));
    if (done) return true;
  }
  return false;
}
Result<bool> to_layer_norm(Editor& editor, Node& node, const RuleContext& context) {
  return quotient(editor, node, context, true);
}
Result<bool> to_rms_norm(Editor& editor, Node& node, const RuleContext& context) {
  return quotient(editor, node, context, false);
}

// ----------------------------------------------------------------- x inverse + beta - mean inverse

// The parts of inverse = 1 / root, or of this times a constant gamma.
struct Inverse {
  ValueId under, gamma;
};

std::optional<Inverse> inverse_of(Match& match, ValueId value) {
  if (Match tried = match; const Node* scaled = tried.take(value, "Mul")) {
    for (const size_t side : {0u, 1u}) {
      Match deeper = tried;
      const ValueId gamma = scaled->inputs[1 - side];
      const ValueId under = under_root(deeper, scaled->inputs[side], false);
      if (under == kNoId || !deeper.editor().constant(gamma)) continue;
      match = deeper;
      return Inverse{under, gamma};
    }
  }
  const ValueId under = under_root(match, value, false);
  return under == kNoId ? std::nullopt : std::optional(Inverse{under, kNoId});
}

// Matches |scaled| = x inverse and |shifted| = mean inverse, and |beta| if there is one.
Result<bool> folded(Editor& editor, Node& node, const RuleContext& context, const Node& scaled,
                    const Node& shifted, ValueId beta) {
  for (const size_t side : {0u, 1u}) {
    const ValueId inverse_value = scaled.inputs[1 - side], x = scaled.inputs[side];
    const bool first = shifted.inputs[0] == inverse_value;
    if (!first && shifted.inputs[1] != inverse_value) continue;
    Match match(editor);
    match.take(node);
    match.take(scaled);
    match.take(shifted);
    const auto inverse = inverse_of(match, inverse_value);
    const auto s = inverse ? mean_square(match, inverse->under) : std::nullopt;
    const Node* mean = match.take(shifted.inputs[first ? 1 : 0], "ReduceMean");
    const ValueId out = node.outputs[0];
    const std::optional<size_t> rank = editor.rank(x);
    if (!s || !mean || !rank || mean->inputs[0] != x || reduced_axes(editor, *mean) != s->axes ||
        centred_of(match, s->squared, s->axes) != x || !are_trailing(s->axes, *rank))
      continue;
    const pfrt_dtype dtype = editor.type(x).dtype;
    const auto axis = static_cast<size_t>(s->axes.front());
    const auto dims = dims_from(editor, x, axis);
    if (!dims || !normalisable(dtype) || !editor.same_type(x, out)) continue;
    if (const Node* between = editor.producer(out); beta != kNoId && between->op == "Add")
      for (ValueId value : between->inputs) match.take(value, "Sub");
    const auto gamma = inverse->gamma == kNoId ? std::vector<double>(count_of(*dims), 1)
                                               : spread(editor, inverse->gamma, *dims);
    const auto shift = beta == kNoId ? std::nullopt : spread(editor, beta, *dims);
    if (!gamma || (beta != kNoId && !shift) || !match.closed(out)) continue;
    std::vector<ValueId> inputs = {x};
    PFRT_ASSIGN(Tensor scale, from_doubles(dtype, *dims, *gamma));
    inputs.push_back(editor.add_constant(message(node.name, "/scale"), std::move(scale)));
    if (shift) {
      PFRT_ASSIGN(Tensor bias, from_doubles(dtype, *dims, *shift));
      inputs.push_back(editor.add_constant(message(node.name, "/bias"), std::move(bias)));
    }
    return replace_with(editor, context, out,
                        node_of("LayerNormalization", std::move(inputs),
                                row_attrs(static_cast<int64_t>(axis), s->epsilon)));
  }
  return false;
}

const Node* product_of_two(Editor& editor, ValueId value) {
  const Node* node = editor.maker(value, "Mul");
  return node && node->inputs.size() == 2 ? node : nullptr;
}

// Matches x inverse + (beta - mean inverse).
Result<bool> folded_sum(Editor& editor, Node& node, const RuleContext& context) {
  if (node.inputs.size() != 2) return false;
  for (const size_t side : {0u, 1u}) {
    const Node* scaled = product_of_two(editor, node.inputs[side]);
    const Node* rest = editor.maker(node.inputs[1 - side], "Sub");
    const Node* shifted = rest ? product_of_two(editor, rest->inputs[1]) : nullptr;
    if (!scaled || !shifted) continue;
    PFRT_ASSIGN(const bool done, folded(editor, node, context, *scaled, *shifted, rest->inputs[0]));
    if (done) return true;
  }
  return false;
}

// Matches x inverse - mean inverse.
Result<bool> folded_difference(Editor& editor, Node& node, const RuleContext& context) {
  const Node* scaled = product_of_two(editor, node.inputs[0]);
  const Node* shifted = product_of_two(editor, node.inputs[1]);
  if (!scaled || !shifted || scaled == shifted) return false;
  return folded(editor, node, context, *scaled, *shifted, kNoId);
}

constexpr Rule kRaiseNormRules[] = {
    {"LayerNorm", "Div",
     "(x - mean) / Sqrt(mean of squares + epsilon) -> LayerNormalization or InstanceNormalization",
     kExtended, true, to_layer_norm},
    {"LayerNorm", "Mul", "the same, times the reciprocal of the root", kExtended, true,
     to_layer_norm},
    {"LayerNorm", "Add", "x inverse + (beta - mean inverse) -> LayerNormalization", kExtended, true,
     folded_sum},
    {"LayerNorm", "Sub", "x inverse - mean inverse -> LayerNormalization", kExtended, true,
     folded_difference},
    {"RMSNorm", "Div", "x / Sqrt(mean of squares + epsilon) -> RMSNormalization", kExtended, true,
     to_rms_norm},
    {"RMSNorm", "Mul", "the same, times the reciprocal of the root", kExtended, true, to_rms_norm},
};

}  // namespace

std::span<const Rule> normalization_rules() { return kRaiseNormRules; }

}  // namespace pfrt
