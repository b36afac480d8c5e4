// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/operator_set.h"

#include <algorithm>

#include "core/op/engine/inference.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"

namespace pfrt {
namespace {

std::string_view domain_or_onnx(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::string full_name(const OperatorDef& row) {
  return message("'", row.domain.empty() ? "ai.onnx" : row.domain, ".", row.name, "'");
}

Status infer_custom(Inference& inference) {
  const Node& node = inference.node();
  return inference.graph().operators->find(node.domain, node.op)->infer(inference);
}

void set_operators(Graph& graph, const OperatorSet::Ptr& set) {
  graph.operators = set;
  for (NodeId id : graph.node_ids()) {
    for (const Attribute& attr : graph.node(id)->attrs) {
      if (attr.graph) set_operators(*attr.graph, set);
      for (const auto& body : attr.graphs)
        if (body) set_operators(*body, set);
    }
  }
}

}  // namespace

CustomOperator::CustomOperator(const std::string& domain, std::string name, std::string origin,
                               OperatorDef row)
    : domain_(domain_or_onnx(domain)),
      name_(std::move(name)),
      origin_(std::move(origin)),
      row_(row) {
  row_.domain = domain_;
  row_.name = name_;
  row_.canonicalise = nullptr;
  row_.infer = infer_custom;
}

Result<OperatorSet::Ptr> OperatorSet::with(const Ptr& set, Operator added) {
  const OperatorDef& row = added->row();
  const auto taken = [&](std::string_view by) {
    return error(Code::kINVALID_ARGUMENT, "registering operator ", full_name(row), " of ",
                 added->origin(), ": that name is taken by ", by,
                 "; register it under another name or domain");
  };
  if (is_built_in(row.domain, row.name)) return taken("the built-in operator " + full_name(row));
  if (const CustomOperator* other = set ? set->find(row.domain, row.name) : nullptr)
    return taken("operator " + full_name(other->row()) + " of " + other->origin());
  auto made = std::make_shared<OperatorSet>();
  if (set) made->operators_ = set->operators_;
  made->operators_.push_back(std::move(added));
  return Ptr(std::move(made));
}

OperatorSet::Ptr OperatorSet::without(const Ptr& set, const CustomOperator& removed) {
  auto made = std::make_shared<OperatorSet>();
  for (const Operator& op : set->operators_)
    if (op.get() != &removed) made->operators_.push_back(op);
  return made;
}

const CustomOperator* OperatorSet::find(std::string_view domain, std::string_view name) const {
  domain = domain_or_onnx(domain);
  for (const Operator& op : operators_)
    if (op->row().name == name && op->row().domain == domain) return op.get();
  return nullptr;
}

const OperatorDef* find_operator(const Graph& graph, const Node& node, int64_t opset) {
  if (const OperatorDef* row = find_operator(node.domain, node.op, opset)) return row;
  const CustomOperator* own =
      graph.operators ? graph.operators->find(node.domain, node.op) : nullptr;
  // A domain that nobody imports has its newest opset.
  return own && (opset == 0 || opset >= own->row().since) ? &own->row() : nullptr;
}

const OperatorDef* find_canonical(const Graph& graph, const Node& node) {
  return find_operator(graph, node, std::max(newest_opset(node.domain), graph.opset(node.domain)));
}

bool any_node(const Graph& graph, const std::function<bool(const Node&)>& test) {
  for (NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    if (test(node)) return true;
    for (const Attribute& attr : node.attrs) {
      if (attr.graph && any_node(*attr.graph, test)) return true;
      for (const auto& body : attr.graphs)
        if (body && any_node(*body, test)) return true;
    }
  }
  return false;
}

void use_operators(Graph& graph, const OperatorSet::Ptr& set) {
  const bool needed =
      any_node(graph, [](const Node& node) { return !is_built_in(node.domain, node.op); });
  set_operators(graph, needed ? set : nullptr);
}

}  // namespace pfrt
