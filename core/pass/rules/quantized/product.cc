// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/quantized/product.h"

#include <algorithm>
#include <cmath>

#include "core/pass/rules/numbers.h"

namespace pfrt {
namespace {

// Largest deviation of a bias from whole steps of the product, in steps, or relative to the bias,
// as its rounding to float32.
constexpr double kWhole = 1e-2, kRounding = 0x1p-23;

bool is_conv(const Node& node) { return node.op == "Conv" || node.op == "ConvTranspose"; }

bool is_byte(pfrt_dtype dtype) { return dtype == PFRT_DTYPE_INT8 || dtype == PFRT_DTYPE_UINT8; }

// An upper bound for the number of terms of a sum: all of a filter, or the rows of the right
// matrix.
std::optional<int64_t> depth_of(const Editor& editor, const Node& node, ValueId weights) {
  const Type& type = editor.type(weights);
  if (!type.has_shape) return std::nullopt;
  if (!is_conv(node)) {
    const bool swapped = node.op == "Gemm" && node.attr_int("transB", 0) != 0;
    return type.shape.size() < 2 ? std::nullopt
                                 : known_dim(type, type.shape.size() - (swapped ? 1 : 2));
  }
  int64_t depth = 1;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (i == (node.op == "Conv" ? 0 : 1)) continue;
    const auto size = known_dim(type, i);
    if (!size || *size > kLargestSum) return std::nullopt;
    depth *= *size;
    if (depth > kLargestSum) return std::nullopt;
  }
  return depth;
}

// The axis of the weights that has the output's channels.
int64_t channel_axis(const Editor& editor, const Node& node, ValueId weights) {
  if (is_conv(node)) return node.op == "Conv" ? 0 : 1;
  if (node.op == "Gemm") return node.attr_int("transB", 0) != 0 ? 0 : 1;
  return static_cast<int64_t>(editor.rank(weights).value_or(2)) - 1;
}

// The reason why factor |real| does not fit a product as |quantized|; nullptr when it does.
const char* lacks(Editor& editor, ValueId real, const std::optional<Quantization>& quantized) {
  if (real == kNoId || !editor.maker(real, "DequantizeLinear")) return " is not quantized";
  if (!quantized) return " is quantized in blocks, or not between float32 and integers";
  return is_byte(quantized->dtype) ? nullptr : " is not of 8 bits";
}

// The steps in the range of |to| that |node|, a Relu or Clip with known limits, leaves.
std::optional<Cut> cut_of(const Editor& editor, const Node& node, const Quantization& to) {
  const auto scales = scales_of(editor, to);
  const auto zeros = zeros_of(editor, to);
  if (!node.domain.empty() || (node.op != "Relu" && node.op != "Clip") || !scales || !zeros)
    return std::nullopt;
  const IntegerRange range = range_of(to.dtype);
  Cut cut{&node, range.low, range.high};
  const auto step_of = [&](double x) {
    // QuantizeLinear computes the same.
    const auto steps = static_cast<float>(x) / static_cast<float>(scales->front());
    const double whole = std::nearbyint(static_cast<double>(steps));
    return static_cast<int64_t>(std::clamp(whole + static_cast<double>(zeros->front()),
                                           static_cast<double>(range.low),
                                           static_cast<double>(range.high)));
  };
  if (node.op == "Relu") {
    cut.low = step_of(0);
    return cut;
  }
  for (const size_t i : {1u, 2u}) {
    if (!node.has_input(i)) continue;
    const auto limit = scalar_of(editor.constant(node.inputs[i]));
    if (!limit || std::isnan(*limit)) return std::nullopt;
    (i == 1 ? cut.low : cut.high) = step_of(*limit);
  }
  return cut.low <= cut.high ? std::optional(cut) : std::nullopt;
}

// Whether all dimensions except the last are 1.
bool is_list(const Tensor& tensor) {
  return tensor.dims.empty() || tensor.count() == tensor.dims.back();
}

}  // namespace

bool is_product(const Node& node) {
  return node.domain.empty() && (is_conv(node) || node.op == "MatMul" || node.op == "Gemm");
}

std::optional<int64_t> known_dim(const Type& type, size_t axis) {
  if (!type.has_shape || axis >= type.shape.size() || !type.shape[axis].known())
    return std::nullopt;
  return type.shape[axis].value();
}

std::optional<QuantizedProduct> product_of(Editor& editor, Node& node, std::string* why) {
  if (!is_product(node) || node.inputs.size() < 2)
    return refuse_because(why, "there are no integers for ", node.op);
  QuantizedProduct p;
  p.node = &node;
  if (node.has_input(2)) p.bias = node.inputs[2];
  if (node.op == "Gemm") {
    const bool plain = node.attr_float("alpha", 1) == 1 && node.attr_int("transA", 0) == 0;
    if (!plain || (p.bias != kNoId && node.attr_float("beta", 1) != 1))
      return refuse_because(why, "alpha or beta is not 1, or transA is set");
  }
  const auto a = dequantized(editor, node.inputs[0]), b = dequantized(editor, node.inputs[1]);
  if (const char* const what = lacks(editor, node.inputs[0], a))
    return refuse_because(why, "the first factor", what);
  if (const char* const what = lacks(editor, node.inputs[1], b))
    return refuse_because(why, "the second factor", what);
  if (!a->single) return refuse_because(why, "the first factor has more than one scale");
  p.a = *a;
  p.b = *b;
  const std::optional<size_t> rank = editor.rank(b->quantized);
  if (!rank || *rank < 2)
    return refuse_because(why, "the second factor's rank is not known, or below 2");
  if (!b->single) {
    const int64_t axis = b->axis < 0 ? b->axis + static_cast<int64_t>(*rank) : b->axis;
    if (axis != channel_axis(editor, node, b->quantized))
      return refuse_because(why, "scales of the second factor lie along axis ", axis,
                            ", which is not that of the output's channels");
    if (node.op == "MatMul" && *rank != 2)
      return refuse_because(why, "several matrices have a scale a column");
  }
  const auto depth = depth_of(editor, node, b->quantized);
  if (!depth || *depth > kLargestSum / (255 * 255))
    return refuse_because(why, "the number of terms of a sum is not known, or too large for int32");
  p.depth = *depth;
  return p;
}

std::optional<QuantizedProduct> product_before(Editor& editor, const Node& quantize,
                                               std::optional<Cut>& cut) {
  const auto out = quantization(editor, quantize);
  if (!out || !out->single || !is_byte(out->dtype)) return std::nullopt;
  const Node* user = &quantize;
  Node* node = editor.producer(quantize.inputs[0]);
  if (node && !is_product(*node)) {
    cut = cut_of(editor, *node, *out);
    if (!cut || !editor.only_used_by(quantize.inputs[0], quantize)) return std::nullopt;
    user = node;
    node = editor.producer(node->inputs[0]);
  }
  if (!node || !editor.only_used_by(user->inputs[0], *user)) return std::nullopt;
  auto p = product_of(editor, *node);
  if (p) p->out = *out;
  return p;
}

Result<ValueId> cut_steps(Editor& editor, const Cut& cut, pfrt_dtype dtype, ValueId steps) {
  const auto limit = [&](int64_t step) -> Result<ValueId> {
    PFRT_ASSIGN(Tensor tensor, Tensor::allocate(dtype, {}));
    *static_cast<uint8_t*>(tensor.data()) = static_cast<uint8_t>(step);  // a byte of either sign
    return editor.add_constant("limit", std::move(tensor));
  };
  // Steps and numbers have the same order.
  PFRT_ASSIGN(const ValueId low, limit(cut.low));
  PFRT_ASSIGN(const ValueId high, limit(cut.high));
  return editor.add("Clip", cut.node->name, {steps, low, high});
}

std::optional<std::vector<double>> sum_scales(const Editor& editor, const QuantizedProduct& p) {
  const auto a = scales_of(editor, p.a);
  auto b = scales_of(editor, p.b);
  if (!a || !b) return std::nullopt;
  for (double& s : *b) {
    s *= a->front();
    if (!(s > 1e-37)) return std::nullopt;
  }
  return b;
}

std::optional<std::vector<double>> numbers_of(Editor& editor, ValueId value) {
  if (const Tensor* tensor = editor.constant(value))
    return is_list(*tensor) ? to_doubles(tensor) : std::nullopt;
  const auto q = dequantized(editor, value);
  if (!q) return std::nullopt;
  const auto scales = to_doubles(editor.constant(q->scale));
  const auto zeros = zeros_of(editor, *q);
  const Tensor* steps = editor.constant(q->quantized);
  if (!scales || !zeros || scales->empty() || !steps || !is_list(*steps)) return std::nullopt;
  const std::vector<int64_t> whole = to_int64s(*steps);
  std::vector<double> out;
  for (size_t i = 0; i < whole.size(); ++i)
    out.push_back(static_cast<double>(whole[i] - (*zeros)[i % zeros->size()]) *
                  (*scales)[i % scales->size()]);
  return out;
}

Result<std::optional<Tensor>> bias_steps(Editor& editor, const QuantizedProduct& p,
                                         size_t channels) {
  const auto scales = sum_scales(editor, p);
  auto numbers = numbers_of(editor, p.bias);
  if (!scales || !numbers || (numbers->size() != channels && numbers->size() != 1))
    return std::optional<Tensor>();
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_INT32, {static_cast<int64_t>(channels)}));
  for (size_t i = 0; i < channels; ++i) {
    const double steps = (*numbers)[i % numbers->size()] / (*scales)[i % scales->size()];
    const double whole = std::nearbyint(steps);
    const double most = static_cast<double>(kLargestSum - p.depth * 255 * 255);
    const double close = kWhole + std::fabs(steps) * kRounding;
    if (!(std::fabs(whole) < most) || !(std::fabs(steps - whole) <= close))
      return std::optional<Tensor>();
    out.as<int32_t>()[i] = static_cast<int32_t>(whole);
  }
  return std::optional(std::move(out));
}

Result<std::vector<ValueId>> product_operands(Editor& editor, const QuantizedProduct& p) {
  PFRT_ASSIGN(const ValueId a, zero_of(editor, p.a));
  PFRT_ASSIGN(const ValueId b, zero_of(editor, p.b));
  PFRT_ASSIGN(const ValueId out, zero_of(editor, p.out));
  return std::vector<ValueId>{p.a.quantized, p.a.scale, a,           p.b.quantized,
                              p.b.scale,     b,         p.out.scale, out};
}

bool is_refused(Editor& editor, const Node& node, const RuleContext& context) {
  return context.check_support && context.pass.refuses &&
         !context.pass.refuses(editor.graph(), node, {}, context.target).empty();
}

}  // namespace pfrt
