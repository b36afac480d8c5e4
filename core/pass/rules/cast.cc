// SPDX-License-Identifier: Apache-2.0
//
// Joins chains of Cast into one where the first of two loses nothing.
#include "core/base/dtype.h"
#include "core/pass/rules/moves.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Bits of the largest range of integers around 0 that a type has without gaps, its sign aside, and
// whether it has one; 0 for types that are left alone.
struct Extent {
  int bits = 0;
  bool negative = false, fractions = false;
  int exponent = 0;  // of floats, in bits
};

Extent extent(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_BOOL:
      return {1, false, false, 0};
    case PFRT_DTYPE_UINT8:
      return {8, false, false, 0};
    case PFRT_DTYPE_UINT16:
      return {16, false, false, 0};
    case PFRT_DTYPE_UINT32:
      return {32, false, false, 0};
    case PFRT_DTYPE_UINT64:
      return {64, false, false, 0};
    case PFRT_DTYPE_INT8:
      return {7, true, false, 0};
    case PFRT_DTYPE_INT16:
      return {15, true, false, 0};
    case PFRT_DTYPE_INT32:
      return {31, true, false, 0};
    case PFRT_DTYPE_INT64:
      return {63, true, false, 0};
    case PFRT_DTYPE_FLOAT16:
      return {11, true, true, 5};
    case PFRT_DTYPE_BFLOAT16:
      return {8, true, true, 8};
    case PFRT_DTYPE_FLOAT32:
      return {24, true, true, 8};
    case PFRT_DTYPE_FLOAT64:
      return {53, true, true, 11};
    default:
      return {};
  }
}

// Whether every number of |from| is one of |to|.
bool holds_all(pfrt_dtype from, pfrt_dtype to) {
  const Extent a = extent(from), b = extent(to);
  if (a.bits == 0 || b.bits == 0 || a.bits > b.bits) return false;
  if (a.negative && !b.negative) return false;
  return !a.fractions || (b.fractions && a.exponent <= b.exponent);
}

Result<bool> cast_of_cast(Editor& editor, Node& node, const RuleContext&) {
  const Node* first = editor.maker(node.inputs[0], "Cast");
  if (!first) return false;
  const ValueId source = first->inputs[0];
  const pfrt_dtype from = editor.type(source).dtype, between = editor.type(node.inputs[0]).dtype,
                   to = static_cast<pfrt_dtype>(node.attr_int("to", 0));
  // Small floats and text are written from the type in between.
  if (!holds_all(from, between) || extent(to).bits == 0) return false;
  // Integers that do not fit wrap around when cast from integers, but not when cast from floats.
  const bool by_float = !extent(from).fractions && extent(between).fractions;
  if (by_float && !extent(to).fractions && to != PFRT_DTYPE_BOOL && !holds_all(from, to))
    return false;
  editor.set_input(node, 0, source);
  PFRT_TRY(editor.changed(node));
  return true;
}

constexpr Rule kCastRules[] = {
    {"CastOfCast", "Cast", "Cast that loses nothing, Cast -> Cast", OptLevel::kExtended, true,
     cast_of_cast},
};

}  // namespace

std::span<const Rule> cast_rules() { return kCastRules; }

}  // namespace pfrt
