// SPDX-License-Identifier: Apache-2.0
//
// Removes arithmetic and logic whose result equals an operand, exactly, bit for bit: x + 0 stays,
// since it turns a -0 into a 0, while x - 0 and x + -0 go.
#include <array>
#include <cmath>
#include <cstring>

#include "core/pass/rules/moves.h"
#include "core/pass/rules/numbers.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// The value of every element of a constant, if it is the same.
std::optional<double> uniform(const Tensor* constant) {
  if (!constant || constant->dtype == PFRT_DTYPE_STRING || constant->device()) return std::nullopt;
  const int64_t count = constant->count();
  if (count < 1 || constant->bytes() % static_cast<uint64_t>(count) != 0) return std::nullopt;
  const auto all = static_cast<size_t>(constant->bytes()), one = all / static_cast<size_t>(count);
  bool alike = false;
  Result<Tensor> first = Tensor::allocate(constant->dtype, {});
  if (!first.ok()) return std::nullopt;
  const Status read = constant->read([&](const void* bytes) {
    const auto* const data = static_cast<const char*>(bytes);
    alike = std::memcmp(data, data + one, all - one) == 0;
    if (alike) std::memcpy(first->data(), data, one);
  });
  return read.ok() && alike ? scalar_of(&*first) : std::nullopt;
}

std::optional<double> uniform(const Editor& editor, const Node& node, size_t i) {
  return node.has_input(i) ? uniform(editor.constant(node.inputs[i])) : std::nullopt;
}

// The value of an operand with which the result is the other operand.
struct Neutral {
  std::string_view op;
  double value;
  bool left;  // the first operand may be it too
};
constexpr Neutral kNeutral[] = {
    {"Add", -0.0, true},    {"Sub", 0, false},       {"Mul", 1, true},      {"Div", 1, false},
    {"Pow", 1, false},      {"And", 1, true},        {"Or", 0, true},       {"Xor", 0, true},
    {"BitwiseOr", 0, true}, {"BitwiseXor", 0, true}, {"BitShift", 0, false}};

Result<bool> neutral(Editor& editor, Node& node, const RuleContext&) {
  if (node.inputs.size() != 2) return false;
  for (const Neutral& row : kNeutral) {
    if (row.op != node.op) continue;
    for (const size_t side : {1u, 0u}) {
      if (side == 0 && !row.left) continue;
      const auto value = uniform(editor, node, side);
      if (!value || *value != row.value) continue;
      const bool floats = dtype_is_float(editor.type(node.inputs[side]).dtype);
      if (floats && std::signbit(*value) != std::signbit(row.value)) continue;
      if (stand_in(editor, node, node.inputs[1 - side])) return true;
    }
  }
  return false;
}

Result<bool> only_operand(Editor& editor, Node& node, const RuleContext&) {
  return node.inputs.size() == 1 && stand_in(editor, node, node.inputs[0]);
}

// Rules for additions then apply.
Result<bool> two_operands(Editor& editor, Node& node, const RuleContext&) {
  if (node.inputs.size() != 2) return false;
  node.op = "Add";
  PFRT_TRY(editor.changed(node));
  return true;
}

Result<bool> no_bounds(Editor& editor, Node& node, const RuleContext&) {
  constexpr double kEnd = std::numeric_limits<double>::infinity();
  if (node.has_input(1) && uniform(editor, node, 1) != -kEnd) return false;
  if (node.has_input(2) && uniform(editor, node, 2) != kEnd) return false;
  return stand_in(editor, node, node.inputs[0]);
}

Result<bool> known_choice(Editor& editor, Node& node, const RuleContext&) {
  const auto condition = uniform(editor, node, 0);
  if (!condition) return false;
  return stand_in(editor, node, node.inputs[*condition != 0 ? 1 : 2]);
}

Result<bool> same_choice(Editor& editor, Node& node, const RuleContext&) {
  return node.inputs[1] == node.inputs[2] && stand_in(editor, node, node.inputs[1]);
}

// f(f(x)) = x.
Result<bool> undone(Editor& editor, Node& node, const RuleContext&) {
  const Node* before = editor.maker(node.inputs[0], node.op);
  if (!before || !editor.can_replace(node.outputs[0], before->inputs[0])) return false;
  editor.replace(node.outputs[0], before->inputs[0]);
  return true;
}

// f(f(x)) = f(x).
Result<bool> done_before(Editor& editor, Node& node, const RuleContext&) {
  const ValueId in = node.inputs[0];
  if (!editor.maker(in, node.op) || !editor.can_replace(node.outputs[0], in)) return false;
  editor.replace(node.outputs[0], in);
  return true;
}

constexpr Rule kAlgebraRules[] = {
    {"NeutralOperand", "Add", "x + -0 (x + 0 of integers) -> x", kBasic, false, neutral},
    {"NeutralOperand", "Sub", "x - 0 -> x", kBasic, false, neutral},
    {"NeutralOperand", "Mul", "x * 1 -> x", kBasic, false, neutral},
    {"NeutralOperand", "Div", "x / 1 -> x", kBasic, false, neutral},
    {"NeutralOperand", "Pow", "x to the power of 1 -> x", kBasic, false, neutral},
    {"NeutralOperand", "And", "x and true -> x", kBasic, false, neutral},
    {"NeutralOperand", "Or", "x or false -> x", kBasic, false, neutral},
    {"NeutralOperand", "Xor", "x xor false -> x", kBasic, false, neutral},
    {"NeutralOperand", "BitwiseOr", "x | 0 -> x", kBasic, false, neutral},
    {"NeutralOperand", "BitwiseXor", "x ^ 0 -> x", kBasic, false, neutral},
    {"NeutralOperand", "BitShift", "x shifted by 0 -> x", kBasic, false, neutral},
    {"OnlyOperand", "Sum", "Sum of one -> its input", kBasic, false, only_operand},
    {"TwoOperands", "Sum", "Sum of two -> Add", kBasic, false, two_operands},
    {"OnlyOperand", "Mean", "Mean of one -> its input", kBasic, false, only_operand},
    {"OnlyOperand", "Max", "Max of one -> its input", kBasic, false, only_operand},
    {"OnlyOperand", "Min", "Min of one -> its input", kBasic, false, only_operand},
    {"ClipWithoutBounds", "Clip", "Clip without bounds -> its input", kBasic, false, no_bounds},
    {"KnownChoice", "Where", "Where of a constant condition -> what it chooses", kBasic, false,
     known_choice},
    {"KnownChoice", "Where", "Where of the same twice -> that", kBasic, false, same_choice},
    {"Undone", "Neg", "Neg, Neg -> x", kBasic, false, undone},
    {"Undone", "Not", "Not, Not -> x", kBasic, false, undone},
    {"Undone", "BitwiseNot", "BitwiseNot, BitwiseNot -> x", kBasic, false, undone},
    {"DoneBefore", "Relu", "Relu, Relu -> Relu", kBasic, false, done_before},
    {"DoneBefore", "Abs", "Abs, Abs -> Abs", kBasic, false, done_before},
    {"DoneBefore", "Floor", "Floor, Floor -> Floor", kBasic, false, done_before},
    {"DoneBefore", "Ceil", "Ceil, Ceil -> Ceil", kBasic, false, done_before},
    {"DoneBefore", "Round", "Round, Round -> Round", kBasic, false, done_before},
    {"DoneBefore", "Sign", "Sign, Sign -> Sign", kBasic, false, done_before},
};

}  // namespace

std::span<const Rule> algebra_rules() { return kAlgebraRules; }

}  // namespace pfrt
