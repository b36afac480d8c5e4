// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/linear.h"

#include <algorithm>
#include <cmath>

#include "core/pass/rules/numbers.h"

namespace pfrt {
namespace {

bool is_constant_float(const Editor& editor, ValueId value) {
  const Tensor* tensor = value == kNoId ? nullptr : editor.constant(value);
  return tensor && (tensor->dtype == PFRT_DTYPE_FLOAT32 || tensor->dtype == PFRT_DTYPE_FLOAT64 ||
                    tensor->dtype == PFRT_DTYPE_FLOAT16 || tensor->dtype == PFRT_DTYPE_BFLOAT16);
}

// The axis of channels in the weights.
size_t weight_axis(const Node& node, size_t weight_rank) {
  if (node.op == "Conv") return 0;
  if (node.op == "ConvTranspose") return 1;
  if (node.op == "Gemm") return node.attr_int("transB", 0) ? 0 : 1;
  return weight_rank - 1;
}

// Whether ordinary weights times |scale| neither vanish nor become infinite, which would change the
// result for an infinite input.
bool keeps_kinds(double scale) {
  const double size = std::fabs(scale);
  return size == 0 || (size > 1e-20 && size < 1e20);
}

// Whether |scaled| keeps this for the given weights: for float16, or unusual scales.
bool keeps_kinds(const Tensor& weights, const Tensor& scaled) {
  const auto before = to_doubles(&weights), after = to_doubles(&scaled);
  return before && after && std::ranges::equal(*before, *after, [](double was, double is) {
           return std::isfinite(is) && (is != 0 || std::fabs(was) < 1e-3);
         });
}

// The bias as a number for each channel; nullopt when it has another form.
std::optional<std::vector<double>> bias_of(const Editor& editor, const Linear& linear) {
  if (!linear.node->has_input(2)) return std::vector<double>(linear.channels);
  // A convolution's bias has one number for each channel and does not broadcast.
  const Tensor* bias = editor.constant(linear.node->inputs[2]);
  if (linear.channel_axis == 1 && linear.rank > 2 && bias && bias->dims.size() == 1 &&
      bias->dims[0] == static_cast<int64_t>(linear.channels))
    return to_doubles(bias);
  return per_channel(editor, linear.node->inputs[2], linear.rank, linear.channel_axis,
                     linear.channels);
}

}  // namespace

std::optional<Linear> as_linear(Editor& editor, Node& node) {
  if (!node.domain.empty() || node.inputs.size() < 2 || !is_constant_float(editor, node.inputs[1]))
    return std::nullopt;
  const bool convolution = node.op == "Conv" || node.op == "ConvTranspose";
  const bool normalization = as_affine(editor, node).has_value();
  if (!convolution && !normalization && node.op != "Gemm" && node.op != "MatMul")
    return std::nullopt;
  if (node.has_input(2) && !is_constant_float(editor, node.inputs[2])) return std::nullopt;
  const Tensor& weights = *editor.constant(node.inputs[1]);
  const size_t rank = weights.dims.size();
  if (convolution ? rank < 3 : rank != (normalization ? 1 : 2)) return std::nullopt;
  if (node.op == "ConvTranspose" && node.attr_int("group", 1) != 1) return std::nullopt;
  if (node.op == "Gemm" && node.has_input(2) && node.attr_float("beta", 1) != 1)
    return std::nullopt;
  const std::optional<size_t> out_rank = editor.rank(node.outputs[0]);
  if (!out_rank || *out_rank < 1) return std::nullopt;
  const auto channels = static_cast<size_t>(weights.dims[weight_axis(node, rank)]);
  if (normalization && *out_rank < 2) return std::nullopt;
  return Linear{&node, channels, convolution || normalization ? 1 : *out_rank - 1, *out_rank};
}

std::optional<std::vector<double>> per_channel(const Editor& editor, ValueId value, size_t rank,
                                               size_t axis, size_t channels) {
  const Tensor* tensor = value == kNoId ? nullptr : editor.constant(value);
  std::optional<std::vector<double>> numbers = to_doubles(tensor);
  if (!numbers || tensor->dims.size() > rank) return std::nullopt;
  if (numbers->size() == 1) return std::vector<double>(channels, numbers->front());
  const size_t lead = rank - tensor->dims.size();
  for (size_t i = 0; i < tensor->dims.size(); ++i)
    if (tensor->dims[i] != (lead + i == axis ? static_cast<int64_t>(channels) : 1))
      return std::nullopt;
  return numbers->size() == channels ? numbers : std::nullopt;
}

std::optional<ChannelAffine> as_affine(const Editor& editor, const Node& normalization) {
  if (normalization.op != "BatchNormalization" || !normalization.domain.empty() ||
      normalization.inputs.size() != 5 || normalization.attr_int("training_mode", 0) != 0)
    return std::nullopt;
  for (size_t i = 1; i < normalization.outputs.size(); ++i)
    if (normalization.has_output(i)) return std::nullopt;
  std::vector<std::vector<double>> inputs;
  for (size_t i = 1; i < 5; ++i) {
    auto numbers = to_doubles(editor.constant(normalization.inputs[i]));
    if (!numbers || (i > 1 && numbers->size() != inputs[0].size())) return std::nullopt;
    inputs.push_back(std::move(*numbers));
  }
  const double epsilon = static_cast<double>(normalization.attr_float("epsilon", 1e-5f));
  ChannelAffine out;
  for (size_t c = 0; c < inputs[0].size(); ++c) {
    const double scale = inputs[0][c] / std::sqrt(inputs[3][c] + epsilon);
    if (!std::isfinite(scale)) return std::nullopt;
    out.scale.push_back(scale);
    out.shift.push_back(inputs[1][c] - inputs[2][c] * scale);
  }
  return out;
}

Result<bool> scale_output(Editor& editor, const Linear& linear, const ChannelAffine& affine) {
  Node& node = *linear.node;
  const bool shifts = std::ranges::any_of(affine.shift, [](double s) { return s != 0; });
  if (node.op == "MatMul" && shifts) return false;
  if (affine.scale.size() != linear.channels || affine.shift.size() != linear.channels ||
      !std::ranges::all_of(affine.scale, [](double scale) { return keeps_kinds(scale); }))
    return false;
  const std::optional<std::vector<double>> bias = bias_of(editor, linear);
  if (!bias) return false;
  const ValueId weights_id = node.inputs[1];
  const Tensor& weights = *editor.constant(weights_id);
  const pfrt_dtype dtype = weights.dtype;
  const bool scales = std::ranges::any_of(affine.scale, [](double s) { return s != 1; });
  const bool has_bias = node.op != "MatMul" && (shifts || node.has_input(2));
  std::vector<double> sum(linear.channels);
  for (size_t c = 0; c < sum.size(); ++c) sum[c] = (*bias)[c] * affine.scale[c] + affine.shift[c];
  PFRT_ASSIGN(Tensor made, from_doubles(dtype, {static_cast<int64_t>(linear.channels)}, sum));
  if (has_bias && !all_finite(&made)) return false;
  if (scales) {
    PFRT_ASSIGN(Tensor scaled,
                scaled_along(weights, weight_axis(node, weights.dims.size()), affine.scale));
    const bool usual = std::ranges::all_of(affine.scale, [](double s) {
      return s == 0 || (std::fabs(s) > 1e-9 && std::fabs(s) < 1e9);
    });
    if ((dtype == PFRT_DTYPE_FLOAT16 || !usual) && !keeps_kinds(weights, scaled)) return false;
    editor.set_input(node, 1,
                     editor.add_constant(editor.graph().at(weights_id).name, std::move(scaled)));
  }
  if (!has_bias) return true;
  const ValueId old = node.has_input(2) ? node.inputs[2] : kNoId;
  const std::string stem = old == kNoId ? editor.graph().at(node.outputs[0]).name + "/bias"
                                        : editor.graph().at(old).name;
  editor.set_input(node, 2, editor.add_constant(stem, std::move(made)));
  if (node.op == "Gemm") node.set_attr(Attribute::of_float("beta", 1));
  return true;
}

}  // namespace pfrt
