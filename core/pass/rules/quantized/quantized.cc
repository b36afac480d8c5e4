// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/quantized/quantized.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/pass/rules/numbers.h"

namespace pfrt {
namespace {

bool is_single(const Editor& editor, ValueId value) {
  const Type& type = editor.type(value);
  return type.has_shape && std::ranges::all_of(type.shape, [](const Dim& d) { return d.is(1); });
}

}  // namespace

IntegerRange range_of(pfrt_dtype dtype) {
  const int bits = static_cast<int>(std::min(dtype_bits(dtype), 32u));
  return dtype_is_signed(dtype)
             ? IntegerRange{-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1}
             : IntegerRange{0, (int64_t{1} << bits) - 1};
}

std::optional<Quantization> quantization(const Editor& editor, const Node& node) {
  const bool back = node.op == "DequantizeLinear";
  if (!node.domain.empty() || (!back && node.op != "QuantizeLinear") || node.inputs.size() < 2 ||
      node.attr_int("block_size", 0) != 0)
    return std::nullopt;
  if (const int64_t precision = node.attr_int("precision", 0);
      precision != 0 && precision != PFRT_DTYPE_FLOAT32)
    return std::nullopt;
  Quantization out;
  out.quantized = back ? node.inputs[0] : kNoId;
  out.scale = node.inputs[1];
  out.zero = node.has_input(2) ? node.inputs[2] : kNoId;
  out.axis = node.attr_int("axis", 1);
  const ValueId real = back ? node.outputs[0] : node.inputs[0];
  out.dtype = editor.type(back ? node.inputs[0] : node.outputs[0]).dtype;
  if (editor.type(real).dtype != PFRT_DTYPE_FLOAT32 || !dtype_is_integer(out.dtype) ||
      editor.type(out.scale).dtype != PFRT_DTYPE_FLOAT32)
    return std::nullopt;
  out.single = is_single(editor, out.scale) && (out.zero == kNoId || is_single(editor, out.zero));
  return out;
}

std::optional<Quantization> dequantized(Editor& editor, ValueId value) {
  const Node* node = value == kNoId ? nullptr : editor.maker(value, "DequantizeLinear");
  return node ? quantization(editor, *node) : std::nullopt;
}

std::optional<std::vector<double>> scales_of(const Editor& editor, const Quantization& q) {
  auto scales = to_doubles(editor.constant(q.scale));
  if (!scales || scales->empty()) return std::nullopt;
  for (const double s : *scales)
    if (!(s >= 1e-37 && s <= 1e30)) return std::nullopt;
  return scales;
}

std::optional<std::vector<int64_t>> zeros_of(const Editor& editor, const Quantization& q) {
  if (q.zero == kNoId) return std::vector<int64_t>{0};
  const Tensor* zeros = editor.constant(q.zero);
  if (!zeros) return std::nullopt;
  std::vector<int64_t> out = to_int64s(*zeros);
  return out.empty() ? std::nullopt : std::optional(std::move(out));
}

Result<ValueId> zero_of(Editor& editor, const Quantization& q) {
  if (q.zero != kNoId) return q.zero;
  PFRT_ASSIGN(Tensor zero, Tensor::allocate(q.dtype, {}));
  return editor.add_constant("zero_point", std::move(zero));
}

Result<ValueId> shared_zero_of(Editor& editor, const Quantization& q) {
  const Tensor* const given = q.zero == kNoId ? nullptr : editor.constant(q.zero);
  const auto zeros = zeros_of(editor, q);
  if (!given || !zeros || zeros->size() < 2 || dtype_bits(q.dtype) != 8 ||
      std::ranges::any_of(*zeros, [&](int64_t z) { return z != zeros->front(); }))
    return zero_of(editor, q);
  PFRT_ASSIGN(Tensor zero, Tensor::allocate(q.dtype, {}));
  std::memcpy(zero.data(), given->data(), 1);
  return editor.add_constant("zero_point", std::move(zero));
}

bool same_quantization(const Editor& editor, const Quantization& a, const Quantization& b) {
  if (a.dtype != b.dtype || dtype_bits(a.dtype) > 16 || a.single != b.single ||
      (!a.single && a.axis != b.axis))
    return false;
  const auto scales = scales_of(editor, a);
  const auto zeros = zeros_of(editor, a);
  if (!scales || !zeros || scales_of(editor, b) != scales) return false;
  auto others = zeros_of(editor, b);
  if (!others) return false;
  // An absent zero point is 0 everywhere.
  const auto zero = [](int64_t z) { return z == 0; };
  return *others == *zeros ||
         (std::ranges::all_of(*zeros, zero) && std::ranges::all_of(*others, zero));
}

}  // namespace pfrt
