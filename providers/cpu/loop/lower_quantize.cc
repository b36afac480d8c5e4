// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear with a scale and zero point for the tensor, or for each index
// of an axis, with the results of the reference kernels (kernels/quantize/linear.cc).
#include <optional>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/step_reciprocal.h"
#include "providers/cpu/loop/integers.h"
#include "providers/cpu/loop/lower.h"
#include "providers/cpu/loop/maths.h"

namespace pfrt::cpu {
namespace {

constexpr Types kReal = kFloatLanes | Types{PFRT_DTYPE_INT32};
constexpr Types kSteps{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8, PFRT_DTYPE_INT16, PFRT_DTYPE_UINT16,
                       PFRT_DTYPE_INT32};

bool is_single(const SnapshotNode& node, uint32_t input) {
  return node.input_rank(input) >= 0 && node.input_elements(input) == 1;
}

// The zero point where it is one number that is known, or absent.
std::optional<int64_t> constant_zero(const SnapshotNode& node) {
  if (!node.has_input(2)) return 0;
  const void* const zero = same_everywhere(node, 2);
  if (zero == nullptr) return std::nullopt;
  int64_t number;
  load_block(node.input_dtype(2), zero, 1, &number);
  return number;
}

// The type that quotients are rounded to.
pfrt_dtype quotient_type(const SnapshotNode& node) {
  const int64_t precision = node.attr_int("precision", 0);
  if (precision == 0) return node.input_dtype(1);
  return precision > 0 && precision < 64 ? static_cast<pfrt_dtype>(precision)
                                         : pfrt_dtype{PFRT_DTYPE_UNSET};
}

bool parameters_fit(const SnapshotNode& node) {
  const bool zero = node.has_input(2);
  if (is_single(node, 1)) return !zero || is_single(node, 2);
  if (node.attr_int("block_size", 0) != 0 || node.input_rank(1) != 1) return false;
  if (zero && (node.input_rank(2) != 1 || node.input_dims(2)[0] != node.input_dims(1)[0]))
    return false;
  const int64_t rank = node.input_rank(0), axis = node.attr_int("axis", 1);
  if (rank < 0 || axis < -rank || axis >= rank) return false;
  const int64_t length = node.input_dims(0)[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  // Scales or zero points that are all equal become constants of the code and are not checked again
  // once dimensions are known. So with these the length has to be known now.
  if (length < 0) return same_everywhere(node, 1) == nullptr && same_everywhere(node, 2) == nullptr;
  return length == node.input_dims(1)[0];
}

bool quantize_fits(const SnapshotNode& node) {
  return kFloatLanes.has(quotient_type(node)) && parameters_fit(node);
}

// Differences of int32 may need 33 bits.
bool dequantize_fits(const SnapshotNode& node) {
  const bool wide = node.input_dtype(0) == PFRT_DTYPE_INT32;
  return parameters_fit(node) && (!wide || constant_zero(node) == 0);
}

// The reciprocal of a constant scale, for results of bytes.
std::optional<StepReciprocal> constant_reciprocal(const SnapshotNode& node, int64_t least,
                                                  int64_t most) {
  const void* const scale = same_everywhere(node, 1);
  const bool bytes = dtype_size(node.output_dtype(0)) == 1;
  if (scale == nullptr || !bytes || quotient_type(node) != PFRT_DTYPE_FLOAT32) return std::nullopt;
  float by;
  load_block(node.input_dtype(1), scale, 1, &by);
  return StepReciprocal::make(by, least, most);
}

// Numbers as steps within bounds, where the scale and the zero point are constants.
Term bounded_steps(Maths m, const StepReciprocal& by, bool nan_stays, Term x, int64_t least,
                   int64_t most) {
  // The numbers of the first and the last step.
  const Term low = m.number(static_cast<float>(least) * by.scale);
  const Term high = m.number(static_cast<float>(most) * by.scale);
  const Term bounded = m.at_most(high, nan_stays ? m.at_least(low, x) : m.max_or_second(x, low));
  return m.fma(bounded, m.number(by.high), m.mul(bounded, m.number(by.low)));
}

// The nearest whole numbers and the zero point; 0 where |numbers|, if it is there, is not set.
Term with_zero(Expression& e, Term steps, int64_t zero, Term numbers) {
  Term out = e.op(Prim::kNearest, steps);
  if (zero != 0) out = e.op(Prim::kIntAdd, out, e.constant_bits(static_cast<uint32_t>(zero)));
  return numbers == kNoTerm ? out : e.op(Prim::kAnd, out, numbers);
}

// Numbers out of range are first bounded so that the zero point brings them to the range's end. NaN
// is 0 of every type.
Lanes quantize(Expression& e, const SnapshotNode& node, Operands in) {
  Maths m(e);
  const pfrt_dtype type = node.output_dtype(0), quotient = quotient_type(node);
  const bool whole = node.input_dtype(0) == PFRT_DTYPE_INT32;
  const Term x = whole ? e.op(Prim::kToFloat, in[0].low) : in[0].low;
  const std::optional<int64_t> zero = constant_zero(node);
  const int64_t low = lowest_of<int64_t>(type), high = highest_of<int64_t>(type);
  const bool is_signed = kSignedInts.has(type);
  if (zero)
    if (const auto by = constant_reciprocal(node, low - *zero, high - *zero)) {
      const Term steps = bounded_steps(m, *by, is_signed, x, low - *zero, high - *zero);
      return {with_zero(e, steps, *zero, is_signed ? m.equal(x, x) : kNoTerm)};
    }
  const auto as_quotient = [&](Term t, pfrt_dtype from) {
    return from == quotient ? t : m.rounded(t, quotient);
  };
  const Term steps = m.rounded(
      m.div(as_quotient(x, node.input_dtype(0)), as_quotient(in[1].low, node.input_dtype(1))),
      quotient);
  Term least, most;
  if (zero) {
    least = m.number(static_cast<float>(low - *zero));
    most = m.number(static_cast<float>(high - *zero));
  } else {
    const Term from = e.op(Prim::kToFloat, in[2].low);
    least = m.sub(m.number(static_cast<float>(low)), from);
    most = m.sub(m.number(static_cast<float>(high)), from);
  }
  const Term raised = is_signed ? m.at_least(least, steps) : m.max_or_second(steps, least);
  const Term bounded = m.at_most(most, raised);
  const Term numbers = is_signed ? m.equal(steps, steps) : kNoTerm;
  if (zero) return {with_zero(e, bounded, *zero, numbers)};
  const Term out = e.op(Prim::kIntAdd, e.op(Prim::kNearest, bounded), in[2].low);
  return {numbers == kNoTerm ? out : e.op(Prim::kAnd, out, numbers)};
}

Lanes dequantize(Expression& e, const SnapshotNode& node, Operands in) {
  Maths m(e);
  const std::optional<int64_t> zero = constant_zero(node);
  Term steps = in[0].low;
  if (!zero)
    steps = e.op(Prim::kIntSub, steps, in[2].low);
  else if (*zero != 0)
    steps = e.op(Prim::kIntSub, steps, e.constant_bits(static_cast<uint32_t>(*zero)));
  return {m.rounded(m.mul(e.op(Prim::kToFloat, steps), in[1].low), node.output_dtype(0))};
}

constexpr ElementwiseRow kRows[] = {
    {"QuantizeLinear", kReal, Form::kQuantize, 2, quantize, quantize_fits},
    {"DequantizeLinear", kSteps, Form::kDequantize, 2, dequantize, dequantize_fits},
};

}  // namespace

std::span<const ElementwiseRow> quantize_rows() { return kRows; }

}  // namespace pfrt::cpu
