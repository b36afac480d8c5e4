// SPDX-License-Identifier: Apache-2.0
//
// Moves normalisation, scale, bias and padding around convolutions and matrix products with
// constant weights into weights, bias and pads. New weights are computed in double precision and
// rounded once. Transposed convolutions without strides become plain ones.
#include <algorithm>

#include "core/pass/rules/linear.h"
#include "core/pass/rules/numbers.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// The linear node that makes |node|'s input |i|, if nothing else uses its output.
std::optional<Linear> linear_input(Editor& editor, const Node& node, size_t i) {
  if (!node.has_input(i)) return std::nullopt;
  const ValueId in = node.inputs[i];
  Node* made = editor.producer(in);
  if (!made || made->outputs[0] != in || !editor.only_used_by(in, node)) return std::nullopt;
  return as_linear(editor, *made);
}

Result<bool> absorb(Editor& editor, Node& node, const Linear& linear, const ChannelAffine& affine) {
  const ValueId out = node.outputs[0], in = linear.node->outputs[0];
  if (editor.type(out).dtype != editor.type(in).dtype || !editor.can_replace(out, in)) return false;
  PFRT_ASSIGN(const bool done, scale_output(editor, linear, affine));
  if (done) editor.replace(out, in);
  return done;
}

Result<bool> normalization(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<Linear> linear = linear_input(editor, node, 0);
  if (!linear || linear->channel_axis != 1) return false;
  const std::optional<ChannelAffine> affine = as_affine(editor, node);
  if (!affine || affine->scale.size() != linear->channels) return false;
  return absorb(editor, node, *linear, *affine);
}

Result<bool> normalization_and_relu(Editor& editor, Node& node, const RuleContext& context) {
  const Node* next = node.outputs.empty() ? nullptr : editor.only_user(node.outputs[0]);
  if (!next || next->op != "Relu" || !next->domain.empty()) return false;
  return normalization(editor, node, context);
}

// Takes Mul, Div, Add and Sub by constants for each channel.
Result<bool> arithmetic(Editor& editor, Node& node, const RuleContext&) {
  if (node.inputs.size() != 2) return false;
  for (const size_t side : {0u, 1u}) {
    const std::optional<Linear> linear = linear_input(editor, node, side);
    if (!linear || editor.rank(node.outputs[0]) != linear->rank) continue;
    if (side == 1 && node.op == "Div") continue;
    auto numbers = per_channel(editor, node.inputs[1 - side], linear->rank, linear->channel_axis,
                               linear->channels);
    if (!numbers) continue;
    ChannelAffine affine{std::vector<double>(linear->channels, 1),
                         std::vector<double>(linear->channels, 0)};
    if (node.op == "Mul") {
      affine.scale = std::move(*numbers);
    } else if (node.op == "Div") {
      if (std::ranges::find(*numbers, 0.0) != numbers->end()) return false;
      std::ranges::transform(*numbers, affine.scale.begin(), [](double d) { return 1 / d; });
    } else if (node.op == "Add" || side == 1) {
      affine.shift = std::move(*numbers);
      if (node.op == "Sub") std::ranges::fill(affine.scale, -1.0);
    } else {
      std::ranges::transform(*numbers, affine.shift.begin(), [](double d) { return -d; });
    }
    return absorb(editor, node, *linear, affine);
  }
  return false;
}

// Joins a product of matrices and an addition that broadcasts to it, for any number of rows.
Result<bool> matmul_add(Editor& editor, Node& node, const RuleContext&) {
  if (node.inputs.size() != 2) return false;
  for (const size_t side : {0u, 1u}) {
    Node* product = editor.maker(node.inputs[side], "MatMul");
    if (!product || !editor.only_used_by(node.inputs[side], node)) continue;
    const ValueId bias = node.inputs[1 - side], out = node.outputs[0];
    if (editor.rank(product->inputs[0]) != 2u || editor.rank(product->inputs[1]) != 2u ||
        !editor.keeps_type(node, product->outputs[0]))
      continue;
    const pfrt_dtype dtype = editor.type(out).dtype;
    const bool floats = dtype == PFRT_DTYPE_FLOAT32 || dtype == PFRT_DTYPE_FLOAT64 ||
                        dtype == PFRT_DTYPE_FLOAT16 || dtype == PFRT_DTYPE_BFLOAT16;
    if (!floats || editor.type(bias).dtype != dtype || editor.rank(bias).value_or(3) > 2) continue;
    // An epilogue adds a complete matrix better.
    const Shape &b = editor.type(bias).shape, &p = editor.type(product->outputs[0]).shape;
    if (b.size() == 2 && !b[0].is(1)) continue;
    if (b.empty() || !(b.back() == p.back() || b.back().is(1))) continue;
    PFRT_ASSIGN(const ValueId made,
                editor.add("Gemm", node.name.empty() ? product->name : node.name,
                           {product->inputs[0], product->inputs[1], bias},
                           {Attribute::of_float("alpha", 1), Attribute::of_float("beta", 1),
                            Attribute::of_int("transA", 0), Attribute::of_int("transB", 0)}));
    editor.replace(out, made);
    return true;
  }
  return false;
}

// Makes zeros padded around an image the pads of the window that slides over it.
Result<bool> pad_into_window(Editor& editor, Node& node, const RuleContext&) {
  const bool pool = node.op == "AveragePool";
  const ValueId in = node.inputs[0];
  const Node* pad = editor.maker(in, "Pad");
  if (!pad || !pad->has_input(1) || !editor.only_used_by(in, node)) return false;
  if (pad->attr_string("mode", "constant") != "constant" || pad->has_input(3)) return false;
  if (pad->has_input(2) && scalar_of(editor.constant(pad->inputs[2])) != 0.0) return false;
  const auto sizes = editor.numbers(pad->inputs[1]);
  const std::vector<int64_t>* pads = node.attr_ints("pads");
  const std::optional<size_t> rank = editor.rank(in);
  if (!sizes || !pads || !rank || sizes->size() != 2 * *rank || *rank < 3 ||
      pads->size() != 2 * (*rank - 2))
    return false;
  const bool automatic = node.attr_string("auto_pad", "NOTSET") != "NOTSET";
  if (automatic || (!pool && !all_finite(editor.constant(node.inputs[1])))) return false;
  const bool own = std::ranges::any_of(*pads, [](int64_t p) { return p != 0; });
  if (pool &&
      (own ? node.attr_int("count_include_pad", 0) == 0 : node.attr_int("ceil_mode", 0) != 0))
    return false;
  std::vector<int64_t> sum = *pads;
  const size_t spatial = *rank - 2;
  for (size_t i = 0; i < *rank; ++i) {
    const int64_t before = (*sizes)[i], after = (*sizes)[*rank + i];
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX) return false;
    if (i < 2 && (before != 0 || after != 0)) return false;
    if (i < 2) continue;
    sum[i - 2] += before;
    sum[spatial + i - 2] += after;
  }
  if (pool) {
    const std::vector<int64_t>* kernel = node.attr_ints("kernel_shape");
    if (!kernel || kernel->size() != spatial) return false;
    for (size_t i = 0; i < spatial; ++i)
      if (sum[i] >= (*kernel)[i] || sum[spatial + i] >= (*kernel)[i]) return false;
    node.set_attr(Attribute::of_int("count_include_pad", 1));
  }
  node.set_attr(Attribute::of_ints("pads", std::move(sum)));
  editor.set_input(node, 0, pad->inputs[0]);
  PFRT_TRY(editor.changed(node));
  return true;
}

bool all_are(const std::vector<int64_t>* list, int64_t value) {
  return !list || std::ranges::all_of(*list, [value](int64_t v) { return v == value; });
}

// Turns weights [groups * in, out, taps] of a transposed convolution into [groups * out, in, taps],
// with taps in the opposite order.
Result<Tensor> turned_weights(const Tensor& weights, int64_t groups) {
  const size_t size = dtype_size(weights.dtype);
  const int64_t in = weights.dims[0] / groups, out = weights.dims[1];
  int64_t taps = 1;
  for (size_t i = 2; i < weights.dims.size(); ++i) taps *= weights.dims[i];
  Dims dims = weights.dims;
  dims[0] = groups * out;
  dims[1] = in;
  PFRT_ASSIGN(Tensor turned, Tensor::allocate(weights.dtype, std::move(dims), false));
  PFRT_ASSIGN(const Tensor source, weights.readable());
  const char* from = source.as<char>();
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t t = taps; t-- > 0; from += size) {
          const int64_t at = ((g * out + o) * in + i) * taps + t;
          std::copy_n(from, size, turned.as<char>() + static_cast<size_t>(at) * size);
        }
  return turned;
}

// Whether windows of |weights| with |pads| may fit nowhere: the output then has no elements. An
// unknown size counts as 1 at least.
bool cuts_everything(const Type& input, const Tensor& weights,
                     const std::vector<int64_t>* dilations, const std::vector<int64_t>& pads) {
  const size_t spatial = pads.size() / 2;
  if (!input.has_shape || input.shape.size() != spatial + 2) return true;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t window = (weights.dims[i + 2] - 1) * (dilations ? (*dilations)[i] : 1) + 1;
    const Dim& size = input.shape[i + 2];
    if ((size.known() ? size.value() : 1) < window - pads[i] - pads[i + spatial]) return true;
  }
  return false;
}

// A transposed convolution without strides is a convolution.
Result<bool> transposed_of_stride_1(Editor& editor, Node& node, const RuleContext&) {
  if (node.inputs.size() < 2 || !all_are(node.attr_ints("strides"), 1) ||
      !all_are(node.attr_ints("output_padding"), 0) ||
      node.attr_string("auto_pad", "NOTSET") != "NOTSET")
    return false;
  if (const auto* shape = node.attr_ints("output_shape"); shape && !shape->empty()) return false;
  const Tensor* weights = editor.constant(node.inputs[1]);
  if (!all_finite(weights)) return false;
  const std::vector<int64_t>*pads = node.attr_ints("pads"),
        *dilations = node.attr_ints("dilations");
  const int64_t groups = node.attr_int("group", 1);
  if (weights->dims.size() < 3 || weights->count() < 1 || dtype_size(weights->dtype) == 0 ||
      groups < 1 || weights->dims[0] % groups != 0)
    return false;
  const size_t spatial = weights->dims.size() - 2;
  if (!pads || pads->size() != 2 * spatial || (dilations && dilations->size() != spatial))
    return false;
  std::vector<int64_t> left = *pads;
  for (size_t i = 0; i < 2 * spatial; ++i) {
    const int64_t dilation = dilations ? (*dilations)[i % spatial] : 1;
    if (dilation < 1 || dilation > INT32_MAX || weights->dims[2 + i % spatial] > INT32_MAX)
      return false;
    left[i] = (weights->dims[2 + i % spatial] - 1) * dilation - (*pads)[i];
    if ((*pads)[i] < 0 || left[i] < 0) return false;
  }
  if (cuts_everything(editor.type(node.inputs[0]), *weights, dilations, left)) return false;
  Node made;
  made.op = "Conv";
  made.canonical = true;
  made.attrs = node.attrs;
  std::erase_if(made.attrs, [](const Attribute& attr) {
    return attr.name == "output_padding" || attr.name == "output_shape";
  });
  made.set_attr(Attribute::of_ints("pads", std::move(left)));
  made.inputs = node.inputs;
  PFRT_ASSIGN(Tensor turned, turned_weights(*weights, groups));
  const ValueId out = node.outputs[0];
  const std::string stem = node.name;
  made.inputs[1] = editor.add_constant(stem, std::move(turned));
  PFRT_ASSIGN(const std::vector<ValueId> outputs, editor.add_node(std::move(made), stem));
  editor.replace(out, outputs[0]);
  return true;
}

constexpr Rule kConvRules[] = {
    {"FusedConvBNRelu", "BatchNormalization",
     "Conv, BatchNormalization, Relu -> Conv with Relu as its epilogue", kExtended, true,
     normalization_and_relu},
    {"FusedConvBN", "BatchNormalization", "Conv, BatchNormalization -> Conv", kExtended, true,
     normalization},
    {"FoldScale", "Mul",
     "Conv, product or normalisation, Mul by a constant a channel -> without Mul", kExtended, true,
     arithmetic},
    {"FoldScale", "Div",
     "Conv, product or normalisation, Div by a constant a channel -> without Div", kExtended, true,
     arithmetic},
    {"FoldBias", "Add", "Conv, Gemm or normalisation, Add of a constant a channel -> without Add",
     kExtended, true, arithmetic},
    {"FoldBias", "Sub", "Conv, Gemm or normalisation, Sub of a constant a channel -> without Sub",
     kExtended, true, arithmetic},
    {"Gemm", "Add", "MatMul, Add -> Gemm", kExtended, true, matmul_add},
    {"ConvOfTransposed", "ConvTranspose", "ConvTranspose of stride 1 with constant weights -> Conv",
     kExtended, true, transposed_of_stride_1},
    {"PadIntoConv", "Conv", "Pad with zeros, Conv -> Conv", kExtended, true, pad_into_window},
    {"PadIntoPool", "AveragePool", "Pad with zeros, AveragePool -> AveragePool", kExtended, true,
     pad_into_window},
};

}  // namespace

std::span<const Rule> conv_rules() { return kConvRules; }

}  // namespace pfrt
