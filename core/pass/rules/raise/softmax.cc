// SPDX-License-Identifier: Apache-2.0
//
// Finds Softmax in exponentials, only where the maximum is subtracted first: without it the
// exponentials may overflow where the operator does not.
#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// The parts of x - max of x over one axis.
struct Shifted {
  ValueId x;
  int64_t axis;
};
std::optional<Shifted> shifted_of(Match& match, ValueId value) {
  const Editor& editor = match.editor();
  const Node* difference = match.take(value, "Sub");
  const Node* most = difference ? match.take(difference->inputs[1], "ReduceMax") : nullptr;
  if (!most || most->inputs[0] != difference->inputs[0]) return std::nullopt;
  const auto axes = reduced_axes(editor, *most);
  if (!axes || axes->size() != 1) return std::nullopt;
  return Shifted{difference->inputs[0], axes->front()};
}

// Whether |sum| is the sum of |value| over that axis.
bool is_sum(Match& match, ValueId sum, ValueId value, int64_t axis) {
  const Node* made = match.take(sum, "ReduceSum");
  return made && made->inputs[0] == value &&
         reduced_axes(match.editor(), *made) == std::vector<int64_t>{axis};
}

Result<bool> put(Match& match, const RuleContext& context, std::string_view op,
                 const Shifted& shifted, ValueId out) {
  Editor& editor = match.editor();
  if (!raisable(editor.type(out).dtype) || !editor.same_type(shifted.x, out) || !match.closed(out))
    return false;
  return replace_with(editor, context, out,
                      node_of(op, {shifted.x}, {Attribute::of_int("axis", shifted.axis)}));
}

// Matches e / sum of e, or e times the reciprocal of the sum, with e = Exp(x - max of x).
Result<bool> to_softmax(Editor& editor, Node& node, const RuleContext& context) {
  if (node.inputs.size() != 2) return false;
  for (const size_t side : {0u, 1u}) {
    if (node.op == "Div" && side == 1) continue;
    Match match(editor);
    match.take(node);
    const ValueId power = node.inputs[side];
    ValueId sum = node.inputs[1 - side];
    const Node* exp = match.take(power, "Exp");
    if (exp && node.op == "Mul") {
      const Node* inverse = match.take(sum, "Reciprocal");
      sum = inverse ? inverse->inputs[0] : kNoId;
    }
    const auto shifted = exp ? shifted_of(match, exp->inputs[0]) : std::nullopt;
    if (!shifted || sum == kNoId || !is_sum(match, sum, power, shifted->axis)) continue;
    return put(match, context, "Softmax", *shifted, node.outputs[0]);
  }
  return false;
}

// Matches d - Log(sum of Exp(d)), with d = x - max of x.
Result<bool> to_log_softmax(Editor& editor, Node& node, const RuleContext& context) {
  Match match(editor);
  match.take(node);
  const Node* log = match.take(node.inputs[1], "Log");
  const Node* sum = log ? match.take(log->inputs[0], "ReduceSum") : nullptr;
  const Node* exp = sum ? match.take(sum->inputs[0], "Exp") : nullptr;
  if (!exp || exp->inputs[0] != node.inputs[0]) return false;
  const auto shifted = shifted_of(match, node.inputs[0]);
  if (!shifted || !is_sum(match, log->inputs[0], sum->inputs[0], shifted->axis)) return false;
  return put(match, context, "LogSoftmax", *shifted, node.outputs[0]);
}

constexpr Rule kRaiseSoftmaxRules[] = {
    {"Softmax", "Div", "e / sum of e, with e = Exp(x - max of x) -> Softmax", kExtended, true,
     to_softmax},
    {"Softmax", "Mul", "the same, times the reciprocal of the sum", kExtended, true, to_softmax},
    {"LogSoftmax", "Sub", "d - Log(sum of Exp(d)), with d = x - max of x -> LogSoftmax", kExtended,
     true, to_log_softmax},
};

}  // namespace

std::span<const Rule> softmax_rules() { return kRaiseSoftmaxRules; }

}  // namespace pfrt
