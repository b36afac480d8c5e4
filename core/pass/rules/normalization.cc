// SPDX-License-Identifier: Apache-2.0
//
// Merges scale, bias, conversions and groups around a normalisation into it, one by one, in any
// order.
#include <algorithm>

#include "core/pass/rules/linear.h"
#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// The normalisation that makes |value|, if only |user| uses it.
Node* norm_before(Editor& editor, ValueId value, const Node& user) {
  Node* norm = editor.producer(value);
  if (!norm || !norm->domain.empty() || norm->outputs[0] != value || norm->inputs.size() < 2 ||
      !editor.only_used_by(value, user))
    return nullptr;
  for (size_t i = 1; i < norm->outputs.size(); ++i)
    if (norm->has_output(i)) return nullptr;
  const bool known = norm->op == "LayerNormalization" || norm->op == "RMSNormalization" ||
                     norm->op == "InstanceNormalization" || norm->op == "GroupNormalization";
  return known ? norm : nullptr;
}

// Dimensions of scale and bias of a normalisation of rows; nullopt where they are by channel.
std::optional<Dims> row_dims(const Editor& editor, const Node& norm) {
  if (norm.op != "LayerNormalization" && norm.op != "RMSNormalization") return std::nullopt;
  const int64_t axis = norm.attr_int("axis", -1);
  if (axis < 0 || !editor.rank(norm.inputs[0])) return std::nullopt;
  return dims_from(editor, norm.inputs[0], static_cast<size_t>(axis));
}

// A scale or bias of a normalisation: dimensions and elements.
struct Parameter {
  Dims dims;
  std::vector<double> numbers;
};
std::optional<Parameter> parameter(const Editor& editor, const Node& norm, ValueId value) {
  const std::optional<size_t> rank = editor.rank(norm.inputs[0]);
  if (!rank) return std::nullopt;
  if (norm.op == "LayerNormalization" || norm.op == "RMSNormalization") {
    const auto dims = row_dims(editor, norm);
    auto numbers = dims ? spread(editor, value, *dims) : std::nullopt;
    if (!numbers) return std::nullopt;
    return Parameter{*dims, std::move(*numbers)};
  }
  const Dim channels = editor.type(norm.inputs[0]).shape[1];
  if (!channels.known()) return std::nullopt;
  const auto count = static_cast<size_t>(channels.value());
  auto numbers = per_channel(editor, value, *rank, 1, count);
  if (!numbers) return std::nullopt;
  return Parameter{{channels.value()}, std::move(*numbers)};
}

// The numbers that the normalisation has at input |i|; |fallback| everywhere where it has none.
std::optional<std::vector<double>> present(const Editor& editor, const Node& norm, size_t i,
                                           const Dims& dims, double fallback) {
  if (!norm.has_input(i)) return std::vector<double>(count_of(dims), fallback);
  const Tensor* tensor = editor.constant(norm.inputs[i]);
  return tensor && tensor->dims == dims ? to_doubles(tensor) : std::nullopt;
}

bool all_are(const std::vector<double>& numbers, double wanted) {
  return std::ranges::all_of(numbers, [&](double n) { return n == wanted; });
}

// Whether |value|, a scale or bias that only a run knows, can replace ones or an absent input
// unchanged.
bool takes_as_is(const Editor& editor, const Node& norm, ValueId value) {
  const auto dims = row_dims(editor, norm);
  const Type& type = editor.type(value);
  if (!dims || !type.fixed() || type.dtype != editor.type(norm.inputs[0]).dtype) return false;
  return std::ranges::equal(type.shape, *dims, [](const Dim& d, int64_t n) { return d.is(n); });
}

Result<bool> with_input(Editor& editor, const RuleContext& context, ValueId out, const Node& norm,
                        size_t i, ValueId value, std::optional<ValueId> bias = {}) {
  Node made = node_of(norm.op, norm.inputs, norm.attrs);
  if (made.inputs.size() <= i) made.inputs.resize(i + 1, kNoId);
  made.inputs[i] = value;
  if (bias) made.inputs[2] = *bias;
  return replace_with(editor, context, out, std::move(made));
}

// Takes a Mul by a scale, or an Add of a bias.
Result<bool> take_parameter(Editor& editor, Node& node, const RuleContext& context) {
  if (node.inputs.size() != 2) return false;
  const bool scales = node.op == "Mul";
  for (const size_t side : {0u, 1u}) {
    const Node* norm = norm_before(editor, node.inputs[side], node);
    const ValueId value = node.inputs[1 - side], out = node.outputs[0];
    if (!norm || !editor.same_type(norm->outputs[0], out)) continue;
    if (!scales && norm->op == "RMSNormalization") continue;
    const size_t i = scales ? 1 : 2;
    const pfrt_dtype dtype = editor.type(out).dtype;
    if (!editor.constant(value)) {
      const auto dims = row_dims(editor, *norm);
      if (!dims || !takes_as_is(editor, *norm, value) || norm->has_input(2)) continue;
      const auto ones = present(editor, *norm, 1, *dims, 1);
      if (scales && (!ones || !all_are(*ones, 1))) continue;
      return with_input(editor, context, out, *norm, i, value);
    }
    const auto given = parameter(editor, *norm, value);
    auto own = given ? present(editor, *norm, i, given->dims, scales ? 1 : 0) : std::nullopt;
    auto bias = given && scales && norm->has_input(2) ? present(editor, *norm, 2, given->dims, 0)
                                                      : std::nullopt;
    if (!own || (scales && norm->has_input(2) && !bias)) continue;
    for (size_t k = 0; k < own->size(); ++k) {
      (*own)[k] = scales ? (*own)[k] * given->numbers[k] : (*own)[k] + given->numbers[k];
      if (bias) (*bias)[k] *= given->numbers[k];
    }
    PFRT_ASSIGN(Tensor made, from_doubles(dtype, given->dims, *own));
    const ValueId now = editor.add_constant(editor.graph().at(value).name, std::move(made));
    if (!bias) return with_input(editor, context, out, *norm, i, now);
    PFRT_ASSIGN(Tensor shifted, from_doubles(dtype, given->dims, *bias));
    const ValueId shift =
        editor.add_constant(editor.graph().at(norm->inputs[2]).name, std::move(shifted));
    return with_input(editor, context, out, *norm, i, now, shift);
  }
  return false;
}

// Removes casts to float32 before a normalisation and back behind it: the operator computes in
// float32 itself. Scale and bias must be numbers of the short type.
Result<bool> short_norm(Editor& editor, Node& node, const RuleContext& context) {
  const ValueId out = node.outputs[0];
  const Node* norm = norm_before(editor, node.inputs[0], node);
  if (!norm || (norm->op != "LayerNormalization" && norm->op != "RMSNormalization")) return false;
  const Node* widen = editor.maker(norm->inputs[0], "Cast");
  if (!widen || editor.type(norm->inputs[0]).dtype != PFRT_DTYPE_FLOAT32) return false;
  const ValueId x = widen->inputs[0];
  const pfrt_dtype dtype = editor.type(x).dtype;
  if (dtype != PFRT_DTYPE_FLOAT16 && dtype != PFRT_DTYPE_BFLOAT16) return false;
  if (!editor.same_type(x, out)) return false;
  std::vector<ValueId> inputs = {x};
  for (size_t i = 1; i < norm->inputs.size(); ++i) {
    const Tensor* wide = editor.constant(norm->inputs[i]);
    const auto numbers = to_doubles(wide);
    if (!numbers) return false;
    PFRT_ASSIGN(Tensor narrow, from_doubles(dtype, wide->dims, *numbers));
    if (to_doubles(&narrow) != numbers) return false;
    inputs.push_back(
        editor.add_constant(editor.graph().at(norm->inputs[i]).name, std::move(narrow)));
  }
  return replace_with(editor, context, out, node_of(norm->op, std::move(inputs), norm->attrs));
}

// ----------------------------------------------------------------------------------------- groups

// Whether two tensors with the same elements have the same dimensions; at most one dimension may be
// uncertain.
bool same_shape(const Type& a, const Type& b) {
  if (a.dtype != b.dtype || !a.has_shape || !b.has_shape || a.shape.size() != b.shape.size())
    return false;
  size_t open = 0;
  for (size_t i = 0; i < a.shape.size(); ++i) open += !(a.shape[i] == b.shape[i]);
  return open <= 1;
}

// Joins Reshape to [N, groups, rest], InstanceNormalization, and Reshape back.
Result<bool> to_group_norm(Editor& editor, Node& node, const RuleContext& context) {
  const ValueId out = node.outputs[0];
  Node* norm = norm_before(editor, node.inputs[0], node);
  if (!norm || norm->op != "InstanceNormalization" || norm->inputs.size() != 3) return false;
  const Node* reshape = editor.maker(norm->inputs[0], "Reshape");
  if (!reshape || !editor.only_used_by(norm->inputs[0], *norm)) return false;
  const ValueId x = reshape->inputs[0];
  const Type outer = editor.type(x), inner = editor.type(norm->inputs[0]);
  if (!same_shape(outer, editor.type(out)) || !inner.has_shape || outer.shape.size() < 2 ||
      inner.shape.size() < 3 || !(outer.shape[0] == inner.shape[0]) || !outer.shape[1].known() ||
      !inner.shape[1].known())
    return false;
  const int64_t channels = outer.shape[1].value(), groups = inner.shape[1].value();
  const auto scale = to_doubles(editor.constant(norm->inputs[1]));
  const auto bias = to_doubles(editor.constant(norm->inputs[2]));
  if (groups < 1 || channels < 1 || channels % groups != 0 || !scale || !bias ||
      scale->size() != static_cast<size_t>(groups) || bias->size() != scale->size() ||
      !normalisable(outer.dtype))
    return false;
  std::vector<ValueId> inputs = {x};
  for (const auto* a_group : {&*scale, &*bias}) {
    std::vector<double> a_channel(static_cast<size_t>(channels));
    for (size_t c = 0; c < a_channel.size(); ++c)
      a_channel[c] = (*a_group)[c / (a_channel.size() / a_group->size())];
    PFRT_ASSIGN(Tensor made, from_doubles(outer.dtype, {channels}, a_channel));
    inputs.push_back(editor.add_constant(message(node.name, "/parameter"), std::move(made)));
  }
  return replace_with(editor, context, out,
                      node_of("GroupNormalization", std::move(inputs),
                              {Attribute::of_float("epsilon", norm->attr_float("epsilon", 1e-5f)),
                               Attribute::of_int("num_groups", groups),
                               Attribute::of_int("stash_type", PFRT_DTYPE_FLOAT32)}));
}

constexpr Rule kNormalizationRules[] = {
    {"GroupNorm", "Reshape",
     "Reshape to groups, InstanceNormalization, Reshape back -> GroupNormalization", kExtended,
     true, to_group_norm},
    {"NormScale", "Mul", "normalisation, Mul by a scale -> normalisation", kExtended, true,
     take_parameter},
    {"NormBias", "Add", "normalisation, Add of a bias -> normalisation", kExtended, true,
     take_parameter},
    {"NormCast", "Cast", "Cast to float32, normalisation, Cast back -> normalisation", kExtended,
     true, short_norm},
};

}  // namespace

std::span<const Rule> normalization_parameter_rules() { return kNormalizationRules; }

}  // namespace pfrt
