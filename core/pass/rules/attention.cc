// SPDX-License-Identifier: Apache-2.0
//
// Makes nodes around Attention part of it: repeated heads of keys and values, keys and values of
// the past, the transposes to heads and back, and the projections of one input.
#include "core/pass/rules/attention.h"

#include <algorithm>

#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Whether queries, keys and values are by head, without a past so far.
bool is_plain(const Editor& editor, const Node& node) {
  if (node.has_input(4) || node.has_input(5) || node.has_input(6)) return false;
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.has_output(i)) return false;
  for (size_t i = 0; i < 3; ++i)
    if (editor.rank(node.inputs[i]) != 4u) return false;
  return true;
}

bool is_known(const Dim& d) { return d.known() && d.value() > 0; }

// -------------------------------------------------------------------------------- grouped queries

// Heads, each repeated |times| times in a row: Unsqueeze, Expand or Tile, Reshape.
struct Repeated {
  ValueId heads;
  int64_t times;
};
std::optional<Repeated> repeated(Editor& editor, ValueId value) {
  const Node* joined = editor.maker(value, "Reshape");
  const ValueId spread = joined ? joined->inputs[0] : kNoId;
  const Node* copies = joined ? editor.maker(spread, "Expand") : nullptr;
  if (joined && !copies) copies = editor.maker(spread, "Tile");
  const Node* apart = copies ? editor.maker(copies->inputs[0], "Unsqueeze") : nullptr;
  if (!apart) return std::nullopt;
  const Type &heads = editor.type(apart->inputs[0]), &one = editor.type(copies->inputs[0]);
  const Type &many = editor.type(spread), &out = editor.type(value);
  for (const Type* type : {&heads, &one, &many, &out})
    if (!type->has_shape) return std::nullopt;
  if (heads.shape.size() != 4 || one.shape.size() != 5 || many.shape.size() != 5 ||
      out.shape.size() != 4)
    return std::nullopt;
  const Shape& h = heads.shape;
  const Dim times = many.shape[2];
  if (!is_known(times) || !is_known(h[1]) || h[1].value() > INT32_MAX ||
      times.value() > INT32_MAX || editor.numbers(apart->inputs[1]) != std::vector<int64_t>{2})
    return std::nullopt;
  const bool wide = many.shape[0] == h[0] && many.shape[1] == h[1] && many.shape[3] == h[2] &&
                    many.shape[4] == h[3];
  const bool flat = out.shape[0] == h[0] && out.shape[1].is(h[1].value() * times.value()) &&
                    out.shape[2] == h[2] && out.shape[3] == h[3];
  if (!wide || !flat) return std::nullopt;
  return Repeated{apart->inputs[0], times.value()};
}

Result<bool> group_queries(Editor& editor, Node& node, const RuleContext& context) {
  if (!is_plain(editor, node)) return false;
  const auto keys = repeated(editor, node.inputs[1]), values = repeated(editor, node.inputs[2]);
  if (!keys || !values || keys->times != values->times) return false;
  Node made = node_of("Attention", node.inputs, node.attrs);
  made.inputs[1] = keys->heads;
  made.inputs[2] = values->heads;
  return replace_with(editor, context, node.outputs[0], std::move(made));
}

// --------------------------------------------------------------------------------------- the past

struct Joined {
  ValueId past, fresh;
};
std::optional<Joined> joined(Editor& editor, ValueId value) {
  const Node* concat = editor.maker(value, "Concat");
  if (!concat || concat->inputs.size() != 2) return std::nullopt;
  const int64_t axis = concat->attr_int("axis", 0);
  if (axis != 2 && axis != -2) return std::nullopt;
  for (ValueId part : concat->inputs)
    if (editor.rank(part) != 4u) return std::nullopt;
  return Joined{concat->inputs[0], concat->inputs[1]};
}

// Takes over the Concat of past and new keys and values: the operator joins them itself and hands
// them on. With a past a causal mask would begin elsewhere.
Result<bool> take_past(Editor& editor, Node& node, const RuleContext& context) {
  if (!is_plain(editor, node) || node.attr_int("is_causal", 0) != 0 ||
      node.attr_int("left_window_size", -1) != -1 || node.attr_int("right_window_size", -1) != -1)
    return false;
  const std::vector<ValueId> outs = {node.outputs[0], node.inputs[1], node.inputs[2]};
  const auto keys = joined(editor, outs[1]), values = joined(editor, outs[2]);
  // The operator makes the joined values now, so its inputs must not depend on them.
  if (!keys || !values || outs[1] == outs[2] || editor.users(outs[1]).size() != 1 ||
      editor.users(outs[2]).size() != 1)
    return false;
  Node made = node_of("Attention", node.inputs, node.attrs);
  made.inputs.resize(6, kNoId);
  made.inputs[1] = keys->fresh, made.inputs[2] = values->fresh;
  made.inputs[4] = keys->past, made.inputs[5] = values->past;
  if (!agreed(editor, context, made, outs)) return false;
  PFRT_ASSIGN(const std::vector<ValueId> now, editor.add_node(std::move(made), node.name, 3));
  for (size_t i = 0; i < 3; ++i) editor.replace(outs[i], now[i]);
  return true;
}

// -------------------------------------------------------------------------------- heads and back

constexpr int64_t kExchange[] = {0, 2, 1, 3};

Node* exchange(Editor& editor, ValueId value) {
  Node* node = editor.maker(value, "Transpose");
  const std::vector<int64_t>* perm = node ? node->attr_ints("perm") : nullptr;
  return perm && std::ranges::equal(*perm, kExchange) ? node : nullptr;
}

// [batch, position, head x column] of a value by head, perhaps rotated by position.
struct Flat {
  ValueId rows;   // this form, or kNoId where |apart| must be reshaped
  ValueId apart;  // [batch, position, head, column]
  const Node* rotary;
  int64_t heads, columns;
};

std::optional<Flat> flat_of(Editor& editor, ValueId value) {
  Flat out{};
  out.rotary = editor.maker(value, "RotaryEmbedding");
  const Node* turned = exchange(editor, out.rotary ? out.rotary->inputs[0] : value);
  if (!turned) return std::nullopt;
  out.apart = turned->inputs[0];
  const Type& apart = editor.type(out.apart);
  if (!apart.has_shape || apart.shape.size() != 4 || !is_known(apart.shape[2]) ||
      !is_known(apart.shape[3]) || apart.shape[2].value() > INT32_MAX ||
      apart.shape[3].value() > INT32_MAX)
    return std::nullopt;
  out.heads = apart.shape[2].value(), out.columns = apart.shape[3].value();
  out.rows = kNoId;
  const Node* shaped = editor.maker(out.apart, "Reshape");
  const Type& rows = editor.type(shaped ? shaped->inputs[0] : kNoId);
  if (shaped && rows.has_shape && rows.shape.size() == 3 && rows.shape[0] == apart.shape[0] &&
      rows.shape[1] == apart.shape[1] && rows.shape[2].is(out.heads * out.columns))
    out.rows = shaped->inputs[0];
  return out;
}

Result<ValueId> reshaped(Editor& editor, const std::string& stem, ValueId value,
                         const std::vector<int64_t>& dims) {
  PFRT_ASSIGN(const ValueId shape, editor.int64s(stem + "/shape", dims));
  return editor.add("Reshape", stem, {value, shape}, {Attribute::of_int("allowzero", 0)});
}

Result<ValueId> rows_of(Editor& editor, const std::string& stem, const Flat& flat) {
  ValueId rows = flat.rows;
  if (rows == kNoId) {
    PFRT_ASSIGN(rows, reshaped(editor, stem, flat.apart, {0, 0, flat.heads * flat.columns}));
  }
  if (!flat.rotary) return rows;
  std::vector<ValueId> inputs = flat.rotary->inputs;
  std::vector<Attribute> attrs = flat.rotary->attrs;
  inputs[0] = rows;
  std::erase_if(attrs, [](const Attribute& a) { return a.name == "num_heads"; });
  attrs.push_back(Attribute::of_int("num_heads", flat.heads));
  return editor.add("RotaryEmbedding", flat.rotary->name, std::move(inputs), std::move(attrs));
}

// Takes transposes to heads and back into the operator, which reads and writes rows head by head.
Result<bool> take_heads(Editor& editor, Node& node, const RuleContext& context) {
  const Node* back = editor.only_user(node.outputs[0]);
  if (editor.rank(node.inputs[0]) != 4u || !back || back->op != "Transpose" ||
      !back->domain.empty() || !exchange(editor, back->outputs[0]) || node.has_output(3))
    return false;
  std::vector<Flat> flat;
  for (size_t i = 0; i < 3; ++i) {
    const auto one = flat_of(editor, node.inputs[i]);
    if (!one) return false;
    flat.push_back(*one);
  }
  const ValueId apart = back->outputs[0];
  const Type& type = editor.type(apart);
  if (!type.has_shape || !type.shape[2].is(flat[0].heads) || !type.shape[3].is(flat[2].columns))
    return false;
  const int64_t width = flat[0].heads * flat[2].columns;
  const std::string stem = node.name;
  Node made = node_of("Attention", node.inputs, node.attrs);
  made.attrs.push_back(Attribute::of_int("q_num_heads", flat[0].heads));
  made.attrs.push_back(Attribute::of_int("kv_num_heads", flat[1].heads));
  Node asked = made;
  std::vector<ValueId> outs = node.outputs;
  const pfrt_dtype dtype = type.dtype;
  for (size_t i = 0; i < 3; ++i)
    asked.inputs[i] =
        placeholder(editor, Type::tensor(dtype, {Dim(), Dim(), flat[i].heads * flat[i].columns}));
  outs[0] = placeholder(editor, Type::tensor(dtype, {Dim(), Dim(), width}));
  if (!agreed(editor, context, std::move(asked), outs)) return false;
  for (size_t i = 0; i < 3; ++i) {
    PFRT_ASSIGN(made.inputs[i], rows_of(editor, stem, flat[i]));
  }
  const std::vector<ValueId> before = node.outputs;
  PFRT_ASSIGN(const std::vector<ValueId> now,
              editor.add_node(std::move(made), stem, before.size()));
  for (size_t i = 1; i < before.size(); ++i)
    if (before[i] != kNoId) editor.replace(before[i], now[i]);
  // A Reshape that joins the heads afterwards gives the operator's own output.
  const Node* join = editor.only_user(apart);
  const bool joins = join && join->op == "Reshape" && join->domain.empty() &&
                     join->inputs[0] == apart && editor.same_type(join->outputs[0], now[0]);
  if (joins) {
    editor.replace(join->outputs[0], now[0]);
    return true;
  }
  PFRT_ASSIGN(const ValueId parts,
              reshaped(editor, stem, now[0], {0, 0, flat[0].heads, flat[2].columns}));
  editor.replace(apart, parts);
  return true;
}

constexpr Rule kAttentionRules[] = {
    {"GroupedQueries", "Attention",
     "heads of keys and values repeated by Unsqueeze, Expand, Reshape, Attention -> Attention of "
     "fewer heads",
     kExtended, true, group_queries},
    {"PastKeys", "Attention", "Concat of past and new keys and values, Attention -> Attention",
     kExtended, true, take_past},
    {"AttentionHeads", "Attention",
     "Reshape and Transpose to heads, Attention, and back -> Attention of rows", kExtended, true,
     take_heads},
};

}  // namespace

std::span<const Rule> attention_input_rules() { return kAttentionRules; }

}  // namespace pfrt
