// SPDX-License-Identifier: Apache-2.0
//
// Operators of integers and masks, and those that move elements of any type.
#include "providers/cpu/loop/integers.h"
#include "providers/cpu/loop/lower.h"

namespace pfrt::cpu {
namespace {

// Operations on the type of input 0, which may be that of output 0 too.
Integers integers(Expression& e, const SnapshotNode& node) {
  return Integers(e, node.input_dtype(0));
}

template <Lanes (Integers::*fn)(Lanes)>
Lanes unary(Expression& e, const SnapshotNode& node, Operands in) {
  return (integers(e, node).*fn)(in[0]);
}

// Applies |fn| from left to right.
template <Lanes (Integers::*fn)(Lanes, Lanes)>
Lanes chained(Expression& e, const SnapshotNode& node, Operands in) {
  Lanes all = in[0];
  for (const Lanes& lanes : in.subspan(1)) all = (integers(e, node).*fn)(all, lanes);
  return all;
}

template <Prim prim>
Lanes bitwise(Expression& e, const SnapshotNode& node, Operands in) {
  return integers(e, node).bits(prim, in[0], in[1]);
}

template <Prim prim>
Lanes of_masks(Expression& e, const SnapshotNode&, Operands in) {
  return {e.op(prim, in[0].low, in[1].low)};
}

Lanes not_mask(Expression& e, const SnapshotNode&, Operands in) { return {mask_not(e, in[0].low)}; }

Lanes equal_masks(Expression& e, const SnapshotNode&, Operands in) {
  return {mask_not(e, e.op(Prim::kXor, in[0].low, in[1].low))};
}

Lanes equal(Expression& e, const SnapshotNode& node, Operands in) {
  return {integers(e, node).equal(in[0], in[1])};
}

template <bool swapped, bool inverted>
Lanes compared(Expression& e, const SnapshotNode& node, Operands in) {
  const Term greater = integers(e, node).greater(in[swapped ? 1 : 0], in[swapped ? 0 : 1]);
  return {inverted ? mask_not(e, greater) : greater};
}

Lanes relu(Expression& e, const SnapshotNode& node, Operands in) {
  Integers integers(e, node.input_dtype(0));
  return integers.max(in[0], integers.number(0));
}

Lanes clip(Expression& e, const SnapshotNode& node, Operands in) {
  Lanes x = in[0];
  if (in.size() > 1 && in[1].low != kNoTerm) x = integers(e, node).max(x, in[1]);
  if (in.size() > 2 && in[2].low != kNoTerm) x = integers(e, node).min(x, in[2]);
  return x;
}

Lanes square(Expression& e, const SnapshotNode& node, Operands in) {
  return integers(e, node).mul(in[0], in[0]);
}

bool exponent_is_integer_two(const SnapshotNode& node) {
  return kInts.has(node.input_dtype(1)) && exponent_is_two(node);
}

Lanes identity(Expression&, const SnapshotNode&, Operands in) { return in[0]; }

Lanes where(Expression& e, const SnapshotNode& node, Operands in) {
  return Integers(e, node.output_dtype(0)).select(in[0].low, in[1], in[2]);
}

constexpr Types kIntegers = kIntLanes | kLongLanes;
constexpr Types kSigned{PFRT_DTYPE_INT8, PFRT_DTYPE_INT16, PFRT_DTYPE_INT32, PFRT_DTYPE_INT64};

constexpr ElementwiseRow kRows[] = {
    {"Identity", kLoopTypes, Form::kAlike, 1, identity, nullptr},
    {"Where", kLoopTypes, Form::kSelect, 3, where, nullptr},
    {"Add", kIntegers, Form::kAlike, 2, chained<&Integers::add>, nullptr},
    {"Sub", kIntegers, Form::kAlike, 2, chained<&Integers::sub>, nullptr},
    {"Mul", kIntegers, Form::kAlike, 2, chained<&Integers::mul>, nullptr},
    {"Max", kIntegers, Form::kAlike, 1, chained<&Integers::max>, nullptr},
    {"Min", kIntegers, Form::kAlike, 1, chained<&Integers::min>, nullptr},
    {"Pow", kIntegers, Form::kPower, 2, square, exponent_is_integer_two},
    {"Neg", kSigned, Form::kAlike, 1, unary<&Integers::negative>, nullptr},
    {"Abs", kIntegers, Form::kAlike, 1, unary<&Integers::magnitude>, nullptr},
    {"Sign", kIntegers, Form::kAlike, 1, unary<&Integers::sign>, nullptr},
    {"Relu", kSigned, Form::kAlike, 1, relu, nullptr},
    {"Clip", kIntegers, Form::kAlike, 1, clip, nullptr},
    {"BitwiseAnd", kIntegers, Form::kAlike, 2, bitwise<Prim::kAnd>, nullptr},
    {"BitwiseOr", kIntegers, Form::kAlike, 2, bitwise<Prim::kOr>, nullptr},
    {"BitwiseXor", kIntegers, Form::kAlike, 2, bitwise<Prim::kXor>, nullptr},
    {"BitwiseNot", kIntegers, Form::kAlike, 1, unary<&Integers::bits_not>, nullptr},
    {"Equal", kIntegers, Form::kTest, 2, equal, nullptr},
    {"Greater", kIntegers, Form::kTest, 2, compared<false, false>, nullptr},
    {"Less", kIntegers, Form::kTest, 2, compared<true, false>, nullptr},
    {"LessOrEqual", kIntegers, Form::kTest, 2, compared<false, true>, nullptr},
    {"GreaterOrEqual", kIntegers, Form::kTest, 2, compared<true, true>, nullptr},
    {"Equal", kBool, Form::kTest, 2, equal_masks, nullptr},
    {"And", kBool, Form::kAlike, 2, of_masks<Prim::kAnd>, nullptr},
    {"Or", kBool, Form::kAlike, 2, of_masks<Prim::kOr>, nullptr},
    {"Xor", kBool, Form::kAlike, 2, of_masks<Prim::kXor>, nullptr},
    {"Not", kBool, Form::kAlike, 1, not_mask, nullptr},
};

}  // namespace

std::span<const ElementwiseRow> integer_rows() { return kRows; }

}  // namespace pfrt::cpu
