// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/raise.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pfrt {
namespace {

constexpr int kDeepest = 8;  // limit for arithmetic around one operator

std::optional<Polynomial> sum(const std::optional<Polynomial>& a,
                              const std::optional<Polynomial>& b, double sign) {
  if (!a || !b) return std::nullopt;
  Polynomial out = *a;
  for (size_t i = 0; i < out.size(); ++i) out[i] += sign * (*b)[i];
  return out;
}

std::optional<Polynomial> times(const std::optional<Polynomial>& a,
                                const std::optional<Polynomial>& b) {
  if (!a || !b) return std::nullopt;
  Polynomial out{};
  for (size_t i = 0; i < a->size(); ++i) {
    for (size_t j = 0; j < b->size(); ++j) {
      const double c = (*a)[i] * (*b)[j];
      if (i + j < out.size())
        out[i + j] += c;
      else if (c != 0)
        return std::nullopt;
    }
  }
  return out;
}

std::optional<Polynomial> expand(Match& match, ValueId value, ValueId leaf, int depth) {
  if (value == leaf) return Polynomial{0, 1, 0, 0};
  const Editor& editor = match.editor();
  if (const auto number = scalar(editor, value)) return Polynomial{*number, 0, 0, 0};
  const Node* node = match.editor().producer(value);
  if (!node || !node->domain.empty() || depth == 0 || node->outputs[0] != value)
    return std::nullopt;
  const bool two = node->inputs.size() == 2;
  const auto input = [&](size_t i) { return expand(match, node->inputs[i], leaf, depth - 1); };
  std::optional<Polynomial> out;
  if (node->op == "Neg") {
    out = times(input(0), Polynomial{-1, 0, 0, 0});
  } else if (two && (node->op == "Add" || node->op == "Sub")) {
    out = sum(input(0), input(1), node->op == "Add" ? 1 : -1);
  } else if (two && node->op == "Mul") {
    const auto first = input(0);
    if (first) out = times(first, node->inputs[1] == node->inputs[0] ? first : input(1));
  } else if (two && node->op == "Div") {
    const auto by = scalar(editor, node->inputs[1]);
    if (by && *by != 0) out = times(input(0), Polynomial{1 / *by, 0, 0, 0});
  } else if (two && node->op == "Pow") {
    const auto power = scalar(editor, node->inputs[1]);
    if (power != 2.0 && power != 3.0) return std::nullopt;
    const auto base = input(0);
    out = times(base, base);
    if (power == 3.0) out = times(out, base);
  }
  if (out) match.take(*node);
  return out;
}

void flatten(Match& match, const Node& node, Product& out, int depth) {
  match.take(node);
  Editor& editor = match.editor();
  const bool divides = node.op == "Div";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId value = node.inputs[i];
    if (const auto number = scalar(editor, value); number && (!divides || i == 1)) {
      out.scale = divides ? out.scale / *number : out.scale * *number;
      continue;
    }
    const Node* inner = editor.producer(value);
    const bool opens = inner && inner->domain.empty() && depth > 0 && inner->inputs.size() == 2 &&
                       editor.only_used_by(value, node) &&
                       (inner->op == "Mul" ||
                        (inner->op == "Div" && scalar(editor, inner->inputs[1]).value_or(0) != 0));
    if (opens)
      flatten(match, *inner, out, depth - 1);
    else
      out.factors.push_back(value);
  }
}

}  // namespace

Node* Match::take(ValueId value, std::string_view op) {
  Node* made = value == kNoId ? nullptr : editor_->maker(value, op);
  if (made) take(*made);
  return made;
}

void Match::take(const Node& node) {
  if (std::ranges::find(parts_, node.id) == parts_.end()) parts_.push_back(node.id);
}

bool Match::closed(ValueId out) const {
  for (NodeId id : parts_) {
    for (ValueId value : editor_->node(id)->outputs) {
      if (value == kNoId || value == out) continue;
      if (editor_->is_output(value)) return false;
      for (NodeId user : editor_->users(value))
        if (std::ranges::find(parts_, user) == parts_.end()) return false;
    }
  }
  return true;
}

std::optional<double> scalar(const Editor& editor, ValueId value) {
  return value == kNoId ? std::nullopt : scalar_of(editor.constant(value));
}

std::optional<WithScalar> with_scalar(const Editor& editor, const Node& node) {
  if (node.inputs.size() != 2) return std::nullopt;
  for (size_t side : {1u, 0u})
    if (const auto number = scalar(editor, node.inputs[side]))
      return WithScalar{node.inputs[1 - side], *number, side};
  return std::nullopt;
}

bool raisable(pfrt_dtype dtype) {
  return dtype == PFRT_DTYPE_FLOAT32 || dtype == PFRT_DTYPE_FLOAT16 ||
         dtype == PFRT_DTYPE_BFLOAT16 || dtype == PFRT_DTYPE_FLOAT64;
}

bool near(double a, double b, pfrt_dtype dtype) {
  const double relative = dtype == PFRT_DTYPE_FLOAT64    ? 1e-12
                          : dtype == PFRT_DTYPE_FLOAT32  ? 2e-6
                          : dtype == PFRT_DTYPE_FLOAT16  ? 2e-3
                          : dtype == PFRT_DTYPE_BFLOAT16 ? 1e-2
                                                         : 0;
  return std::isfinite(a) && std::isfinite(b) &&
         std::fabs(a - b) <= relative * std::max(std::fabs(a), std::fabs(b));
}

std::optional<Polynomial> polynomial(Match& match, ValueId value, ValueId leaf) {
  return expand(match, value, leaf, kDeepest);
}

Product product(Match& match, const Node& root) {
  Product out;
  if (root.inputs.size() != 2 ||
      (root.op == "Div" && scalar(match.editor(), root.inputs[1]).value_or(0) == 0))
    return out;
  flatten(match, root, out, kDeepest);
  return out;
}

std::optional<std::vector<int64_t>> reduced_axes(const Editor& editor, const Node& node,
                                                 bool keeps) {
  const std::optional<size_t> rank = editor.rank(node.inputs[0]);
  if (!rank || (node.attr_int("keepdims", 1) != 0) != keeps) return std::nullopt;
  std::vector<int64_t> axes;
  if (node.has_input(1)) {
    const auto given = editor.numbers(node.inputs[1]);
    if (!given) return std::nullopt;
    axes = *given;
  }
  const auto n = static_cast<int64_t>(*rank);
  if (axes.empty()) {
    if (node.attr_int("noop_with_empty_axes", 0) != 0) return std::nullopt;
    axes.resize(*rank);
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  for (int64_t& axis : axes) {
    if (axis < -n || axis >= n) return std::nullopt;
    if (axis < 0) axis += n;
  }
  std::ranges::sort(axes);
  return axes;
}

bool are_trailing(const std::vector<int64_t>& axes, size_t rank) {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(rank - axes.size() + i)) return false;
  return !axes.empty();
}

bool normalisable(pfrt_dtype dtype) {
  return dtype == PFRT_DTYPE_FLOAT32 || dtype == PFRT_DTYPE_BFLOAT16;
}

std::optional<Dims> dims_from(const Editor& editor, ValueId value, size_t axis) {
  Dims out;
  const Shape& shape = editor.type(value).shape;
  for (size_t i = axis; i < shape.size(); ++i) {
    if (!shape[i].known()) return std::nullopt;
    out.push_back(shape[i].value());
  }
  return out;
}

size_t count_of(const Dims& dims) {
  return static_cast<size_t>(element_count(dims.data(), dims.size()));
}

std::optional<std::vector<double>> spread(const Editor& editor, ValueId value, const Dims& dims) {
  const Tensor* tensor = value == kNoId ? nullptr : editor.constant(value);
  const auto numbers = to_doubles(tensor);
  if (!numbers) return std::nullopt;
  size_t lead = 0;
  while (tensor->dims.size() - lead > dims.size() && tensor->dims[lead] == 1) ++lead;
  const Dims own(tensor->dims.begin() + static_cast<ptrdiff_t>(lead), tensor->dims.end());
  if (own.size() > dims.size()) return std::nullopt;
  const size_t shift = dims.size() - own.size();
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] != 1 && own[i] != dims[shift + i]) return std::nullopt;
  std::vector<double> out(count_of(dims));
  for (size_t at = 0; at < out.size(); ++at) {
    size_t rest = at, from = 0, step = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      const auto size = static_cast<size_t>(dims[i]);
      if (i >= shift && own[i - shift] != 1) {
        from += rest % size * step;
        step *= size;
      }
      rest /= size;
    }
    out[at] = (*numbers)[from];
  }
  return out;
}

ValueId placeholder(Editor& editor, Type type) {
  const ValueId value = editor.graph().fresh("asked");
  editor.graph().at(value).type = std::move(type);
  return value;
}

bool agreed(const Editor& editor, const RuleContext& context, Node made,
            std::vector<ValueId> outs) {
  if (!context.check_support || !context.pass.refuses) return true;
  made.outputs = std::move(outs);
  made.canonical = true;
  return context.pass.refuses(editor.graph(), made, {}, context.target).empty();
}

Result<bool> replace_with(Editor& editor, const RuleContext& context, ValueId out, Node made) {
  if (!agreed(editor, context, made, {out})) return false;
  const std::string stem = editor.producer(out)->name;
  PFRT_ASSIGN(const std::vector<ValueId> values, editor.add_node(std::move(made), stem));
  // Knowledge of the old type stays where inference knows less of the new node.
  const Type &now = editor.type(values[0]), &was = editor.type(out);
  if (now.dtype != was.dtype ||
      (now.has_shape && was.has_shape && now.shape.size() != was.shape.size()))
    return error(Code::kINTERNAL, "the raised operator has another type");
  editor.replace(out, values[0]);
  return true;
}

Node node_of(std::string_view op, std::vector<ValueId> inputs, std::vector<Attribute> attrs) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  return node;
}

}  // namespace pfrt
