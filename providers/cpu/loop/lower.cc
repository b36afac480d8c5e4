// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/loop/lower.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/convert.h"

namespace pfrt::cpu {
namespace {

const ElementwiseRow* find_row(std::string_view op, pfrt_dtype type) {
  for (const std::span<const ElementwiseRow> rows : elementwise_rows())
    for (const ElementwiseRow& row : rows)
      if (row.types.has(type) && row.op == op) return &row;
  return nullptr;
}

bool types_fit_quantized(const SnapshotNode& node, Form form) {
  const bool back = form == Form::kDequantize;
  const pfrt_dtype steps = back ? node.input_dtype(0) : node.output_dtype(0);
  if (!node.has_input(0) || !kFloatLanes.has(node.input_dtype(1))) return false;
  if (node.has_input(2) && node.input_dtype(2) != steps) return false;
  return back ? kFloatLanes.has(node.output_dtype(0))
              : kIntLanes.has(steps) && dtype_size(steps) < 4;
}

bool types_fit(const SnapshotNode& node, Form form, pfrt_dtype type) {
  if (form == Form::kQuantize || form == Form::kDequantize) return types_fit_quantized(node, form);
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    const bool may_be_absent = i > 0 && node.op() == "Clip";
    if (!node.has_input(i)) {
      if (!may_be_absent) return false;
      continue;
    }
    const bool condition = form == Form::kSelect && i == 0;
    const bool any = form == Form::kPower && i == 1;
    const pfrt_dtype wanted = condition ? pfrt_dtype{PFRT_DTYPE_BOOL} : type;
    if (any ? !kLoopTypes.has(node.input_dtype(i)) : node.input_dtype(i) != wanted) return false;
  }
  const pfrt_dtype out = node.output_dtype(0);
  if (form == Form::kCast) return kLoopTypes.has(out);
  return out == (form == Form::kTest ? pfrt_dtype{PFRT_DTYPE_BOOL} : type);
}

}  // namespace

std::array<std::span<const ElementwiseRow>, 4> elementwise_rows() {
  return {float_rows(), integer_rows(), cast_rows(), quantize_rows()};
}

const ElementwiseRow* find_elementwise(const SnapshotNode& node) {
  if (!node.domain().empty() || node.output_count() != 1 || !node.has_output(0)) return nullptr;
  const pfrt_dtype type = node.input_dtype(node.op() == "Where" ? 1 : 0);
  const ElementwiseRow* row = find_row(node.op(), type);
  if (row == nullptr || node.input_count() < row->min_inputs) return nullptr;
  if (!types_fit(node, row->form, type)) return nullptr;
  return row->fits == nullptr || row->fits(node) ? row : nullptr;
}

bool is_quantization(const SnapshotNode& node) {
  return node.op() == "QuantizeLinear" || node.op() == "DequantizeLinear";
}

uint32_t ones_behind(const SnapshotNode& node, uint32_t input) {
  if (!is_quantization(node) || input == 0 || node.input_elements(input) == 1) return 0;
  const int64_t rank = node.input_rank(0), axis = node.attr_int("axis", 1);
  return static_cast<uint32_t>(axis < 0 ? -axis - 1 : rank - 1 - axis);
}

Lanes input_lanes(Expression& expression, uint16_t slot, pfrt_dtype type) {
  const Term low = expression.input(slot, type);
  return {low, kLongLanes.has(type) ? expression.input_high(slot, type) : kNoTerm};
}

Lanes scalar_lanes(Expression& expression, uint16_t slot, pfrt_dtype type) {
  const Term low = expression.scalar(slot, type);
  return {low, kLongLanes.has(type) ? low : kNoTerm};
}

Lanes constant_lanes(Expression& expression, const void* element, pfrt_dtype type) {
  if (kFloatLanes.has(type)) {
    float number;
    load_block(type, element, 1, &number);
    return {expression.constant(number)};
  }
  int64_t number;
  load_block(type, element, 1, &number);
  if (kLongLanes.has(type)) {
    const Term both = expression.constant_long(static_cast<uint64_t>(number));
    return {both, both};
  }
  if (type == PFRT_DTYPE_BOOL) number = -number;
  return {expression.constant_bits(static_cast<uint32_t>(number))};
}

const void* same_everywhere(const SnapshotNode& node, uint32_t input) {
  constexpr int64_t kMost = 1 << 16;
  const void* const data = node.has_input(input) ? node.input_constant(input) : nullptr;
  const int64_t count = data != nullptr ? node.input_elements(input) : 0;
  const size_t size = dtype_size(node.input_dtype(input));
  if (count < 1 || count > kMost || size == 0) return nullptr;
  const auto* const bytes = static_cast<const char*>(data);
  const size_t rest = static_cast<size_t>(count - 1) * size;
  return std::memcmp(bytes, bytes + size, rest) == 0 ? data : nullptr;
}

bool exponent_is_two(const SnapshotNode& node) {
  const void* const exponent = node.input_constant(1);
  if (exponent == nullptr || node.input_elements(1) != 1) return false;
  double number;
  load_block(node.input_dtype(1), exponent, 1, &number);
  return number == 2;
}

}  // namespace pfrt::cpu
