// SPDX-License-Identifier: Apache-2.0
//
// Replaces control flow whose course is known by the body.
#include <algorithm>

#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Puts copies of the body's nodes before |node|; captures become the captured values.
Result<std::vector<ValueId>> inline_body(Editor& editor, const Node& node, const Graph& body) {
  std::vector<ValueId> stand_in(body.value_count(), kNoId);
  const auto outer = [&](ValueId inner) {
    if (inner == kNoId) return kNoId;
    if (stand_in[inner] == kNoId && body.at(inner).constant &&
        body.at(inner).constant->kind == PFRT_VALUE_TENSOR)
      stand_in[inner] = editor.add_constant(body.at(inner).name, body.at(inner).constant->tensor);
    return stand_in[inner];
  };
  for (const Capture& c : body.captures) stand_in[c.inner] = c.outer;
  PFRT_ASSIGN(const std::vector<NodeId> order, body.topological_order());
  for (NodeId id : order) {
    Node copy = *body.node(id);
    const std::vector<ValueId> made = copy.outputs;
    for (ValueId& in : copy.inputs) in = outer(in);
    for (Attribute& attr : copy.attrs) {
      const auto settle = [&](std::shared_ptr<Graph>& inner) {
        inner = inner->clone();
        for (Capture& c : inner->captures) c.outer = outer(c.outer);
      };
      if (attr.graph) settle(attr.graph);
      for (auto& inner : attr.graphs) settle(inner);
    }
    copy.epilogue_of = kNoId;
    const std::string stem = copy.name.empty() ? node.name : copy.name;
    PFRT_ASSIGN(const std::vector<ValueId> values,
                editor.add_node(std::move(copy), stem, made.size()));
    for (size_t i = 0; i < made.size(); ++i)
      if (made[i] != kNoId) stand_in[made[i]] = values[i];
  }
  std::vector<ValueId> outputs;
  outputs.reserve(body.outputs.size());
  for (ValueId out : body.outputs) outputs.push_back(outer(out));
  return outputs;
}

Result<bool> known_branch(Editor& editor, Node& node, const RuleContext&) {
  const Tensor* condition = node.has_input(0) ? editor.constant(node.inputs[0]) : nullptr;
  if (!condition || condition->dtype != PFRT_DTYPE_BOOL || condition->count() != 1) return false;
  const Attribute* attr = node.attr(*condition->as<bool>() ? "then_branch" : "else_branch");
  if (!attr || !attr->graph) return false;
  const std::shared_ptr<Graph> body = attr->graph;
  const std::vector<ValueId> outputs = node.outputs;
  // A constant that is no tensor, or an output that no node makes, stays in its body.
  for (size_t i = 0; i < body->outputs.size(); ++i) {
    const ValueId out = body->outputs[i];
    if (body->at(out).producer == kNoId) return false;
    if (std::find(body->outputs.begin(), body->outputs.begin() + static_cast<int64_t>(i), out) !=
        body->outputs.begin() + static_cast<int64_t>(i))
      return false;
  }
  for (ValueId id : body->initializers())
    if (body->at(id).constant->kind != PFRT_VALUE_TENSOR) return false;
  PFRT_ASSIGN(const std::vector<ValueId> values, inline_body(editor, node, *body));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] != kNoId) editor.replace(outputs[i], values[i]);
  return true;
}

constexpr Rule kControlRules[] = {
    {"InlineBranch", "If", "If of a constant condition -> the nodes of that branch",
     OptLevel::kBasic, false, known_branch},
};

}  // namespace

std::span<const Rule> control_rules() { return kControlRules; }

}  // namespace pfrt
