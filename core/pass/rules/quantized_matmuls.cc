// SPDX-License-Identifier: Apache-2.0
//
// Products of dequantized factors whose result is quantized again become products of integers. The
// sum is then exact, so that results may differ from those of float32 by one step, where a value
// lies between two.
#include <algorithm>
#include <cmath>

#include "core/pass/rules/numbers.h"
#include "core/pass/rules/quantized.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// A bias is as good as whole steps of the product when it is off by less than this much of one.
constexpr double kWhole = 1e-2;
constexpr int64_t kLargestSum = int64_t{1} << 31;

// A product of two dequantized factors, perhaps with a bias, in front of a QuantizeLinear.
struct QuantizedProduct {
  Node* node = nullptr;  // Conv, MatMul or Gemm
  Quantization a, b, out;
  ValueId bias = kNoId;  // of numbers
  int64_t depth = 0;     // terms of a sum
};

std::optional<int64_t> known(const Type& type, size_t axis) {
  if (!type.has_shape || axis >= type.shape.size() || !type.shape[axis].known())
    return std::nullopt;
  return type.shape[axis].value();
}

bool is_byte(pfrt_dtype dtype) { return dtype == PFRT_DTYPE_INT8 || dtype == PFRT_DTYPE_UINT8; }

// The terms of one sum: all of a filter, or the rows of the right matrix.
std::optional<int64_t> depth_of(const Editor& editor, const Node& node, ValueId weights) {
  const Type& type = editor.type(weights);
  if (!type.has_shape) return std::nullopt;
  if (node.op != "Conv") {
    const bool swapped = node.op == "Gemm" && node.attr_int("transB", 0) != 0;
    return type.shape.size() < 2 ? std::nullopt
                                 : known(type, type.shape.size() - (swapped ? 1 : 2));
  }
  int64_t depth = 1;
  for (size_t i = 1; i < type.shape.size(); ++i) {
    const auto size = known(type, i);
    if (!size || *size > kLargestSum) return std::nullopt;
    depth *= *size;
    if (depth > kLargestSum) return std::nullopt;
  }
  return depth;
}

// The axis of the weights that the output's channels are.
int64_t channel_axis(const Editor& editor, const Node& node, ValueId weights) {
  if (node.op == "Conv") return 0;
  if (node.op == "Gemm") return node.attr_int("transB", 0) != 0 ? 0 : 1;
  return static_cast<int64_t>(editor.rank(weights).value_or(2)) - 1;
}

std::optional<QuantizedProduct> product_before(Editor& editor, const Node& quantize) {
  QuantizedProduct p;
  const auto out = quantization(editor, quantize);
  if (!out || !out->single || !is_byte(out->dtype)) return std::nullopt;
  p.out = *out;
  Node* node = editor.producer(quantize.inputs[0]);
  if (!node || !node->domain.empty() || !editor.only_used_by(quantize.inputs[0], quantize))
    return std::nullopt;
  if (node->op == "Add" && node->inputs.size() == 2) {
    for (const size_t side : {0u, 1u}) {
      Node* made = editor.maker(node->inputs[side], "MatMul");
      if (!made || !editor.only_used_by(node->inputs[side], *node) ||
          !editor.same_type(made->outputs[0], node->outputs[0]))
        continue;
      p.bias = node->inputs[1 - side];
      p.node = made;
      break;
    }
  } else if (node->op == "Conv" || node->op == "MatMul") {
    p.node = node;
    if (node->has_input(2)) p.bias = node->inputs[2];
  } else if (node->op == "Gemm" && node->attr_float("alpha", 1) == 1 &&
             node->attr_int("transA", 0) == 0) {
    p.node = node;
    if (node->has_input(2)) {
      if (node->attr_float("beta", 1) != 1) return std::nullopt;
      p.bias = node->inputs[2];
    }
  }
  if (!p.node || p.node->inputs.size() < 2) return std::nullopt;
  const auto a = dequantized(editor, p.node->inputs[0]), b = dequantized(editor, p.node->inputs[1]);
  if (!a || !b || !a->single || !is_byte(a->dtype) || !is_byte(b->dtype)) return std::nullopt;
  p.a = *a;
  p.b = *b;
  const std::optional<size_t> rank = editor.rank(b->quantized);
  if (!rank || *rank < 2) return std::nullopt;
  if (!b->single) {
    const int64_t axis = b->axis < 0 ? b->axis + static_cast<int64_t>(*rank) : b->axis;
    if (axis != channel_axis(editor, *p.node, b->quantized)) return std::nullopt;
    if (p.node->op == "MatMul" && *rank != 2) return std::nullopt;
  }
  const auto depth = depth_of(editor, *p.node, b->quantized);
  if (!depth || *depth > kLargestSum / (255 * 255)) return std::nullopt;
  p.depth = *depth;
  return p;
}

// The scale of a sum, one or one a channel.
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

// Whether the last axis is all there is.
bool is_list(const Tensor& tensor) {
  return tensor.dims.empty() || tensor.count() == tensor.dims.back();
}

// The numbers of a constant list, dequantized or not.
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

// The bias as int32 in steps of the sum, of |channels|; nullopt when it is none of those.
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
    if (!(std::fabs(whole) < most) || std::fabs(steps - whole) > kWhole)
      return std::optional<Tensor>();
    out.as<int32_t>()[i] = static_cast<int32_t>(whole);
  }
  return std::optional(std::move(out));
}

// The zero point, which the integer operators want to see.
Result<ValueId> zero_of(Editor& editor, const Quantization& q) {
  if (q.zero != kNoId) return q.zero;
  PFRT_ASSIGN(Tensor zero, Tensor::allocate(q.dtype, {}));
  return editor.add_constant("zero_point", std::move(zero));
}

bool refused(Editor& editor, const Node& node, const RuleContext& context) {
  return context.check_support && context.pass.refuses &&
         !context.pass.refuses(editor.graph(), node, {}, context.target).empty();
}

// {a, its scale and zero point, b, its scale and zero point, the output's scale and zero point}.
Result<std::vector<ValueId>> operands(Editor& editor, const QuantizedProduct& p) {
  PFRT_ASSIGN(const ValueId a, zero_of(editor, p.a));
  PFRT_ASSIGN(const ValueId b, zero_of(editor, p.b));
  PFRT_ASSIGN(const ValueId out, zero_of(editor, p.out));
  return std::vector<ValueId>{p.a.quantized, p.a.scale, a,           p.b.quantized,
                              p.b.scale,     b,         p.out.scale, out};
}

Result<bool> convolution(Editor& editor, Node& node, const RuleContext& context) {
  const auto p = product_before(editor, node);
  if (!p || p->node->op != "Conv") return false;
  const auto channels = known(editor.type(p->b.quantized), 0);
  if (!channels) return false;
  std::optional<Tensor> bias;
  if (p->bias != kNoId) {
    PFRT_ASSIGN(bias, bias_steps(editor, *p, static_cast<size_t>(*channels)));
    if (!bias) return false;
  }
  Node made;
  made.op = "QLinearConv";
  made.canonical = true;
  made.attrs = p->node->attrs;
  PFRT_ASSIGN(made.inputs, operands(editor, *p));
  made.outputs = node.outputs;  // for the question: it has their type
  if (refused(editor, made, context)) return false;
  if (bias) made.inputs.push_back(editor.add_constant("bias", std::move(*bias)));
  const ValueId out = node.outputs[0];
  const std::string stem = p->node->name;
  PFRT_ASSIGN(const std::vector<ValueId> outputs, editor.add_node(std::move(made), stem));
  editor.replace(out, outputs[0]);
  return true;
}

// Gemm's second factor as MatMul has it.
Result<ValueId> right_factor(Editor& editor, const QuantizedProduct& p) {
  if (p.node->op != "Gemm" || p.node->attr_int("transB", 0) == 0) return p.b.quantized;
  return editor.add("Transpose", p.node->name, {p.b.quantized},
                    {Attribute::of_ints("perm", {1, 0})});
}

Result<bool> matmul(Editor& editor, Node& node, const RuleContext& context) {
  const auto p = product_before(editor, node);
  if (!p || p->node->op == "Conv" || p->bias != kNoId) return false;
  Node made;
  made.op = "QLinearMatMul";
  made.canonical = true;
  PFRT_ASSIGN(made.inputs, operands(editor, *p));
  made.outputs = node.outputs;
  if (refused(editor, made, context)) return false;
  const ValueId out = node.outputs[0];
  const std::string stem = p->node->name;
  PFRT_ASSIGN(made.inputs[3], right_factor(editor, *p));
  PFRT_ASSIGN(const std::vector<ValueId> outputs, editor.add_node(std::move(made), stem));
  editor.replace(out, outputs[0]);
  return true;
}

// There is no such operator with a bias: sums, the bias in their steps, and one scale.
Result<bool> matmul_and_bias(Editor& editor, Node& node, const RuleContext& context) {
  const auto p = product_before(editor, node);
  if (!p || p->node->op == "Conv" || p->bias == kNoId) return false;
  const bool swapped = p->node->op == "Gemm" && p->node->attr_int("transB", 0) != 0;
  const Type& weights = editor.type(p->b.quantized);
  const auto columns = known(weights, weights.shape.size() - (swapped ? 2 : 1));
  const auto scales = sum_scales(editor, *p);
  if (!columns || !scales) return false;
  PFRT_ASSIGN(std::optional<Tensor> bias, bias_steps(editor, *p, static_cast<size_t>(*columns)));
  if (!bias) return false;
  Node sums;
  sums.op = "MatMulInteger";
  sums.canonical = true;
  PFRT_ASSIGN(const std::vector<ValueId> all, operands(editor, *p));
  sums.inputs = {all[0], all[3], all[2], all[5]};
  sums.outputs = node.outputs;
  if (refused(editor, sums, context)) return false;
  const std::string stem = p->node->name;
  PFRT_ASSIGN(sums.inputs[1], right_factor(editor, *p));
  Dims dims;
  if (!p->b.single) dims.push_back(static_cast<int64_t>(scales->size()));
  PFRT_ASSIGN(Tensor factors, from_doubles(PFRT_DTYPE_FLOAT32, std::move(dims), *scales));
  PFRT_ASSIGN(const std::vector<ValueId> sum, editor.add_node(std::move(sums), stem));
  PFRT_ASSIGN(const ValueId shifted,
              editor.add("Add", stem, {sum[0], editor.add_constant("bias", std::move(*bias))}));
  PFRT_ASSIGN(const ValueId real, editor.add("Cast", stem, {shifted},
                                             {Attribute::of_int("to", PFRT_DTYPE_FLOAT32),
                                              Attribute::of_int("saturate", 1)}));
  PFRT_ASSIGN(const ValueId scaled,
              editor.add("Mul", stem, {real, editor.add_constant("scale", std::move(factors))}));
  editor.set_input(node, 0, scaled);
  PFRT_TRY(editor.changed(node));
  return true;
}

constexpr Rule kQuantizedMatmulsRules[] = {
    {"QLinearConv", "QuantizeLinear",
     "DequantizeLinear of both factors, Conv, QuantizeLinear -> QLinearConv", kExtended, true,
     convolution},
    {"QLinearMatMul", "QuantizeLinear",
     "DequantizeLinear of both factors, MatMul or Gemm, QuantizeLinear -> QLinearMatMul", kExtended,
     true, matmul},
    {"QGemm", "QuantizeLinear",
     "DequantizeLinear of both factors, Gemm or MatMul and Add, QuantizeLinear -> MatMulInteger, "
     "Add, Cast, Mul, QuantizeLinear",
     kExtended, true, matmul_and_bias},
};

}  // namespace

std::span<const Rule> quantized_matmul_rules() { return kQuantizedMatmulsRules; }

}  // namespace pfrt
