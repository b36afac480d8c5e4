// SPDX-License-Identifier: Apache-2.0
//
// Products of dequantized factors become products of integers. The sum is then exact, so that
// results may differ from those of float32 by its rounding: by one step where they are quantized
// again and a value lies between two.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/pass/rules/numbers.h"
#include "core/pass/rules/quantized.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// A bias is as good as whole steps of the product when it is off by less than this much of one, or
// by no more than its rounding to float32.
constexpr double kWhole = 1e-2, kRounding = 0x1p-23;
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

bool is_product(const Node& node) {
  return node.domain.empty() && (node.op == "Conv" || node.op == "MatMul" || node.op == "Gemm");
}

template <typename... Parts>
std::nullopt_t refuse(std::string* why, const Parts&... parts) {
  if (why) *why = message(parts...);
  return std::nullopt;
}

// Says what factor |real| lacks; nullptr when it is fit for a product as |quantized|.
const char* lacks(Editor& editor, ValueId real, const std::optional<Quantization>& quantized) {
  if (real == kNoId || !editor.maker(real, "DequantizeLinear")) return " is not quantized";
  if (!quantized) return " is quantized in blocks, or not between float32 and integers";
  return is_byte(quantized->dtype) ? nullptr : " is not of 8 bits";
}

// Of the Conv, MatMul or Gemm |node|; |out| is to be filled in. nullopt with the reason in |why|
// (may be null) where a factor is not made of bytes, or sums may need more than 32 bits.
std::optional<QuantizedProduct> product_of(Editor& editor, Node& node, std::string* why = nullptr) {
  if (!is_product(node) || node.inputs.size() < 2)
    return refuse(why, "there are no integers for ", node.op);
  QuantizedProduct p;
  p.node = &node;
  if (node.has_input(2)) p.bias = node.inputs[2];
  if (node.op == "Gemm") {
    const bool plain = node.attr_float("alpha", 1) == 1 && node.attr_int("transA", 0) == 0;
    if (!plain || (p.bias != kNoId && node.attr_float("beta", 1) != 1))
      return refuse(why, "alpha or beta is not 1, or transA is set");
  }
  const auto a = dequantized(editor, node.inputs[0]), b = dequantized(editor, node.inputs[1]);
  if (const char* const what = lacks(editor, node.inputs[0], a))
    return refuse(why, "the first factor", what);
  if (const char* const what = lacks(editor, node.inputs[1], b))
    return refuse(why, "the second factor", what);
  if (!a->single) return refuse(why, "the first factor has more than one scale");
  p.a = *a;
  p.b = *b;
  const std::optional<size_t> rank = editor.rank(b->quantized);
  if (!rank || *rank < 2) return refuse(why, "the second factor's rank is not known, or below 2");
  if (!b->single) {
    const int64_t axis = b->axis < 0 ? b->axis + static_cast<int64_t>(*rank) : b->axis;
    if (axis != channel_axis(editor, node, b->quantized))
      return refuse(why, "scales of the second factor lie along axis ", axis,
                    ", which is not that of the output's channels");
    if (node.op == "MatMul" && *rank != 2)
      return refuse(why, "several matrices have a scale a column");
  }
  const auto depth = depth_of(editor, node, b->quantized);
  if (!depth || *depth > kLargestSum / (255 * 255))
    return refuse(why, "the number of terms of a sum is not known, or too large for int32");
  p.depth = *depth;
  return p;
}

// What lies between a product and its QuantizeLinear, and cuts some of its steps off.
struct Cut {
  const Node* node = nullptr;  // Relu or Clip
  int64_t low = 0, high = 0;   // the first and the last step left
};

// The steps that are left of the range of |to| by |node|, a Relu or Clip of known limits.
std::optional<Cut> cut_of(const Editor& editor, const Node& node, const Quantization& to) {
  const auto scales = scales_of(editor, to);
  const auto zeros = zeros_of(editor, to);
  if (!node.domain.empty() || (node.op != "Relu" && node.op != "Clip") || !scales || !zeros)
    return std::nullopt;
  const IntegerRange range = range_of(to.dtype);
  Cut cut{&node, range.low, range.high};
  const auto step_of = [&](double x) {
    // As QuantizeLinear has it.
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

// The product in front of |quantize|, which gives bytes; |cut| may lie between.
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
    const double close = kWhole + std::fabs(steps) * kRounding;
    if (!(std::fabs(whole) < most) || !(std::fabs(steps - whole) <= close))
      return std::optional<Tensor>();
    out.as<int32_t>()[i] = static_cast<int32_t>(whole);
  }
  return std::optional(std::move(out));
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

// What a QLinearConv in place of |quantize| would be made of; nullopt where there is none.
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
  const auto channels = known(editor.type(p->b.quantized), 0);
  if (!channels) return none;
  if (p->bias != kNoId) {
    PFRT_ASSIGN(c.bias, bias_steps(editor, *p, static_cast<size_t>(*channels)));
    if (!c.bias) return none;
  }
  c.product = *p;
  return std::optional(std::move(c));
}

Result<ValueId> step_constant(Editor& editor, pfrt_dtype dtype, int64_t step) {
  PFRT_ASSIGN(Tensor tensor, Tensor::allocate(dtype, {}));
  *static_cast<uint8_t*>(tensor.data()) = static_cast<uint8_t>(step);  // a byte of either sign
  return editor.add_constant("limit", std::move(tensor));
}

Result<bool> convolution(Editor& editor, Node& node, const RuleContext& context) {
  PFRT_ASSIGN(std::optional<QuantizedConv> found, quantized_conv(editor, node));
  if (!found) return false;
  const QuantizedProduct& p = found->product;
  Node made;
  made.op = "QLinearConv";
  made.canonical = true;
  made.attrs = p.node->attrs;
  PFRT_ASSIGN(made.inputs, operands(editor, p));
  made.outputs = node.outputs;  // for the question: it has their type
  if (refused(editor, made, context)) return false;
  if (found->bias) made.inputs.push_back(editor.add_constant("bias", std::move(*found->bias)));
  const ValueId out = node.outputs[0];
  const std::string stem = p.node->name;
  PFRT_ASSIGN(const std::vector<ValueId> outputs, editor.add_node(std::move(made), stem));
  ValueId result = outputs[0];
  if (found->cut) {
    // Steps are in the order of the numbers.
    PFRT_ASSIGN(const ValueId low, step_constant(editor, p.out.dtype, found->cut->low));
    PFRT_ASSIGN(const ValueId high, step_constant(editor, p.out.dtype, found->cut->high));
    PFRT_ASSIGN(result, editor.add("Clip", found->cut->node->name, {result, low, high}));
  }
  editor.replace(out, result);
  return true;
}

// Gemm's second factor as MatMul has it.
Result<ValueId> right_factor(Editor& editor, const QuantizedProduct& p) {
  if (p.node->op != "Gemm" || p.node->attr_int("transB", 0) == 0) return p.b.quantized;
  return editor.add("Transpose", p.node->name, {p.b.quantized},
                    {Attribute::of_ints("perm", {1, 0})});
}

// The product that a QLinearMatMul in place of |quantize| would be.
std::optional<QuantizedProduct> quantized_matmul(Editor& editor, const Node& quantize) {
  std::optional<Cut> cut;
  auto p = product_before(editor, quantize, cut);
  return p && p->node->op != "Conv" && p->bias == kNoId && !cut ? p : std::nullopt;
}

Result<bool> matmul(Editor& editor, Node& node, const RuleContext& context) {
  const auto p = quantized_matmul(editor, node);
  if (!p) return false;
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

// Whether the QuantizeLinear behind |node|, perhaps behind what cuts steps off, takes it into an
// operator of its own.
Result<bool> is_taken(Editor& editor, const Node& node) {
  const Node* next = editor.only_user(node.outputs[0]);
  if (next && (next->op == "Relu" || next->op == "Clip") && next->inputs[0] == node.outputs[0])
    next = editor.only_user(next->outputs[0]);
  if (!next || next->op != "QuantizeLinear") return false;
  if (quantized_matmul(editor, *next)) return true;
  PFRT_ASSIGN(const auto conv, quantized_conv(editor, *next));
  return conv.has_value();
}

// Numbers as a constant that is one for each channel of the product, or one for all.
Result<ValueId> for_channels(Editor& editor, const QuantizedProduct& p, std::string_view name,
                             const std::vector<double>& numbers) {
  Dims dims;
  if (numbers.size() > 1) dims.push_back(static_cast<int64_t>(numbers.size()));
  if (numbers.size() > 1 && p.node->op == "Conv")
    dims.resize(editor.rank(p.b.quantized).value_or(2) - 1, 1);
  PFRT_ASSIGN(Tensor tensor, from_doubles(PFRT_DTYPE_FLOAT32, std::move(dims), numbers));
  return editor.add_constant(name, std::move(tensor));
}

// The product as sums of integers, which become numbers by |scales|, and a bias.
struct IntegerProduct {
  QuantizedProduct product;
  std::vector<double> scales;
  std::optional<std::vector<double>> bias;  // of a Conv
};

// Without constant weights nothing is gained that is certain.
std::optional<IntegerProduct> integer_product(Editor& editor, Node& node,
                                              std::string* why = nullptr) {
  const auto p = product_of(editor, node, why);
  if (!p) return std::nullopt;
  if (!editor.constant(p->b.quantized))
    return refuse(why, "neither factor is constant, and the product is not quantized next");
  const auto scales = sum_scales(editor, *p);
  if (!scales) return refuse(why, "a scale is not constant, or not a normal number above 0");
  if (!zeros_of(editor, p->a) || !zeros_of(editor, p->b))
    return refuse(why, "a zero point is not constant");
  IntegerProduct out{*p, *scales, std::nullopt};
  if (node.op == "Conv" && p->bias != kNoId) {
    out.bias = numbers_of(editor, p->bias);
    if (!out.bias) return refuse(why, "the bias is not constant");
  }
  return out;
}

// For what is not taken into an operator that knows all of it.
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
  PFRT_ASSIGN(const ValueId b_zero, zero_of(editor, p->b));
  sums.inputs = {p->a.quantized, p->b.quantized, a_zero, b_zero};
  sums.outputs = node.outputs;
  pfrt_dtype& result = editor.graph().at(node.outputs[0]).type.dtype;
  const pfrt_dtype real = std::exchange(result, PFRT_DTYPE_INT32);
  const bool unknown = refused(editor, sums, context);
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
