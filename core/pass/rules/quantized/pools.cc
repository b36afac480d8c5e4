// SPDX-License-Identifier: Apache-2.0
//
// Makes averages of dequantized bytes that are quantized again averages of bytes: the sum is exact
// and rounded once, so that results may differ by one step from those of float32.
#include <algorithm>
#include <utility>

#include "core/pass/rules/quantized/quantized.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// QLinearAveragePool has no dilations, which canonical pools of the standard always have.
bool is_dilated(const Node& pool) {
  const auto* dilations = pool.attr_ints("dilations");
  return dilations && std::ranges::any_of(*dilations, [](int64_t d) { return d != 1; });
}

bool has_bytes(const Quantization& q) {
  return q.single && (q.dtype == PFRT_DTYPE_INT8 || q.dtype == PFRT_DTYPE_UINT8);
}

Result<bool> average(Editor& editor, Node& node, const RuleContext& context) {
  const auto to = quantization(editor, node);
  Node* const pool = to ? editor.producer(node.inputs[0]) : nullptr;
  if (!pool || !pool->domain.empty() ||
      (pool->op != "AveragePool" && pool->op != "GlobalAveragePool") || is_dilated(*pool) ||
      !editor.only_used_by(node.inputs[0], node))
    return false;
  const auto from = dequantized(editor, pool->inputs[0]);
  if (!from || !has_bytes(*from) || !has_bytes(*to) || !scales_of(editor, *from) ||
      !scales_of(editor, *to))
    return false;
  Node made;
  made.domain = "com.microsoft";
  made.op = "QLinear" + pool->op;
  made.canonical = true;
  made.attrs = pool->attrs;
  made.drop_attr("dilations");
  PFRT_ASSIGN(const ValueId from_zero, zero_of(editor, *from));
  PFRT_ASSIGN(const ValueId to_zero, zero_of(editor, *to));
  made.inputs = {from->quantized, from->scale, from_zero, to->scale, to_zero};
  made.outputs = node.outputs;  // asks about the same type
  if (context.check_support && context.pass.refuses &&
      !context.pass.refuses(editor.graph(), made, {}, context.target).empty())
    return false;
  const ValueId out = node.outputs[0];
  const std::string stem = pool->name;
  PFRT_ASSIGN(const std::vector<ValueId> outputs, editor.add_node(std::move(made), stem));
  editor.replace(out, outputs[0]);
  return true;
}

constexpr Rule kQuantizedPoolsRules[] = {
    {"QLinearAverage", "QuantizeLinear",
     "DequantizeLinear, AveragePool or GlobalAveragePool, QuantizeLinear -> QLinearAveragePool or "
     "QLinearGlobalAveragePool",
     kExtended, true, average},
};

}  // namespace

std::span<const Rule> quantized_pool_rules() { return kQuantizedPoolsRules; }

}  // namespace pfrt
