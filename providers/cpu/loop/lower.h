// SPDX-License-Identifier: Apache-2.0
//
// The elementwise operators that generated loops know: how each is written as operations of an
// Expression. Results equal the reference kernels' bit for bit where those only add, multiply,
// divide, take roots, round, compare, convert and work on integers and bits. Exp, Sigmoid, Tanh,
// Erf, Gelu and other functions made of exponentials are within a few units in the last place of
// the exact value (README.md says how many). Rows are constants; thread-safe.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "providers/cpu/kernel/types.h"
#include "providers/cpu/loop/expression.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

// A value in vectors: floats of 32 bits and fewer are float32 and integers int32 with the numbers
// of their type, bool is a mask, and int64 has two terms.
struct Lanes {
  Term low = kNoTerm, high = kNoTerm;
};
using Operands = std::span<const Lanes>;

inline constexpr Types kFloatLanes = kFloatsTo32;
inline constexpr Types kIntLanes{PFRT_DTYPE_INT32,  PFRT_DTYPE_INT16,  PFRT_DTYPE_INT8,
                                 PFRT_DTYPE_UINT32, PFRT_DTYPE_UINT16, PFRT_DTYPE_UINT8};
inline constexpr Types kLongLanes{PFRT_DTYPE_INT64, PFRT_DTYPE_UINT64};
inline constexpr Types kLoopTypes = kFloatLanes | kIntLanes | kLongLanes | kBool;

// Relations between the types of a node's values.
enum class Form : uint8_t {
  kAlike,       // all are one type
  kTest,        // inputs are one type, the output is bool
  kPower,       // input 1 may be another
  kSelect,      // input 0 is bool, the others are one type
  kCast,        // to any type
  kQuantize,    // input 0 real or int32, input 1 real, input 2 (may be absent) as the output
  kDequantize,  // input 0 and 2 (may be absent) are one type, input 1 and the output real
};

struct ElementwiseRow {
  std::string_view op;  // of the default domain
  Types types;          // of input 0, or of input 1 where input 0 is a condition
  Form form;
  uint32_t min_inputs;
  // |inputs| by position, terms absent where they are.
  Lanes (*lower)(Expression& expression, const SnapshotNode& node, Operands inputs);
  // Whether the node's attributes and constants fit; may be null.
  bool (*fits)(const SnapshotNode& node);
};

std::span<const ElementwiseRow> float_rows();
std::span<const ElementwiseRow> integer_rows();
std::span<const ElementwiseRow> cast_rows();
std::span<const ElementwiseRow> quantize_rows();
// All of them.
std::array<std::span<const ElementwiseRow>, 4> elementwise_rows();
// The row for a node, or nullptr: another operator, type or form.
const ElementwiseRow* find_elementwise(const SnapshotNode& node);
bool is_quantization(const SnapshotNode& node);
// Dimensions of 1 that the operator broadcasts |input| with, behind its own: those after the axis
// of a scale or zero point. |node| is one that find_elementwise knows.
uint32_t ones_behind(const SnapshotNode& node, uint32_t input);

Lanes input_lanes(Expression& expression, uint16_t slot, pfrt_dtype type);
Lanes scalar_lanes(Expression& expression, uint16_t slot, pfrt_dtype type);
// An element of input |input| where it is a constant whose elements, not too many, are all the
// same; else nullptr.
const void* same_everywhere(const SnapshotNode& node, uint32_t input);
// |element| is one of |type|.
Lanes constant_lanes(Expression& expression, const void* element, pfrt_dtype type);

// Whether input 1 is the constant 2.
bool exponent_is_two(const SnapshotNode& node);

}  // namespace pfrt::cpu
