// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose of dequantized factors, quantized again: position s q + r of its output, with
// stride s, is a sum over pixels q - m with taps r + s m. So all r are channels of one convolution
// with stride 1, whose kernel has ceil(k / s) taps, and which DepthToSpace puts next to each other;
// missing taps have the zero point of the weights (W. Shi et al., "Is the deconvolution layer the
// same as a convolutional layer?", 2016). It is as exact as products of integers: see
// quantized_matmuls.cc.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/pass/rules/numbers.h"
#include "core/pass/rules/quantized/product.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

constexpr int64_t kLargestStride = 16;
// Most taps of the convolution, missing ones included, for each of the ConvTranspose: integers are
// multiplied so much faster than float32.
constexpr double kMostTaps = 2.6;

// The geometry of one spatial dimension.
struct Span {
  int64_t taps = 0, stride = 0;  // of the ConvTranspose
  int64_t made = 0;              // taps of the convolution
  int64_t pad = 0, end_pad = 0;  // of the convolution
  int64_t cut = 0, end_cut = 0;  // cut off the output of DepthToSpace
};

std::optional<Span> span_of(int64_t taps, int64_t stride, int64_t pad, int64_t end_pad,
                            int64_t output_padding) {
  if (taps < 1 || stride < 1 || stride > kLargestStride || pad < 0 || end_pad < 0)
    return std::nullopt;
  Span s{taps, stride, (taps + stride - 1) / stride};
  const int64_t first = std::min(pad / stride, s.made - 1);  // position in steps of the stride
  s.pad = s.made - 1 - first;
  s.cut = pad - stride * first;
  const int64_t left = taps + output_padding - end_pad - stride;  // beyond the last pixel's
  s.end_pad = std::max<int64_t>(0, (left + stride - 1) / stride);
  s.end_cut = stride * s.end_pad - left;
  return s;
}

struct Transposed {
  QuantizedProduct product;
  std::optional<Cut> cut;
  int64_t groups = 1, ins = 0, outs = 0;  // for each group
  std::array<Span, 2> spans;

  int64_t phases() const { return spans[0].stride * spans[0].stride; }
};

std::optional<Transposed> transposed_before(Editor& editor, const Node& quantize) {
  Transposed t;
  const auto p = product_before(editor, quantize, t.cut);
  if (!p || p->node->op != "ConvTranspose") return std::nullopt;
  const Node& node = *p->node;
  const Tensor* weights = editor.constant(p->b.quantized);
  const auto* strides = node.attr_ints("strides");
  const auto* pads = node.attr_ints("pads");
  const auto* dilations = node.attr_ints("dilations");
  const auto* more = node.attr_ints("output_padding");
  if (!weights || weights->dims.size() != 4 || !strides || strides->size() != 2 || !pads ||
      pads->size() != 4 || !dilations || *dilations != std::vector<int64_t>{1, 1} || !more ||
      more->size() != 2 || (*strides)[0] != (*strides)[1] || node.attr_ints("output_shape") ||
      node.attr_string("auto_pad", "NOTSET") != "NOTSET")
    return std::nullopt;
  t.groups = node.attr_int("group", 1);
  t.outs = weights->dims[1];
  if (t.groups < 1 || t.outs < 1 || weights->dims[0] < 1 || weights->dims[0] % t.groups != 0 ||
      (t.groups > 1 && !p->b.single))
    return std::nullopt;
  t.ins = weights->dims[0] / t.groups;
  for (size_t d = 0; d < 2; ++d) {
    const auto span =
        span_of(weights->dims[2 + d], (*strides)[d], (*pads)[d], (*pads)[2 + d], (*more)[d]);
    if (!span) return std::nullopt;
    t.spans[d] = *span;
  }
  const auto& [y, x] = t.spans;
  const auto made = static_cast<double>(t.phases() * y.made * x.made);
  if (made > kMostTaps * static_cast<double>(y.taps * x.taps)) return std::nullopt;
  t.product = *p;
  return t;
}

// The weights of the convolution; the phases of an output channel are next to each other.
Result<Tensor> weights_of(const Editor& editor, const Transposed& t,
                          const std::vector<int64_t>& zeros) {
  const Tensor& source = *editor.constant(t.product.b.quantized);
  const auto& [y, x] = t.spans;
  const int64_t stride = y.stride;
  PFRT_ASSIGN(Tensor made, Tensor::allocate(source.dtype, {t.groups * t.outs * t.phases(), t.ins,
                                                           y.made, x.made}));
  const auto* const from = static_cast<const uint8_t*>(source.data());
  auto* to = static_cast<uint8_t*>(made.data());
  for (int64_t o = 0; o < t.groups * t.outs; ++o) {
    const auto zero = static_cast<uint8_t>(
        zeros[static_cast<size_t>(o) % zeros.size()]);  // a byte of either sign
    for (int64_t phase = 0; phase < t.phases(); ++phase)
      for (int64_t i = 0; i < t.ins; ++i)
        for (int64_t m = y.made; m-- > 0;)
          for (int64_t n = x.made; n-- > 0;) {
            const int64_t tap_y = phase / stride + stride * m, tap_x = phase % stride + stride * n;
            const int64_t filter = (o / t.outs * t.ins + i) * t.outs + o % t.outs;
            *to++ = tap_y < y.taps && tap_x < x.taps
                        ? from[(filter * y.taps + tap_y) * x.taps + tap_x]
                        : zero;
          }
  }
  return made;
}

// A list with |times| copies of each element.
Result<Tensor> repeated(const Tensor& list, int64_t times) {
  const int64_t n = list.count(), bytes = static_cast<int64_t>(dtype_bits(list.dtype)) / 8;
  PFRT_ASSIGN(Tensor made, Tensor::allocate(list.dtype, {n * times}));
  const auto* from = static_cast<const uint8_t*>(list.data());
  auto* to = static_cast<uint8_t*>(made.data());
  for (int64_t i = 0; i < n; ++i, from += bytes)
    for (int64_t k = 0; k < times; ++k, to += bytes) std::copy_n(from, bytes, to);
  return made;
}

// A list for each channel becomes one for each channel and phase; a single element stays.
Result<ValueId> for_phases(Editor& editor, ValueId list, int64_t phases) {
  const Tensor* const tensor = editor.constant(list);
  if (!tensor || tensor->count() == 1) return list;
  PFRT_ASSIGN(Tensor made, repeated(*tensor, phases));
  return editor.add_constant("weights", std::move(made));
}

Result<ValueId> cut_edges(Editor& editor, const Transposed& t, ValueId image) {
  const auto& [y, x] = t.spans;
  if (y.cut == 0 && x.cut == 0 && y.end_cut == 0 && x.end_cut == 0) return image;
  const auto end = [](int64_t cut) {
    return cut == 0 ? std::numeric_limits<int64_t>::max() : -cut;
  };
  PFRT_ASSIGN(const ValueId starts, editor.int64s("starts", {y.cut, x.cut}));
  PFRT_ASSIGN(const ValueId ends, editor.int64s("ends", {end(y.end_cut), end(x.end_cut)}));
  PFRT_ASSIGN(const ValueId axes, editor.int64s("axes", {2, 3}));
  PFRT_ASSIGN(const ValueId steps, editor.int64s("steps", {1, 1}));
  return editor.add("Slice", t.product.node->name, {image, starts, ends, axes, steps});
}

// The bias in steps, by channel; nullopt where there is no bias. |why| gets the obstacle, if any.
Result<std::optional<Tensor>> steps_of(Editor& editor, const Transposed& t, std::string* why) {
  const QuantizedProduct& p = t.product;
  std::optional<Tensor> bias;
  std::string hindrance;
  if (!zeros_of(editor, p.b) || !sum_scales(editor, p))
    hindrance = "a scale or zero point is not constant, or a scale no normal number above 0";
  if (hindrance.empty() && p.bias != kNoId) {
    PFRT_ASSIGN(bias, bias_steps(editor, p, static_cast<size_t>(t.groups * t.outs)));
    if (!bias) hindrance = "the bias is not constant, or not of whole steps of the product";
  }
  *why = std::move(hindrance);
  return bias;
}

Result<bool> transposed(Editor& editor, Node& node, const RuleContext& context) {
  const auto found = transposed_before(editor, node);
  if (!found) return false;
  const Transposed& t = *found;
  const QuantizedProduct& p = t.product;
  std::string why;
  PFRT_ASSIGN(const std::optional<Tensor> bias, steps_of(editor, t, &why));
  if (!why.empty()) return false;
  const auto& [y, x] = t.spans;
  PFRT_ASSIGN(Tensor weights, weights_of(editor, t, *zeros_of(editor, p.b)));
  Node made;
  made.op = "QLinearConv";
  made.canonical = true;
  made.attrs = {Attribute::of_ints("kernel_shape", {y.made, x.made}),
                Attribute::of_ints("strides", {1, 1}), Attribute::of_ints("dilations", {1, 1}),
                Attribute::of_ints("pads", {y.pad, x.pad, y.end_pad, x.end_pad}),
                Attribute::of_int("group", t.groups)};
  PFRT_ASSIGN(made.inputs, product_operands(editor, p));
  made.inputs[3] = editor.add_constant("weights", std::move(weights));
  PFRT_ASSIGN(made.inputs[4], for_phases(editor, made.inputs[4], t.phases()));
  PFRT_ASSIGN(made.inputs[5], for_phases(editor, made.inputs[5], t.phases()));
  made.outputs = node.outputs;  // asks about the same type
  if (is_refused(editor, made, context)) return false;
  if (bias) {
    PFRT_ASSIGN(Tensor steps, repeated(*bias, t.phases()));
    made.inputs.push_back(editor.add_constant("bias", std::move(steps)));
  }
  const ValueId out = node.outputs[0];
  const std::string stem = p.node->name;
  PFRT_ASSIGN(const std::vector<ValueId> outputs, editor.add_node(std::move(made), stem));
  ValueId result = outputs[0];
  if (t.cut) {
    PFRT_ASSIGN(result, cut_steps(editor, *t.cut, p.out.dtype, result));
  }
  if (y.stride > 1) {
    PFRT_ASSIGN(result, editor.add("DepthToSpace", stem, {result},
                                   {Attribute::of_int("blocksize", y.stride),
                                    Attribute::of_string("mode", "CRD")}));
  }
  PFRT_ASSIGN(result, cut_edges(editor, t, result));
  editor.replace(out, result);
  return true;
}

constexpr Rule kQuantizedTransposedRules[] = {
    {"QLinearTransposedConv", "QuantizeLinear",
     "DequantizeLinear of both factors, ConvTranspose, perhaps Relu or Clip, QuantizeLinear -> "
     "QLinearConv, Clip, DepthToSpace, Slice",
     kExtended, true, transposed},
};

}  // namespace

std::string why_not_transposed(Editor& editor, Node& node) {
  std::string why;
  if (!product_of(editor, node, &why)) return why;
  const Node* next = editor.only_user(node.outputs[0]);
  if (next && (next->op == "Relu" || next->op == "Clip")) next = editor.only_user(next->outputs[0]);
  if (!next || next->op != "QuantizeLinear") return "the result is not quantized next";
  const auto found = transposed_before(editor, *next);
  if (!found)
    return "weights are not constant, strides differ, taps are dilated, or most of the taps of a "
           "convolution in its place would be zeros";
  if (auto steps = steps_of(editor, *found, &why); !steps.ok()) return steps.status().message();
  return why.empty() ? "the provider takes no such product" : why;
}

std::span<const Rule> quantized_transposed_rules() { return kQuantizedTransposedRules; }

}  // namespace pfrt
