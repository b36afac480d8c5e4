// SPDX-License-Identifier: Apache-2.0
// Makes products of dequantized factors products of integers. The sum is then exact, so that
// results may differ from those of float32 by its rounding: by one step where they are quantized
// again and a value lies between two.
#include <utility>

#include "core/pass/rules/layout/transpose_propagation.h"
#include "core/pass/rules/numbers.h"
#include "core/pass/rules/quantized/product.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// The parts of a QLinearConv in place of |quantize|; nullopt where there is none.
struct QuantizedConv {
  QuantizedProduct product;
  std::optional<Cut> cut;
  std::optional<Tensor> bias;  // in steps of the sum
};
Result<std::optional<QuantizedConv>> quantized_conv(Editor& editor, const Node& quantize) {
  const std::optional<QuantizedConv> none;
  QuantizedConv c;
  const auto p = product_before(editor, quantize, c.cut);
  if (!p || p->node->op != "Conv") return none;
  const auto channels = known_dim(editor.type(p->b.quantized), 0);
  if (!channels) return none;
  if (p->bias != kNoId) {
    PFRT_ASSIGN(c.bias, bias_steps(editor, *p, static_cast<size_t>(*channels)));
    if (!c.bias) return none;
  }
  c.product = *p;
  return std::optional(std::move(c));
}

Result<bool> convolution(Editor& editor, Node& node, const RuleContext& context) {
  PFRT_ASSIGN(std::optional<QuantizedConv> found, quantized_conv(editor, node));
  if (!found) return false;
  const QuantizedProduct& p = found->product;
  Node made;
  made.op = "QLinearConv";
  made.canonical = true;
  made.attrs = p.node->attrs;
  PFRT_ASSIGN(made.inputs, product_operands(editor, p));
  made.outputs = node.outputs;  // asks about the same types
  if (is_refused(editor, made, context)) return false;
  if (found->bias) made.inputs.push_back(editor.add_constant("bias", std::move(*found->bias)));
  const ValueId out = node.outputs[0];
  const std::string stem = p.node->name;
  PFRT_ASSIGN(const std::vector<ValueId> outputs, editor.add_node(std::move(made), stem));
  ValueId result = outputs[0];
  if (found->cut) {
    PFRT_ASSIGN(result, cut_steps(editor, *found->cut, p.out.dtype, result));
  }
  editor.replace(out, result);
  return true;
}

// The second factor in the form that MatMul takes.
Result<ValueId> right_factor(Editor& editor, const QuantizedProduct& p) {
  if (p.node->op != "Gemm" || p.node->attr_int("transB", 0) == 0) return p.b.quantized;
  // Its size does not matter: it is read once, when it is packed.
  if (const Tensor* const constant = editor.constant(p.b.quantized)) {
    PFRT_ASSIGN(Tensor turned, transposed(*constant, {1, 0}));
    return editor.add_constant(p.node->name, std::move(turned));
  }
  return editor.add("Transpose", p.node->name, {p.b.quantized},
                    {Attribute::of_ints("perm", {1, 0})});
}

// The product for a QLinearMatMul in place of |quantize|.
std::optional<QuantizedProduct> quantized_matmul(Editor& editor, const Node& quantize) {
  std::optional<Cut> cut;
  auto p = product_before(editor, quantize, cut);
  return p && (p->node->op == "MatMul" || p->node->op == "Gemm") && p->bias == kNoId && !cut
             ? p
             : std::nullopt;
}

Result<bool> matmul(Editor& editor, Node& node, const RuleContext& context) {
  const auto p = quantized_matmul(editor, node);
  if (!p) return false;
  Node made;
  made.op = "QLinearMatMul";
  made.canonical = true;
  PFRT_ASSIGN(made.inputs, product_operands(editor, *p));
  made.outputs = node.outputs;
  if (is_refused(editor, made, context)) return false;
  const ValueId out = node.outputs[0];
  const std::string stem = p->node->name;
  PFRT_ASSIGN(made.inputs[3], right_factor(editor, *p));
  PFRT_ASSIGN(const std::vector<ValueId> outputs, editor.add_node(std::move(made), stem));
  editor.replace(out, outputs[0]);
  return true;
}

// Whether the QuantizeLinear behind |node|, perhaps behind a node that cuts steps off, merges it
// into an integer operator.
Result<bool> is_taken(Editor& editor, const Node& node) {
  const Node* next = editor.only_user(node.outputs[0]);
  if (next && (next->op == "Relu" || next->op == "Clip") && next->inputs[0] == node.outputs[0])
    next = editor.only_user(next->outputs[0]);
  if (!next || next->op != "QuantizeLinear") return false;
  if (quantized_matmul(editor, *next)) return true;
  PFRT_ASSIGN(const auto conv, quantized_conv(editor, *next));
  return conv.has_value();
}

// A constant with a number for each channel of the product, or one for all.
Result<ValueId> for_channels(Editor& editor, const QuantizedProduct& p, std::string_view name,
                             const std::vector<double>& numbers) {
  Dims dims;
  if (numbers.size() > 1) dims.push_back(static_cast<int64_t>(numbers.size()));
  if (numbers.size() > 1 && p.node->op == "Conv")
    dims.resize(editor.rank(p.b.quantized).value_or(2) - 1, 1);
  PFRT_ASSIGN(Tensor tensor, from_doubles(PFRT_DTYPE_FLOAT32, std::move(dims), numbers));
  return editor.add_constant(name, std::move(tensor));
}

// The product as sums of integers, with |scales| that turn them into numbers, and a bias.
struct IntegerProduct {
  QuantizedProduct product;
  std::vector<double> scales;
  std::optional<std::vector<double>> bias;  // of a Conv
};

// Without constant weights there is no certain gain.
std::optional<IntegerProduct> integer_product(Editor& editor, Node& node,
                                              std::string* why = nullptr) {
  const auto p = product_of(editor, node, why);
  if (!p) return std::nullopt;
  if (!editor.constant(p->b.quantized))
    return refuse_because(why, "neither factor is constant, and the product is not quantized next");
  const auto scales = sum_scales(editor, *p);
  if (!scales)
    return refuse_because(why, "a scale is not constant, or not a normal number above 0");
  if (!zeros_of(editor, p->a) || !zeros_of(editor, p->b))
    return refuse_because(why, "a zero point is not constant");
  IntegerProduct out{*p, *scales, std::nullopt};
  if (node.op == "Conv" && p->bias != kNoId) {
    out.bias = numbers_of(editor, p->bias);
    if (!out.bias) return refuse_because(why, "the bias is not constant");
  }
  return out;
}

// Rewrites products that no operator on integers covers completely.
Result<bool> product(Editor& editor, Node& node, const RuleContext& context) {
  const auto found = integer_product(editor, node);
  if (!found) return false;
  PFRT_ASSIGN(const bool taken, is_taken(editor, node));
  if (taken) return false;
  const QuantizedProduct* const p = &found->product;
  const std::optional<std::vector<double>>& bias = found->bias;
  const bool is_conv = node.op == "Conv";
  Node sums;
  sums.op = is_conv ? "ConvInteger" : "MatMulInteger";
  sums.canonical = true;
  if (is_conv) sums.attrs = node.attrs;
  PFRT_ASSIGN(const ValueId a_zero, zero_of(editor, p->a));
  PFRT_ASSIGN(const ValueId b_zero, shared_zero_of(editor, p->b));
  sums.inputs = {p->a.quantized, p->b.quantized, a_zero, b_zero};
  sums.outputs = node.outputs;
  pfrt_dtype& result = editor.graph().at(node.outputs[0]).type.dtype;
  const pfrt_dtype real = std::exchange(result, PFRT_DTYPE_INT32);
  const bool unknown = is_refused(editor, sums, context);
  result = real;
  if (unknown) return false;
  const ValueId out = node.outputs[0];
  const std::string stem = node.name;
  if (!is_conv) {
    PFRT_ASSIGN(sums.inputs[1], right_factor(editor, *p));
  }
  PFRT_ASSIGN(const std::vector<ValueId> sum, editor.add_node(std::move(sums), stem));
  PFRT_ASSIGN(const ValueId whole, editor.add("Cast", stem, {sum[0]},
                                              {Attribute::of_int("to", PFRT_DTYPE_FLOAT32),
                                               Attribute::of_int("saturate", 1)}));
  PFRT_ASSIGN(const ValueId factors, for_channels(editor, *p, "scale", found->scales));
  PFRT_ASSIGN(ValueId number, editor.add("Mul", stem, {whole, factors}));
  if (bias) {
    PFRT_ASSIGN(const ValueId addend, for_channels(editor, *p, "bias", *bias));
    PFRT_ASSIGN(number, editor.add("Add", stem, {number, addend}));
  } else if (p->bias != kNoId) {
    PFRT_ASSIGN(number, editor.add("Add", stem, {number, p->bias}));
  }
  editor.replace(out, number);
  return true;
}

constexpr Rule kQuantizedMatmulsRules[] = {
    {"QLinearConv", "QuantizeLinear",
     "DequantizeLinear of both factors, Conv, perhaps Relu or Clip, QuantizeLinear -> QLinearConv, "
     "Clip",
     kExtended, true, convolution},
    {"QLinearMatMul", "QuantizeLinear",
     "DequantizeLinear of both factors, MatMul or Gemm, QuantizeLinear -> QLinearMatMul", kExtended,
     true, matmul},
    {"IntegerProduct", "Conv",
     "DequantizeLinear of both factors, Conv -> ConvInteger, Cast, Mul, Add", kExtended, false,
     product},
    {"IntegerProduct", "MatMul",
     "DequantizeLinear of both factors, MatMul -> MatMulInteger, Cast, Mul", kExtended, false,
     product},
    {"IntegerProduct", "Gemm",
     "DequantizeLinear of both factors, Gemm -> MatMulInteger, Cast, Mul, Add", kExtended, false,
     product},
};

}  // namespace

std::string why_not_in_integers(Editor& editor, Node& product) {
  std::string why;
  if (integer_product(editor, product, &why)) why = "the provider takes no such product";
  return why;
}

std::span<const Rule> quantized_matmul_rules() { return kQuantizedMatmulsRules; }

}  // namespace pfrt
